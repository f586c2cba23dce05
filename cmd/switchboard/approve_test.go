package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/call"
	"switchboard/handoff/homes"
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
	case "person":
		return []simulator.Step{simulator.Ask{Command: "terraform apply", Person: true, Accepted: yes, Declined: no}}
	case "hello", "hello again":
		return yes
	}
	return nil
}

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
type quietVoice chan handoff.VoiceEvent

func (v quietVoice) Events() <-chan handoff.VoiceEvent { return v }
func (v quietVoice) Say(handoff.Utterance)             {}

var approver = handoff.Grant{Caller: handoff.Caller{Principal: "owner"}, Approve: handoff.ApproveAll, Page: true}

// desk is a router over the client for Codex and a simulated machine.
func desk(t *testing.T) (*homes.Homes, quietVoice, *auditList, *simulator.World) {
	fleet, m := atticFleet(t)
	r, voice, audit := deskOf(t, fleet)
	return r, voice, audit, m.world
}

// atticFleet is a fleet of one simulated machine.
func atticFleet(t *testing.T) (*servers.Fleet, *simulatedMachine) {
	m := &simulatedMachine{t: t, world: simulator.NewWorld(simulator.Config{Script: approveScript}), name: "attic"}
	m.serve()
	fleet, err := servers.New(servers.Config{Specs: []servers.Spec{{Name: "attic", Dir: "/src", Dial: codex.Dialer(codex.Config{Name: "attic", Way: byURL("ws://" + m.address)})}}})
	must(t, err)
	background(t, fleet.Run)
	return fleet, m
}

func deskOf(t *testing.T, fleet *servers.Fleet) (*homes.Homes, quietVoice, *auditList) {
	audit, voice := &auditList{}, make(quietVoice)
	r := homes.New(router.Config{Fleet: fleet, Auditor: audit})
	calls := call.New(call.Config{Handoffs: r, Attending: r, Questions: r})
	background(t, r.Run)
	background(t, func(ctx context.Context) error { _ = calls.Serve(ctx, &approver, voice); return nil })
	return r, voice, audit
}

// newestWork waits until the work of the approver is as wanted, and returns the newest.
func newestWork(t *testing.T, r *homes.Homes, what string, as func(newestFirst []handoff.Record) bool) handoff.Record {
	t.Helper()
	var all []handoff.Record
	until(t, what, func() bool {
		all, _ = r.Handoffs(approver)
		return len(all) > 0 && as(all)
	})
	return all[0]
}

// TestOthersAreAsked: what an agent asks in a turn that somebody else began in a session of ours is shown with its
// machine until they have answered, and is no question of ours.
func TestOthersAreAsked(t *testing.T) {
	t.Parallel()
	fleet, m := atticFleet(t)
	r, voice, audit := deskOf(t, fleet)
	voice <- handoff.FunctionCall{CallID: "c1", Asked: time.Now(), Tool: tools.Codex, Arguments: `{"server":"attic","prompt":"hello"}`}
	shared := newestWork(t, r, "work", func(all []handoff.Record) bool { return all[0].Outcome != "" }).ThreadID

	link, err := codex.Dialer(codex.Config{Name: "editor", Way: byURL("ws://" + m.address)})(t.Context())
	must(t, err)
	defer func() { _ = link.Conn.Close() }()
	at, err := link.Conn.Attach(t.Context(), shared)
	must(t, err)
	turn, err := at.Agent.Start(t.Context(), handoff.Turn{Input: handoff.TextInput("command")})
	must(t, err)
	var asked []handoff.AskedThere
	shows := func(n int) func() bool {
		return func() bool {
			asked = fleet.Servers(t.Context(), approver)[0].AskedThere
			return len(asked) == n
		}
	}
	voice <- handoff.FunctionCall{CallID: "c2", Asked: time.Now(), Tool: tools.Codex, Arguments: `{"server":"attic","prompt":"hello again"}`} // waits for theirs
	for u, err := range at.Agent.Follow(t.Context(), turn) {
		must(t, err)
		q, isQuestion := u.(handoff.Question)
		if !isQuestion {
			continue
		}
		until(t, "what they are asked", shows(1))
		if asked[0].Thread != shared || asked[0].Text != "npm install" {
			t.Errorf("shown %+v", asked)
		}
		if own := r.Questions(approver); len(own) != 0 {
			t.Errorf("asked of us: %+v", own)
		}
		if err := r.Decide(t.Context(), approver, handoff.QuestionID("attic:"+shared+":"+string(turn)+":0"), handoff.DecisionAccept); handoff.CodeOf(err) != handoff.CodeNotPending {
			t.Errorf("our yes: %v", err)
		}
		must(t, at.Agent.(handoff.Controls).Decide(t.Context(), q.ID, handoff.DecisionAccept))
	}
	until(t, "nothing more", shows(0))
	newestWork(t, r, "what waited", func(all []handoff.Record) bool { return len(all) == 2 && all[0].Outcome != "" })
	if audit.String() != "[]" {
		t.Errorf("audit %s", audit)
	}
}

// TestPersonDecides: what Codex wants a person to decide is said so, and neither a voice, a program nor a yes for the
// whole session allows it.
func TestPersonDecides(t *testing.T) {
	t.Parallel()
	r, voice, audit, _ := desk(t)
	voice <- handoff.FunctionCall{CallID: "c1", Asked: time.Now(), Tool: tools.Codex, Arguments: `{"server":"attic","prompt":"person"}`}
	until(t, "a question", func() bool { return len(r.Questions(approver)) == 1 })
	q := r.Questions(approver)[0]
	if !q.Person || q.Voice || q.Tap != handoff.WhyPerson || q.Beyond != "" || slices.Contains(q.Decisions, handoff.DecisionAcceptForSession) {
		t.Errorf("asked %+v", q)
	}
	program := approver
	program.Page = false
	if err := r.Decide(t.Context(), program, q.ID, handoff.DecisionAccept); handoff.CodeOf(err) != handoff.CodeNeedsTap {
		t.Errorf("a program's yes: %v", err)
	}
	if err := r.Decide(t.Context(), approver, q.ID, handoff.DecisionAcceptForSession); err == nil {
		t.Error("it was allowed for the session")
	}
	must(t, r.Decide(t.Context(), approver, q.ID, handoff.DecisionDecline))
	rec := newestWork(t, r, "the outcome", func(all []handoff.Record) bool { return all[0].Outcome != "" })
	if rec.Text != "refused " || audit.String() != "[decline by page, high]" {
		t.Errorf("%q, audit %s", rec.Text, audit)
	}
}
