package realtime

import (
	"context"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/handoff"
	"switchboard/realtime/rtc/rtctest"
)

// A callBook is a store in memory that several instances use.
type callBook struct {
	mu   sync.Mutex
	in   map[string]string            // Guarded by mu: which instance is in a call
	dead map[string]bool              // Guarded by mu
	left map[string]map[string]string // Guarded by mu: of callers, by call
}

func newCallBook() *callBook {
	return &callBook{in: map[string]string{}, dead: map[string]bool{}, left: map[string]map[string]string{}}
}

// look returns which instance is in a call, and whether a body is kept.
func (r *callBook) look(call string) (in string, kept bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.in[call], r.left[someone.Caller.String()][call] != ""
}

// registered is the [Attached] of one instance over a callBook.
type registered struct {
	*callBook
	id string
}

// mute is an [Attached] that does what it is asked to, but whose answers are lost.
type mute struct{ registered }

func (m mute) Keep(ctx context.Context, c handoff.Caller, call string, body []byte) (bool, error) {
	_, _ = m.registered.Keep(ctx, c, call, body)
	return false, context.DeadlineExceeded
}

// lingering is a router that leaves calls only when told to.
type lingering struct {
	*listener
	leaves chan struct{}
}

func (l lingering) Serve(ctx context.Context, g *handoff.Grant, v handoff.Voice) error {
	defer func() { <-l.leaves }()
	return l.listener.Serve(ctx, g, v)
}

func (r registered) Keep(_ context.Context, c handoff.Caller, call string, body []byte) (bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if there := r.in[call]; there != "" && there != r.id && !r.dead[there] {
		return false, nil
	}
	r.in[call] = r.id
	if r.left[c.String()] == nil {
		r.left[c.String()] = map[string]string{}
	}
	r.left[c.String()][call] = string(body)
	return true, nil
}

func (r registered) Drop(_ context.Context, c handoff.Caller, call string, over bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if over {
		delete(r.left[c.String()], call)
	}
	if r.in[call] == r.id {
		delete(r.in, call)
	}
	return nil
}

func (r registered) Left(_ context.Context, c handoff.Caller) (map[string]string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.left[c.String()]), nil
}

// lasts configures a front as one of several instances.
func (r registered) lasts(cfg *Config) {
	cfg.Attached, cfg.Tools = r, described
	cfg.Again = func(_ context.Context, by string, c handoff.Caller) (handoff.Grant, error) {
		if by != "their key" {
			return handoff.Grant{}, handoff.Fault(handoff.CodeUnauthorized, "", "")
		}
		return handoff.Grant{Caller: c, By: by, Instructions: handoff.InstructAll}, nil
	}
}

// described returns our tools with descriptions, by which another instance recognises them.
func described(g handoff.Grant) ([]handoff.Tool, handoff.Guide) {
	tools, guide := ours(g)
	for i := range tools {
		tools[i].Description = "Does what " + tools[i].Name + " does."
	}
	return tools, guide
}

// TestLastingCall: one of two instances is in a call of the provider. The caller's next instance joins the call, with
// the tools in force, and leaves nothing in the store when the call is hung up.
func TestLastingCall(t *testing.T) {
	all := newCallBook()
	first, second := &listener{on: works}, &listener{on: works}
	p := provide(t, testsRun(), first, registered{all, "a"}.lasts)
	p.grant.By = "their key"
	cfg := Config{ModelURL: p.model, Router: second}
	registered{all, "b"}.lasts(&cfg)
	other := runs(t, cfg)
	if status, body := p.attach(p.id); status != http.StatusCreated {
		t.Fatalf("%d %s", status, body)
	}
	p.tools(allOurs...)
	answer := httptest.NewRecorder()
	other.ServeAttach(answer, httptest.NewRequest(http.MethodPost, "/", nil), p.grant, p.id)
	if answer.Code != http.StatusConflict || p.front.Busy(someone.Caller) || other.Busy(someone.Caller) {
		t.Errorf("another instance joins it, too: %d; or it is waited for", answer.Code)
	}
	home, gone := context.WithCancel(t.Context())
	defer gone()
	resumed := make(chan struct{})
	go func() { // while the first is in it
		defer close(resumed)
		other.Resume(home, someone.Caller)
	}()
	<-resumed
	p.front.Leave(someone.Caller)
	p.tools("weather") // it asks for nothing while neither is in it
	p.tools(allOurs...)
	rtctest.Eventually(t, "the second to be in it", func() bool { return len(other.Calls(someone)) == 1 })
	rtctest.Eventually(t, "the first not to be", func() bool { return p.open() == 0 })
	writes(t, p.caller, "run the tests on bigpc")
	if heard := strings.Join(p.until("They pass."), "\n"); !strings.Contains(heard, "do not call a tool again") {
		t.Errorf("the model is not told that another instance was in the call:\n%s", heard)
	}
	for _, e := range first.heard() {
		if call, is := e.(handoff.FunctionCall); is {
			t.Errorf("the first was asked for %+v", call)
		}
	}
	if in, kept := all.look(p.id); in != "b" || !kept {
		t.Errorf("%q is in the call, kept: %t", in, kept)
	}
	if err := other.Hangup(someone, p.id); err != nil {
		t.Fatal(err)
	}
	p.tools("weather") // the call goes on without us
	rtctest.Eventually(t, "nothing to be kept", func() bool { in, kept := all.look(p.id); return in == "" && !kept })
}

