package main

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/call"
	"switchboard/handoff/router"
	"switchboard/handoff/tools"
	"switchboard/servers"
	"switchboard/servers/codex"
	"switchboard/servers/simulator"
)

// approveScript asks for what the prompt names.
func approveScript(p simulator.Prompt) []simulator.Step {
	yes, no := []simulator.Step{simulator.Say{Text: "allowed "}}, []simulator.Step{simulator.Say{Text: "refused "}}
	command := simulator.Ask{Command: "npm install", Accepted: yes, Declined: no}
	switch p.Text {
	case "command":
		return []simulator.Step{command}
	case "command twice":
		return []simulator.Step{command, command}
	case "edit":
		return []simulator.Step{simulator.Ask{Changes: []simulator.Change{{Path: "/src/notes.txt", Diff: "@@ -1 +1 @@\n-a\n+b\n"}}, Accepted: yes, Declined: no}}
	case "rights":
		return []simulator.Step{simulator.Permit{Network: true, Granted: yes, Refused: no}}
	case "tool":
		return []simulator.Step{simulator.Elicit{Tool: "danger", Granted: yes, Refused: no}}
	case "hello", "hello again":
		return yes
	case "words":
		return []simulator.Step{simulator.Input{Queries: []simulator.Query{{Text: "Which?", Options: []string{"Left", "Right"}}}, Answered: func(a []string) []simulator.Step {
			return []simulator.Step{simulator.Say{Text: fmt.Sprintf("said <%s>", a[0])}}
		}}}
	}
	return nil
}

// stickyNote keeps nothing.
type stickyNote struct{}

func (stickyNote) List(context.Context, handoff.Caller) ([]handoff.Sticky, error) { return nil, nil }
func (stickyNote) Set(context.Context, handoff.Caller, handoff.Sticky) error      { return nil }
func (stickyNote) Clear(context.Context, handoff.Caller, handoff.Target) error    { return nil }

// An auditList keeps what was written down.
type auditList struct {
	mu   sync.Mutex
	list []string // Guarded by mu
}

func (a *auditList) Audit(_ context.Context, rec handoff.AuditRecord) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.list = append(a.list, fmt.Sprintf("%s by %s, %s", rec.Decision, rec.By, rec.Tier))
	return nil
}

func (a *auditList) String() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return fmt.Sprint(a.list)
}

// quietVoice is a call in which nobody says anything.
type quietVoice chan handoff.Event

func (v quietVoice) Events() <-chan handoff.Event { return v }
func (v quietVoice) Say(handoff.Utterance)        {}

var approver = handoff.Grant{Caller: handoff.Caller{Principal: "owner"}, Approve: handoff.ApproveAll, Page: true}

// desk is a router over the client for Codex and a simulated machine.
func desk(t *testing.T) (*router.Router, quietVoice, *auditList, *simulator.World) {
	m := &simulatedMachine{t: t, world: simulator.NewWorld(simulator.Config{Script: approveScript}), name: "attic"}
	m.serve()
	t.Cleanup(func() { m.kill() })
	fleet, err := servers.New(servers.Config{Specs: []servers.Spec{{Name: "attic", Dir: "/src", Dial: codex.Dialer(codex.Config{Name: "attic", Way: byURL("ws://" + m.address)})}}})
	must(t, err)
	audit, voice := &auditList{}, make(quietVoice)
	r := router.NewRouter(router.Config{Fleet: fleet, Stickies: stickyNote{}, Auditor: audit})
	calls := call.New(call.Config{Runs: r, Attending: r, Questions: r})
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() { _ = fleet.Run(ctx) })
	all.Go(func() { _ = r.Run(ctx) })
	all.Go(func() { _ = calls.Serve(ctx, approver, voice) })
	t.Cleanup(func() { cancel(); all.Wait() })
	return r, voice, audit, m.world
}

// soon waits until found gives something.
func soon[T any](t *testing.T, what string, found func() (T, bool)) T {
	t.Helper()
	for begun := time.Now(); time.Since(begun) < patience; time.Sleep(5 * time.Millisecond) {
		if v, ok := found(); ok {
			return v
		}
	}
	t.Fatalf("no %s in a minute", what)
	panic("unreachable")
}

