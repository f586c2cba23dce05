package host

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"syscall"
	"time"

	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/servers/joined"
)

// Names of files in the directory of a machine that joined.
const (
	keyFile   = "machine.pem"
	placeFile = "joined.json"
	lockFile  = "lock"
)

// Times of a line.
const (
	holdsAfter = 10 * time.Second // a line that is lost earlier counts as a failed try
	tellEvery  = 30 * time.Second // how often the machine looks for changes that the service has to know
)

var redials = handoff.Backoff{First: 250 * time.Millisecond, Longest: 30 * time.Second}

// A Place is the service that a machine joined.
type Place struct {
	URL     string            `json:"url"`
	Service ed25519.PublicKey `json:"service"` // the service's key, which it has proved
	Name    string            `json:"name"`    // of the machine, as the service calls it
}

// Config is what [Open] and [Pipe] need.
type Config struct {
	Dir     string // of the machine's state: mode 0700
	Policy  Policy
	Version string       // of this program
	Told    func(string) // takes a line about the connection for the person at the terminal; never nil for [Open]
	Log     *zap.Logger
}

// A Host is a machine that joined, or is about to. Only one Host at a time has a directory open.
type Host struct {
	cfg    Config
	key    ed25519.PrivateKey
	lock   *os.File
	agents *agents
}

// Open locks the directory of a machine and reads its key. It fails if another Host has the directory.
func Open(cfg Config) (*Host, error) {
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, err
	}
	lock, err := os.OpenFile(filepath.Join(cfg.Dir, lockFile), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = lock.Close()
		return nil, errHeld
	}
	key, err := joined.LoadKey(filepath.Join(cfg.Dir, keyFile))
	if err != nil {
		_ = release(lock)
		return nil, err
	}
	return &Host{cfg: cfg, key: key, lock: lock, agents: newAgents(cfg)}, nil
}

var errHeld = errors.New("another `switchboard join` runs on this machine already")

// takeWithin bounds how long a `switchboard join` may take to end.
const takeWithin = 10 * time.Second

// TakeOver is like [Open], but first ends the `switchboard join` that has the directory, by SIGTERM. Its agents go on.
func TakeOver(ctx context.Context, cfg Config) (*Host, error) {
	ctx, cancel := context.WithTimeout(ctx, takeWithin)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for told := 0; ; {
		h, err := Open(cfg)
		if !errors.Is(err, errHeld) {
			return h, err
		}
		pid := holder(filepath.Join(cfg.Dir, lockFile))
		if pid > 1 && pid != told {
			cfg.Log.Info("join is ended", zap.Int("process", pid))
			_ = syscall.Kill(pid, syscall.SIGTERM) // it may have ended
			told = pid
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			if pid > 1 {
				err = fmt.Errorf("%w, as process %d, and does not end", err, pid)
			}
			return nil, err
		}
	}
}

// Close unlocks the directory. Agents go on.
func (h *Host) Close() error { return release(h.lock) }

// ReadPlace returns the service that the machine joined whose state is in dir; false: it joined none.
func ReadPlace(dir string) (Place, bool, error) {
	var p Place
	text, err := os.ReadFile(filepath.Join(dir, placeFile))
	if errors.Is(err, fs.ErrNotExist) {
		return p, false, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &p)
	}
	if err != nil || len(p.Service) != ed25519.PublicKeySize {
		return p, false, errors.Join(fmt.Errorf("%s cannot be read", filepath.Join(dir, placeFile)), err)
	}
	return p, true, nil
}

// writeJSON writes a value in JSON to a file, whole or not at all.
func writeJSON(dir, name string, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return joined.WriteWhole(filepath.Join(dir, name), text)
}

// Join joins the service at url with an invitation.
func (h *Host) Join(ctx context.Context, url string, invitation joined.Invitation) (Place, error) {
	door, err := joined.Visit{URL: url, Key: h.key, Invitation: &invitation, About: h.agents.about(ctx)}.Open(ctx)
	if err != nil {
		return Place{}, err
	}
	p := Place{URL: url, Service: door.Service, Name: door.Name}
	return p, errors.Join(writeJSON(h.cfg.Dir, placeFile, p), door.Close())
}