// TestLastingCallLostTwice: the socket of a call is lost, and its caller moves to another instance before the router
// has left the call. It is not dialled again here, and the other instance can join it.
func TestLastingCallLostTwice(t *testing.T) {
	all, leaves := newCallBook(), make(chan struct{})
	p := provide(t, testsRun(), nil, registered{all, "a"}.lasts, func(cfg *Config) {
		cfg.Router = lingering{&listener{on: works}, leaves}
	})
	p.grant.By = "their key"
	if status, body := p.attach(p.id); status != http.StatusCreated {
		t.Fatalf("%d %s", status, body)
	}
	p.tools(allOurs...)
	p.cut()
	rtctest.Eventually(t, "the call to be over here", func() bool { return p.open() == 0 })
	p.front.Leave(someone.Caller)
	close(leaves)
	rtctest.Eventually(t, "another to be let in", func() bool { in, kept := all.look(p.id); return in == "" && kept })
}

// TestLastingCallUnsaid: when the store's answer is lost, a call that no instance was in is not claimed. What another
// instance stored of a call stays for the caller's next instance.
func TestLastingCallUnsaid(t *testing.T) {
	all := newCallBook()
	cfg := Config{ModelURL: "ws://127.0.0.1:1", Router: &listener{}}
	registered{all, "a"}.lasts(&cfg)
	cfg.Attached = mute{registered{all, "a"}}
	front := runs(t, cfg)
	grant := someone
	grant.By = "their key"
	answer := httptest.NewRecorder()
	front.ServeAttach(answer, httptest.NewRequest(http.MethodPost, "/", nil), grant, "rtc_1")
	if in, kept := all.look("rtc_1"); answer.Code != http.StatusServiceUnavailable || in != "" || kept {
		t.Errorf("%d; %q is in it, kept: %t", answer.Code, in, kept)
	}
	fault := front.newClaim(grant, "rtc_2").keep(t.Context(), claimedCall{By: grant.By})
	if in, kept := all.look("rtc_2"); fault == nil || in != "" || !kept {
		t.Errorf("%v; %q is in it, kept: %t", fault, in, kept)
	}
}

// TestLastingCallOver: a call that ended while no instance was in it is forgotten. So is one whose caller may not be in
// it any more, and it is hung up if we began it. A call that another running instance is in is left alone.
func TestLastingCallOver(t *testing.T) {
	asked := make(chan string, 10)
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.Method + " " + strings.TrimPrefix(r.URL.Path, "/v1/realtime") + r.URL.Query().Get("call_id")
		if r.Method == http.MethodGet {
			http.NotFound(w, r)
		}
	}))
	defer provider.Close()
	for name, tt := range map[string]struct {
		was  claimedCall
		in   string
		want []string
	}{
		"over":          {claimedCall{By: "their key"}, "dead", []string{"GET rtc_1"}},
		"ours, over":    {claimedCall{By: "their key", Ours: true}, "", []string{"GET rtc_1", "POST /calls/rtc_1/hangup"}},
		"revoked":       {claimedCall{By: "another"}, "dead", nil},
		"ours, revoked": {claimedCall{By: "another", Ours: true}, "", []string{"POST /calls/rtc_1/hangup"}},
	} {
		t.Run(name, func(t *testing.T) {
			all := newCallBook()
			all.dead["dead"] = true
			if tt.in != "" {
				all.in["rtc_1"] = tt.in
			}
			all.left[someone.Caller.String()] = map[string]string{"rtc_1": handoff.Encode(tt.was)}
			cfg := Config{ModelURL: "ws" + strings.TrimPrefix(provider.URL, "http") + "/v1/realtime", Router: &listener{}}
			registered{all, "b"}.lasts(&cfg)
			front := runs(t, cfg)
			front.Resume(t.Context(), someone.Caller)
			for _, want := range tt.want {
				if got := rtctest.Take(t, asked, want); got != want {
					t.Errorf("asked for %s, want %s", got, want)
				}
			}
			rtctest.Eventually(t, "it to be forgotten", func() bool { _, kept := all.look("rtc_1"); return !kept })
		})
	}
}

// TestLastingCallLimited: a call that exceeds the limit of its key is tried again for a while, since an old call may
// still count elsewhere. Then it is ended, unless another running instance is in it, or this one ends first.
func TestLastingCallLimited(t *testing.T) {
	for name, tt := range map[string]struct {
		in         string
		ends, kept bool
	}{
		"nobody is in it":    {"", false, false},
		"another is in it":   {"a", false, true},
		"this instance ends": {"", true, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				all, was := newCallBook(), claimedCall{By: "their key"}
				all.in["rtc_1"] = tt.in
				all.left[someone.Caller.String()] = map[string]string{"rtc_1": handoff.Encode(was)}
				counts := &register{of: map[string]CallsHere{"a key k": {Number: 1, Calls: 1}}}
				cfg := Config{ModelURL: "ws://127.0.0.1:1", Router: &listener{}, OpenCalls: registerOf{counts, "b"}}
				registered{all, "b"}.lasts(&cfg)
				cfg.Again = func(_ context.Context, by string, c handoff.Caller) (handoff.Grant, error) {
					return handoff.Grant{Caller: c, By: by, Key: "k", KeyLimits: handoff.Limits{Calls: 1}}, nil
				}
				front, err := NewFront(cfg)
				if err != nil {
					t.Fatal(err)
				}
				ctx, end := context.WithCancel(t.Context())
				defer end()
				over := make(chan struct{})
				go func() {
					defer close(over)
					front.resume(ctx, t.Context(), someone.Caller, "rtc_1", was)
				}()
				time.Sleep(time.Second)
				synctest.Wait()
				if _, kept := all.look("rtc_1"); !kept {
					t.Error("it is not waited for")
				}
				if tt.ends {
					end()
				}
				<-over
				if _, kept := all.look("rtc_1"); kept != tt.kept {
					t.Errorf("it is kept: %t, want %t", kept, tt.kept)
				}
			})
		})
	}
}
