package responses

import (
	"context"
	"testing"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/threads"
	"switchboard/servers/serverstest"
)

// A deadStore never answers.
type deadStore struct{ threads.Store }

func (deadStore) Advance(context.Context, threads.Step) (threads.Result, error) {
	return threads.Result{}, handoff.Fault(handoff.CodeUnreachable, "/home/me/switchboard.db", "")
}

func (deadStore) Read(context.Context, string, string) (threads.Record, error) {
	return threads.Record{}, handoff.Fault(handoff.CodeUnreachable, "/home/me/switchboard.db", "")
}

// TestStoreThatDoesNotAnswer: when the store does not answer, a caller is told that the machine does not, and nothing
// about the store.
func TestStoreThatDoesNotAnswer(t *testing.T) {
	r := newRig(t, newFake(t, nil), func(c *Config) { c.Threads = deadStore{c.Threads} })
	link, err := r.dial(t.Context())
	must(t, err)
	conn := link.Conn
	for name, do := range map[string]func() error{
		"create": func() error { _, err := conn.Create(t.Context(), ""); return err },
		"attach": func() error { _, err := conn.Attach(t.Context(), "thr_x"); return err },
	} {
		if e := handoff.AsError(do()); e.Code != handoff.CodeUnreachable || e.Subject != r.cfg.Name {
			t.Errorf("%s: %v", name, e)
		}
	}
}

// TestNothingIsLeftAside: an ephemeral thread is gone when its attachment is closed, also if a turn still runs then.
func TestNothingIsLeftAside(t *testing.T) {
	f := newFake(t, agentOf)
	r := newRig(t, f, nil)
	link, err := r.dial(t.Context())
	must(t, err)
	conn := link.Conn.(*conn)
	for _, runs := range []bool{false, true} {
		a, err := conn.CreateEphemeral(t.Context(), "")
		must(t, err)
		if runs {
			_, err := a.Agent.Start(t.Context(), handoff.Turn{ID: "1", Input: handoff.TextInput(serverstest.PromptWait)})
			must(t, err)
		}
		must(t, a.Agent.Close())
		there := func() bool {
			_, err := conn.server.asides.Read(t.Context(), r.cfg.Name, a.Target.Thread)
			return err == nil
		}
		if there() != runs {
			t.Errorf("a turn runs: %t, it is there: %t", runs, there())
		}
		if runs {
			f.Release()
		}
		for end := time.Now().Add(3 * time.Minute); there(); time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal("it stays")
			}
		}
	}
}