// TestEveryQuestion answers every kind of question of an agent, through the client and over the wire.
func TestEveryQuestion(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		prompt, answer string
		result         string
		outcome        handoff.Outcome
		audited        string
	}{
		{"command", "accept", "allowed ", handoff.OutcomeResult, "[accept by page, medium]"},
		{"command", "decline", "refused ", handoff.OutcomeResult, "[decline by page, medium]"},
		{"command", "stop", "", handoff.OutcomeInterrupted, "[stop by page, medium]"},
		{"command twice", "accept_for_session", "allowed ", handoff.OutcomeResult, "[accept_for_session by page, medium]"},
		{"edit", "accept", "allowed ", handoff.OutcomeResult, "[accept by page, medium]"},
		{"edit", "decline", "refused ", handoff.OutcomeResult, "[decline by page, medium]"},
		{"edit", "stop", "", handoff.OutcomeInterrupted, "[stop by page, medium]"},
		{"rights", "accept", "allowed ", handoff.OutcomeResult, "[accept by page, high]"},
		{"rights", "decline", "refused ", handoff.OutcomeResult, "[decline by page, high]"},
		{"tool", "accept", "allowed ", handoff.OutcomeResult, "[accept by page, high]"},
		{"tool", "decline", "refused ", handoff.OutcomeResult, "[decline by page, high]"},
		{"words", "text: right", "said <Right>", handoff.OutcomeResult, "[words by page, high]"},
		{"words", "text: neither, wait", "said <neither, wait>", handoff.OutcomeResult, "[words by page, high]"},
		{"words", "decline", "said <>", handoff.OutcomeResult, "[decline by page, high]"},
	} {
		t.Run(tt.prompt+" "+tt.answer, func(t *testing.T) {
			t.Parallel()
			r, voice, audit, _ := desk(t)
			voice <- handoff.FunctionCall{CallID: "c1", Tool: tools.Codex, Arguments: fmt.Sprintf(`{"server":"attic","prompt":%q}`, tt.prompt)}
			q := soon(t, "question", func() (handoff.RecordQuestion, bool) {
				list := r.Questions(approver)
				return append(list, handoff.RecordQuestion{})[0], len(list) == 1
			})
			answer := func() error {
				if words, ok := cutText(tt.answer); ok {
					return r.Reply(t.Context(), approver, q.ID, words)
				}
				return r.Decide(t.Context(), approver, q.ID, handoff.Decision(tt.answer))
			}
			must(t, answer())
			if err := answer(); err == nil || handoff.AsError(err).Code != handoff.CodeNotPending {
				t.Errorf("the second answer: %v", err)
			}
			rec := soon(t, "outcome", func() (handoff.Record, bool) {
				all, _ := r.Handoffs(approver)
				return all[0], all[0].Outcome != ""
			})
			if rec.Outcome != tt.outcome || rec.Text != tt.result || audit.String() != tt.audited {
				t.Errorf("%s %q, audit %s", rec.Outcome, rec.Text, audit)
			}
		})
	}
}

func cutText(answer string) (string, bool) {
	const prefix = "text: "
	if len(answer) > len(prefix) && answer[:len(prefix)] == prefix {
		return answer[len(prefix):], true
	}
	return "", false
}

// TestCopyOffered: a session that another program holds is copied after a yes, and then it is theirs.
func TestCopyOffered(t *testing.T) {
	t.Parallel()
	r, voice, audit, world := desk(t)
	ask := func(call, prompt string, works int) handoff.Record { // the same words twice could count as a repetition
		voice <- handoff.FunctionCall{CallID: call, Tool: tools.Codex, Arguments: fmt.Sprintf(`{"server":"attic","prompt":%q}`, prompt)}
		return soon(t, "work", func() (handoff.Record, bool) {
			list, _ := r.Handoffs(approver)
			list = append(list, handoff.Record{})
			return list[0], len(list) > works && (list[0].Outcome != "" || len(r.Questions(approver)) > 0)
		})
	}
	first := ask("c1", "hello", 1)
	world.SetFaults("attic", simulator.Faults{InUse: true})
	world.Unload("attic")
	second := ask("c2", "hello again", 2)
	if len(r.Questions(approver)) != 1 || second.ThreadID != first.ThreadID {
		t.Fatalf("nothing was asked: %+v", second)
	}
	q := r.Questions(approver)[0]
	if q.Kind != handoff.QuestionCopy || q.Handoff != second.ID {
		t.Fatalf("question %+v", q)
	}
	must(t, r.Decide(t.Context(), approver, q.ID, handoff.DecisionAccept))
	rec := soon(t, "outcome", func() (handoff.Record, bool) {
		rec, _ := r.Handoff(approver, second.ID)
		return rec, rec.Outcome != ""
	})
	stickies, err := r.Stickies(t.Context(), approver)
	if rec.Outcome != handoff.OutcomeResult || rec.Why != "copy" || rec.ThreadID == first.ThreadID || audit.String() != "[accept by page, low]" ||
		err != nil || len(stickies) != 1 || stickies[0].ThreadID != rec.ThreadID {
		t.Errorf("%+v, audit %s, sticky %+v, %v", rec, audit, stickies, err)
	}
}
