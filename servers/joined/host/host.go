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
	holdsAfter = 10 * time.Second // a line that is lost earlier counts like one that was not opened
	tellEvery  = 30 * time.Second // how often the machine looks whether there is something to tell
)

var redials = handoff.Backoff{First: 250 * time.Millisecond, Longest: 30 * time.Second}

// A Place is the service that a machine joined.
type Place struct {
	URL     string            `json:"url"`
	Service ed25519.PublicKey `json:"service"` // the key that it proved
	Name    string            `json:"name"`    // what the machine is called there
}

// Config is what a machine is run with.
type Config struct {
	Dir     string // where it keeps what is its own: mode 0700
	Policy  Policy
	Version string       // of this program
	Told    func(string) // what is said to whoever looks on, in a line; never nil
	Log     *zap.Logger
}

// A Host is a machine that joined, or is about to. One process has a directory at a time.
type Host struct {
	cfg    Config
	key    ed25519.PrivateKey
	lock   *os.File
	agents *agents
}

// Open takes the directory of a machine.
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
		return nil, errors.New("another `switchboard join` runs on this machine already")
	}
	key, err := joined.LoadKey(filepath.Join(cfg.Dir, keyFile))
	if err != nil {
		_ = release(lock)
		return nil, err
	}
	return &Host{cfg: cfg, key: key, lock: lock, agents: newAgents(cfg)}, nil
}

// Close gives the directory back. Agents go on.
func (h *Host) Close() error { return release(h.lock) }

// ReadPlace returns the service that the machine of a directory joined; false: it joined none.
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

// keep writes a value in JSON to a file, whole or not at all.
func keep(dir, name string, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return joined.WriteWhole(filepath.Join(dir, name), text)
}

// Join joins the service that an invitation is from.
func (h *Host) Join(ctx context.Context, url string, invitation joined.Invitation) (Place, error) {
	door, err := joined.Visit{URL: url, Key: h.key, Invitation: &invitation, About: h.agents.about(ctx)}.Open(ctx)
	if err != nil {
		return Place{}, err
	}
	p := Place{URL: url, Service: door.Service, Name: door.Name}
	return p, errors.Join(keep(h.cfg.Dir, placeFile, p), door.Close())
}

// Leave has the service forget the machine, ends its agents, and forgets the service and the key. An error from the
// service is returned when that is done.
func (h *Host) Leave(ctx context.Context, p Place) error {
	visit := joined.Visit{URL: p.URL, Key: h.key, Service: p.Service, Leave: true}
	door, told := visit.Open(ctx)
	if told == nil {
		_ = door.Close() // it is over either way
	}
	if errors.Is(told, joined.RefusedKey) {
		told = nil // it was forgotten before
	}
	h.agents.end()
	for _, name := range []string{placeFile, keyFile} {
		if err := os.Remove(filepath.Join(h.cfg.Dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return told
}

// Run keeps the line until ctx ends, or the service refuses the machine for good: then the error is a
// [joined.Refusal].
func (h *Host) Run(ctx context.Context, p Place) error {
	var work sync.WaitGroup
	defer work.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	moved := make(chan struct{}, 1) // capacity 1: full means that it is known
	work.Go(func() { watchNetwork(ctx, moved) })
	work.Go(func() { h.agents.run(ctx) })
	said := "" // the last reason that was told: not each try is worth a line
	for failures := 0; ctx.Err() == nil; failures++ {
		door, err := joined.Visit{
			URL: p.URL, Key: h.key, Service: p.Service, Name: p.Name, About: h.agents.about(ctx),
		}.Open(ctx)
		if err == nil {
			if p.Name != door.Name {
				p.Name = door.Name
				if err := keep(h.cfg.Dir, placeFile, p); err != nil {
					h.cfg.Log.Warn("name not kept", zap.Error(err))
				}
			}
			said = ""
			h.cfg.Told("connected to " + p.URL + " as " + p.Name)
			began := time.Now()
			err = h.serve(ctx, door, moved)
			if time.Since(began) >= holdsAfter {
				failures = 0
			}
		}
		if why, refused := errors.AsType[joined.Refusal](err); refused && why.Final() {
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

// serve serves a line until it is lost, and tells what changes meanwhile.
func (h *Host) serve(ctx context.Context, door *joined.Door, moved <-chan struct{}) error {
	ctx, cancel := context.WithCancel(ctx)
	var telling sync.WaitGroup
	defer telling.Wait()
	defer cancel()
	telling.Go(func() {
		var told joined.About
		tick := time.NewTicker(tellEvery)
		defer tick.Stop()
		for {
			if about := h.agents.about(ctx); !reflect.DeepEqual(about, told) && ctx.Err() == nil {
				if err := door.Tell(about); err != nil {
					_ = door.Close() // a line that does not take it is lost
					return
				}
				told = about
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
	err := door.Serve(ctx, h.agents.dial)
	return cmp.Or(err, net.ErrClosed)
}
