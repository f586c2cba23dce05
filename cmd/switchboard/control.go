package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"switchboard/cmd/switchboard/verbs"
	"switchboard/handoff"
)

const (
	controlFile   = "control"       // a Unix socket in the state directory: who may open it is trusted
	maxSocketPath = 103             // bytes; the smallest bound among the systems
	controlWithin = 5 * time.Second // for one request, but for those to the API
	maxControl    = 4 << 10         // bytes of a request
)

// control is what the verbs of the same user ask of a running service.
type control struct {
	link     func(ctx context.Context, principal string) (string, error)         // Set once: a login link; "" is the owner
	keys     func(context.Context) error                                         // Set once: reads the made keys again
	test     func(context.Context, handoff.Grant, string) (time.Duration, error) // Set once: asks a machine something now
	machines func(handoff.Grant) []handoff.Machine                               // Set once: what is told of machines
	api      http.Handler                                                        // Set once: what other verbs speak to
	base     string                                                              // Set once: where it listens; see baseOf
}

// listenControl opens the socket. A dead one of an earlier process is replaced, a living one is not.
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

// serve makes a server that has the API's own deadlines serve the verbs.
func (c control) serve(h *http.Server) *http.Server {
	mux := http.NewServeMux()
	mux.Handle("/fleet/", c.api)
	mux.Handle("GET /mcp/pipe", c.api)
	mux.Handle("GET /readyz", c.api)
	mux.HandleFunc("GET /here", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]string{"base": c.base}) // a verb that left is not told
	})
	mux.HandleFunc("GET /joined", c.joined)
	mux.HandleFunc("POST /machines/{server}/test", c.machine)
	mux.HandleFunc("POST /login", func(w http.ResponseWriter, r *http.Request) {
		var name, link string
		text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxControl))
		if json.Unmarshal(text, &name) != nil { // older programs send the name itself
			name = string(text)
		}
		if err == nil {
			link, err = c.link(r.Context(), name)
		}
		tellVerb(w, link, err)
	})
	mux.HandleFunc("POST /keys", func(w http.ResponseWriter, r *http.Request) { tellVerb(w, "", c.keys(r.Context())) })
	h.Handler = mux
	return h
}

// joined names the servers of machines that joined, whoever they are for.
func (c control) joined(w http.ResponseWriter, _ *http.Request) {
	names := []string{}
	for _, m := range c.machines(handoff.Grant{}) {
		if !m.Joined.IsZero() {
			names = append(names, m.Name)
		}
	}
	_ = json.NewEncoder(w).Encode(names) // a verb that left is not told
}

// machine tests a machine, whoever it is for: who runs the service may look at all that is in its settings.
func (c control) machine(w http.ResponseWriter, r *http.Request) {
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
	_ = json.NewEncoder(w).Encode(answer) // a verb that left is not told
}

// tellVerb answers a verb of this program, or says what is wrong in the words that it prints.
func tellVerb(w http.ResponseWriter, link string, err error) {
	if err != nil {
		w.WriteHeader(http.StatusInternalServerError)
		_ = json.NewEncoder(w).Encode(map[string]any{ // a verb that left is not told
			"error": handoff.Problem{Code: handoff.CodeInternal, Message: words(err)},
		})
		return
	}
	_ = json.NewEncoder(w).Encode(map[string]string{"link": link})
}

// errNobody: no service runs with this state directory.
var errNobody = errors.New("no Switchboard runs with this state directory; start it first")

// controlTransport reaches the service that runs with a state directory, whatever host an address names.
func controlTransport(dir string) *http.Transport {
	return &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(dir, controlFile))
	}}
}

// hereClient speaks to the service that runs with a state directory.
func hereClient(state, key string) *verbs.Client {
	return &verbs.Client{HTTP: &http.Client{Transport: controlTransport(state)}, Base: "http://control", Key: key}
}

// orNobody says of an error where it means that no service runs with this state directory.
func orNobody(err error) error {
	if _, dial := errors.AsType[*net.OpError](err); dial {
		return errNobody
	}
	return err
}

// keyVerb makes a key and prints it, or revokes those of a principal; a running service knows at once.
// Other instances know within seconds, whether one runs here or not.
func keyVerb(ctx context.Context, s *settings, dir, principal string, revoke bool, stdout io.Writer) error {
	keys, done, err := openMadeKeys(ctx, s, dir)
	if err != nil {
		return err
	}
	defer done()
	var line string
	if revoke {
		n, err := revokeKeys(ctx, keys, principal)
		if err != nil {
			return err
		}
		switch n {
		case 0:
			line = fmt.Sprintf("%s has no made key", principal)
		case 1:
			line = fmt.Sprintf("the made key of %s is revoked", principal)
		default:
			line = fmt.Sprintf("%d made keys of %s are revoked", n, principal)
		}
	} else {
		text, err := makeKey(ctx, keys, principal)
		if err != nil {
			return err
		}
		line = text
	}
	if _, err := fmt.Fprintln(stdout, line); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, controlWithin)
	defer cancel()
	if err := orNobody(hereClient(dir, "").ReadKeys(ctx)); !errors.Is(err, errNobody) {
		return err
	}
	return nil
}
