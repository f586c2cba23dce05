package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"switchboard/cmd/switchboard/verbs"
	"switchboard/handoff"
)

const (
	controlFile   = "control"       // a Unix socket in the state directory; whoever can open it is trusted
	maxSocketPath = 103             // bytes; the lowest limit of all systems
	controlWithin = 5 * time.Second // for one request, except those to the API
	maxControl    = 4 << 10         // bytes of a request
)

// control serves the verbs that the same user runs beside a service, on its Unix socket.
type control struct {
	link     func(ctx context.Context, principal string) (string, error)         // Set once: a login link; "": the owner's
	keys     func(context.Context) error                                         // Set once: reads the made keys again
	test     func(context.Context, handoff.Grant, string) (time.Duration, error) // Set once: sends a machine a request
	machines func(handoff.Grant) []handoff.Machine                               // Set once: lists machines
	api      http.Handler                                                        // Set once: the API, for other verbs
	alone    bool                                                                // Set once: it is the only instance
	base     string                                                              // Set once: the API's URL; see baseOf
	voice    string                                                              // Set once: the voice model; "": simulated
}

// listenControl opens the socket. It replaces the socket of a process that has ended, and fails if one answers.
func listenControl(dir string) (net.Listener, error) {
	path := filepath.Join(dir, controlFile)
	if len(path) > maxSocketPath {
		return nil, fmt.Errorf("the path of the state directory is too long for a socket in it: %s; set XDG_STATE_HOME "+
			"to a shorter one", dir)
	}
	if c, err := net.DialTimeout("unix", path, controlWithin); err == nil {
		_ = c.Close()
		return nil, fmt.Errorf("the state directory %s is in use by another Switchboard: end that one, or set "+
			"XDG_STATE_HOME to another directory", dir)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("remove the socket of an earlier process: %w", err)
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("open the socket for the verbs: %w", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		_ = l.Close()
		return nil, fmt.Errorf("close the socket to others: %w", err)
	}
	return l, nil
}

// handler returns what the socket serves.
func (c control) handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/fleet/", c.api)
	mux.Handle("GET /mcp/pipe", c.api)
	mux.Handle("GET /readyz", c.api)
	mux.HandleFunc("GET /here", func(w http.ResponseWriter, _ *http.Request) {
		replyToVerb(w, map[string]string{"base": c.base, "voice": c.voice}, nil)
	})
	mux.HandleFunc("GET /machines", c.listMachines)
	mux.HandleFunc("POST /machines/{server}/test", c.testMachine)
	mux.HandleFunc("POST /login", func(w http.ResponseWriter, r *http.Request) {
		var name, link string
		err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxControl)).Decode(&name)
		if err == nil {
			link, err = c.link(r.Context(), name)
		}
		replyToVerb(w, map[string]string{"link": link}, err)
	})
	mux.HandleFunc("POST /keys", func(w http.ResponseWriter, r *http.Request) {
		replyToVerb(w, map[string]bool{"alone": c.alone}, c.keys(r.Context()))
	})
	return mux
}

// listMachines replies with the machines that are not simulated, by name, and whether each joined; also those for other
// callers.
func (c control) listMachines(w http.ResponseWriter, _ *http.Request) {
	joined := map[string]bool{}
	for _, m := range c.machines(handoff.Grant{}) {
		if m.Address != "" { // a simulated one has none
			joined[m.Name] = !m.Joined.IsZero()
		}
	}
	replyToVerb(w, joined, nil)
}

// testMachine tests a machine, including those for other callers: the user who runs the service may test every one.
func (c control) testMachine(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("server")
	took, err := c.test(r.Context(), handoff.Grant{}, name)
	if err != nil {
		handoff.AsError(err).Reply(w, true)
		return
	}
	answer := map[string]any{"took_ms": max(took.Milliseconds(), 1)}
	for _, m := range c.machines(handoff.Grant{}) {
		if m.Name == name {
			answer["address"] = m.Address
		}
	}
	replyToVerb(w, answer, nil)
}

// replyToVerb sends a verb an answer, or an error in the words that the verb prints. The verb may have ended.
func replyToVerb(w http.ResponseWriter, answer any, err error) {
	w.Header().Set("Content-Type", "application/json")
	if err != nil {
		w.WriteHeader(http.StatusInternalServerError)
		answer = map[string]any{"error": handoff.Problem{Code: handoff.CodeInternal, Message: words(err)}}
	}
	_ = json.NewEncoder(w).Encode(answer)
}

// errNotRunning says that no service runs with this state directory.
var errNotRunning = errors.New("no Switchboard runs with this state directory; start it first")

// controlTransport connects to the socket of a state directory, and ignores the host of the URL.
func controlTransport(dir string) *http.Transport {
	return &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(dir, controlFile))
	}}
}

// asNotRunning returns [errNotRunning] for an error that means that nothing listens.
func asNotRunning(err error) error {
	if verbs.NobodyListens(err) {
		return errNotRunning
	}
	return err
}

// hereClient returns a client of the service that runs with a state directory.
func hereClient(state, key string) *verbs.Client {
	return &verbs.Client{HTTP: &http.Client{Transport: controlTransport(state)}, Base: "http://control", Key: key}
}