// tellEnded tells that the agents have ended, or which go on.
func (h *Host) tellEnded(goOn []string) {
	line := "the agents here have ended"
	if len(goOn) > 0 {
		line = "these agents could not be ended and go on: " + strings.Join(goOn, ", ")
	}
	h.cfg.Told(line)
}

// Leave has the service forget the machine, ends the machine's agents, tells that, and deletes the place and the key.
// If the service fails, the rest is done all the same, and Leave returns the service's error.
func (h *Host) Leave(ctx context.Context, p Place) error {
	visit := joined.Visit{URL: p.URL, Key: h.key, Service: p.Service, Leave: true}
	door, failed := visit.Open(ctx)
	if failed == nil {
		_ = door.Close() // the service has forgotten the machine either way
	}
	if errors.Is(failed, joined.RefusedKey) {
		failed = nil // the service had forgotten the machine before
	}
	h.tellEnded(h.agents.end())
	for _, name := range []string{placeFile, keyFile} {
		if err := os.Remove(filepath.Join(h.cfg.Dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return failed
}

// Run keeps the line until ctx ends, or the service refuses the machine for good: then the error is a
// [joined.Refusal]. If the service knows the machine no more, Run ends the agents.
func (h *Host) Run(ctx context.Context, p Place) error {
	var work, gates sync.WaitGroup
	defer work.Wait()
	defer gates.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	moved := make(chan struct{}, 1) // has a token when the network moved
	work.Go(func() { watchNetwork(ctx, moved) })
	work.Go(func() { h.agents.run(ctx) })
	said := "" // the last reason that was told: the same reason is not told again
	for failures := 0; ctx.Err() == nil; failures++ {
		door, err := joined.Visit{
			URL: p.URL, Key: h.key, Service: p.Service, Name: p.Name, About: h.agents.about(ctx),
		}.Open(ctx)
		if err == nil {
			if p.Name != door.Name {
				p.Name = door.Name
				if err := writeJSON(h.cfg.Dir, placeFile, p); err != nil {
					h.cfg.Log.Warn("name not kept", zap.Error(err))
				}
			}
			said = ""
			h.cfg.Told("connected to " + p.URL + " as " + p.Name)
			began := time.Now()
			err = h.serve(ctx, door, moved, &gates)
			if time.Since(began) >= holdsAfter {
				failures = 0
			}
		}
		if why, refused := errors.AsType[joined.Refusal](err); refused && why.Final() {
			if why == joined.RefusedKey { // it was removed there: nobody can reach its agents any more
				gates.Wait() // one may be starting an agent
				h.tellEnded(h.agents.end())
			}
			return why
		}
		if ctx.Err() != nil {
			return nil
		}
		if err.Error() != said {
			said = err.Error()
			h.cfg.Told("not connected, trying again: " + said)
		}
		h.cfg.Log.Debug("line lost", zap.Error(err))
		pause(ctx, redials.Pause(failures), moved)
	}
	return nil
}

// pause waits until d is over, the network moved, or ctx ends.
func pause(ctx context.Context, d time.Duration, moved <-chan struct{}) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-moved:
	case <-ctx.Done():
	}
}

// serve serves a line until it is lost, and meanwhile tells the service what changes on the machine. gates gets the
// connections to agents.
func (h *Host) serve(ctx context.Context, door *joined.Door, moved <-chan struct{}, gates *sync.WaitGroup) error {
	ctx, cancel := context.WithCancel(ctx)
	var telling sync.WaitGroup
	defer telling.Wait()
	defer cancel()
	telling.Go(func() {
		var reported joined.About
		tick := time.NewTicker(tellEvery)
		defer tick.Stop()
		for {
			if about := h.agents.about(ctx); !reflect.DeepEqual(about, reported) && ctx.Err() == nil {
				if err := door.Tell(about); err != nil {
					_ = door.Close() // the line is lost
					return
				}
				reported = about
			}
			select {
			case <-tick.C:
			case <-moved:
				door.Check()
			case <-ctx.Done():
				return
			}
		}
	})
	err := door.Serve(ctx, gates, h.agents.reach)
	return cmp.Or(err, net.ErrClosed)
}
