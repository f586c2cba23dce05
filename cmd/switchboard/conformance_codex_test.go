package main

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"switchboard/servers"
	"switchboard/servers/codex"
	"switchboard/servers/serverstest"
)

// TestRealConformance runs the suite against the real codex, with a model behind it that does what the prompts of
// the suite say. To start one takes more CPU time than a case, so that cases use it one after another. Those that look
// at lists have one of their own.
func TestRealConformance(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("needs the real codex, a process for each case")
	}
	free := make(chan *suiteCodex, 64)
	serverstest.TestServer(t, func(own *testing.T) serverstest.Harness {
		c := &suiteCodex{}
		if strings.Contains(own.Name(), "listed") || strings.Contains(own.Name(), "ephemeral") {
			c.begin(own)
		} else {
			select {
			case c = <-free:
			default:
				c.begin(t)
			}
			own.Cleanup(func() { free <- c })
		}
		t, before := own, len(c.provider.begun())
		released := make(chan struct{})
		c.released.Store(&released)
		way, held := newCutter(t, "codex", c.url), atomic.Bool{}
		approval := "on-request" // which asks for nothing in this sandbox
		if strings.Contains(t.Name(), "question") {
			approval = "untrusted"
		}
		return serverstest.Harness{
			Dial: func(ctx context.Context) (*servers.Link, error) {
				way.proxy.Toxics.ResetToxics(ctx)
				if held.Load() {
					return codex.Dialer(c.asChild())(ctx)
				}
				return codex.Dialer(codex.Config{
					Name: "bigpc", Way: byURL(way.at), Sandbox: "danger-full-access", Approval: approval, Reconcile: 100 * time.Millisecond,
				})(ctx)
			},
			Drop:         func() { way.drop(t) },
			Release:      sync.OnceFunc(func() { close(released) }),
			Restart:      func() { c.kill(); way.drop(t); c.realCodex.begin() },
			LoseStart:    func(runs bool) { c.loseStart(t, way, runs) },
			Hold:         func() { held.Store(true) }, // who connects then is another process, on the same files
			Starts:       func() int { return len(c.provider.begun()) - before },
			Pictures:     c.provider.pictures,
			Command:      suiteCommand,
			OtherCommand: otherCommand,
			Unstreamed:   true, // Codex reads what a command prints beside its end
			Gone:         "01a1fac5-6c65-7c13-9ff2-be9c54078f33",
			Dir:          t.TempDir(),
			Lacks: map[string]string{
				"a question is answered in words": "the model that asks in words has a mode of its own",
			},
		}
	})
}

// loseStart cuts the connection with the next start: before that has arrived, or once the model was asked.
func (c *suiteCodex) loseStart(t *testing.T, way *cutter, runs bool) {
	if !runs {
		way.toxic(t, "limit_data", "upstream", `{"bytes":1}`)
		return
	}
	way.toxic(t, "timeout", "downstream", `{"timeout":0}`) // what codex answers is lost
	asked := len(c.provider.prompts())
	background(t, func(ctx context.Context) error {
		for len(c.provider.prompts()) == asked && ctx.Err() == nil {
			pause(ctx, time.Millisecond)
		}
		way.toxic(t, "timeout", "upstream", `{"timeout":1}`) // ends the connection, and the next one finds the proxy there
		return nil
	})
}

// A suiteCodex is a real codex of one case at a time.
type suiteCodex struct {
	*realCodex
	released atomic.Pointer[chan struct{}] // of the case
}

// begin starts it, until a test ends.
func (c *suiteCodex) begin(t *testing.T) {
	c.realCodex = startCodex(t)
	c.provider.script = func(s *providerStream, items []providerItem) bool { return suiteModel(s, items, *c.released.Load()) }
}

// suiteCommand and otherCommand really run, and do what the suite says of its commands.
const (
	suiteCommand = "echo first line; echo second line; exit 3"
	otherCommand = "echo other line"
)

// suiteModel is the model behind a codex under the suite. It reports whether the answer is complete.
func suiteModel(s *providerStream, items []providerItem, released <-chan struct{}) bool {
	user, output := newest(items)
	prompt, _, _ := strings.Cut(user, " ü")
	switch prompt {
	case serverstest.PromptHello:
		s.say(serverstest.TextHello, 0)
	case serverstest.PromptCommand:
		s.callOnce(output, suiteCommand, serverstest.TextCommand)
	case serverstest.PromptBoth:
		if output == "" {
			s.shell(suiteCommand)
			s.shell(otherCommand)
			return true
		}
		s.say(serverstest.TextBoth, 0)
	case serverstest.PromptEdit:
		s.callOnce(output, "apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: "+serverstest.EditPath+"\n+b\n*** End Patch\nEOF", serverstest.TextEdit)
	case serverstest.PromptAsk:
		after := serverstest.TextAccepted
		if strings.Contains(output, "rejected") {
			after = serverstest.TextDeclined
		}
		s.callOnce(output, serverstest.AskCommand, after)
	case serverstest.PromptWait:
		s.say(serverstest.TextWaiting, 0)
		if !s.until(released) {
			return false
		}
		s.say(serverstest.TextBack, 0)
	case serverstest.PromptMind:
		if !s.until(released) {
			return false
		}
		s.say(serverstest.TextMinded, 0)
	case serverstest.PromptFail:
		s.event("response.failed", map[string]any{"response": map[string]any{
			"id": s.id(), "status": "failed", "error": map[string]any{"code": "invalid_prompt", "message": serverstest.DetailFail},
		}})
		return false
	default:
		s.say("I know nothing of "+prompt, 0)
	}
	return true
}

// until waits for a signal, unless whoever asked has left.
func (s *providerStream) until(signal <-chan struct{}) bool {
	select {
	case <-signal:
		return true
	case <-s.r.Context().Done():
		return false
	}
}

// callOnce calls the shell, and says something once it gave its output.
func (s *providerStream) callOnce(output, command, after string) {
	if output == "" {
		s.shell(command)
		return
	}
	s.say(after, 0)
}

// newest returns the last message of the user and the output that follows it, if any.
func newest(items []providerItem) (user, output string) {
	for _, it := range items {
		if strings.HasSuffix(it.Type, "call_output") {
			output = string(it.Output)
			continue
		}
		var parts []struct{ Text string }
		if it.Role == "user" && json.Unmarshal(it.Content, &parts) == nil && len(parts) > 0 && !strings.HasPrefix(parts[0].Text, "<") {
			user, output = parts[0].Text, ""
		}
	}
	return user, output
}

// pictures counts those in the newest request.
func (p *fakeProvider) pictures() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Count(p.bodies[len(p.bodies)-1], `"input_image"`)
}

// begun returns the words that began a turn: what was told to a waiting one is none.
func (p *fakeProvider) begun() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []string
	for _, body := range p.bodies {
		var req struct{ Input []providerItem }
		if json.Unmarshal([]byte(body), &req) != nil {
			continue
		}
		if user, output := newest(req.Input); output == "" && user != serverstest.PromptMind {
			all = append(all, user)
		}
	}
	return all
}
