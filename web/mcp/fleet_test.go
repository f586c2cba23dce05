package mcp_test

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"strings"
	"sync"
	"time"

	"switchboard/handoff"
)

// fleet is a fleet of one machine, bigpc, that does what the prompt says: "wait" goes on until finish, "ask" and
// "danger" ask for a command first, "form" and "secret" for answers to two fields, everything else is done at once.
type fleet struct {
	mu        sync.Mutex
	records   []handoff.Record
	questions []handoff.RecordQuestion
	decided   []string
	followers int
	changed   chan struct{}
	parents   []string          // of the spans in which work was begun
	prints    map[string]string // ids of work whose asker was not told, by caller and print
	told      int
}

func newFleet() *fleet { return &fleet{changed: make(chan struct{}), prints: map[string]string{}} }

func (f *fleet) change(do func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	do()
	close(f.changed)
	f.changed = make(chan struct{})
}

func (f *fleet) Resolve(_ context.Context, _ handoff.Grant, t handoff.Target) (handoff.Target, error) {
	if t.Server != "bigpc" {
		return t, handoff.Fault(handoff.CodeUnknownServer, t.Server, "")
	}
	return t, nil
}

func (f *fleet) Handoffs(g handoff.Grant) ([]handoff.Record, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var own []handoff.Record
	for _, rec := range f.records {
		if rec.Title == g.Caller.String() {
			own = append(own, rec)
		}
	}
	return own, nil
}

func (f *fleet) Questions(handoff.Grant) []handoff.RecordQuestion {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]handoff.RecordQuestion(nil), f.questions...)
}

func (f *fleet) Question(_ handoff.Grant, name string) (handoff.OpenQuestion, error) {
	for _, q := range f.Questions(handoff.Grant{}) {
		if name == "" || name == q.Label || name == string(q.ID) {
			return handoff.OpenQuestion{Shown: q}, nil
		}
	}
	return handoff.OpenQuestion{}, handoff.Fault(handoff.CodeNotPending, "", "")
}

func (f *fleet) Stop(_ context.Context, _ handoff.Grant, id string, _ handoff.StopOf) error {
	f.finish(id, handoff.OutcomeInterrupted, "stopped")
	return nil
}

func (f *fleet) Decide(_ context.Context, g handoff.Grant, id handoff.QuestionID, d handoff.Decision) error {
	for _, q := range f.Questions(g) {
		if q.ID == id && q.Risk == "high" && !g.Page {
			return handoff.Fault(handoff.CodeNeedsTap, "it is risky", "")
		}
	}
	f.change(func() {
		f.decided = append(f.decided, string(d))
		f.questions = nil
	})
	f.finish(strings.TrimPrefix(string(id), "question of "), handoff.OutcomeResult, "It was "+string(d)+"ed.")
	return nil
}

func (f *fleet) Reply(ctx context.Context, g handoff.Grant, id handoff.QuestionID, reply handoff.Reply) error {
	if reply.Answers != nil {
		return f.Decide(ctx, g, id, handoff.Decision(fmt.Sprint(reply.Answers)))
	}
	return f.Decide(ctx, g, id, handoff.Decision(reply.Words))
}

func (f *fleet) finish(id string, o handoff.Outcome, text string) {
	f.change(func() {
		for i := range f.records {
			if rec := &f.records[i]; rec.ID == id && rec.Outcome == "" {
				rec.Outcome, rec.State, rec.Text, rec.Spoken = o, handoff.StatusCompleted, text, text
				rec.EndedAt = new(time.Now())
			}
		}
	})
}

func (f *fleet) Start(ctx context.Context, g handoff.Grant, req handoff.Request) (handoff.ID, error) {
	if req.Target.Server != "bigpc" {
		return "", handoff.Fault(handoff.CodeUnknownServer, req.Target.Server, "")
	}
	prompt := handoff.InputText(req.Input)
	var id string
	again := false
	f.change(func() {
		print := g.Caller.String() + " " + req.Print
		if id, again = f.prints[print]; again {
			return
		}
		f.prints[print] = fmt.Sprintf("w-%d", len(f.records)+1)
		f.parents = append(f.parents, handoff.SpanOf(ctx).Parent())
		id = fmt.Sprintf("w-%d", len(f.records)+1)
		f.records = append(
			f.records,
			handoff.Record{
				ID: id, Server: "bigpc", Title: g.Caller.String(), Prompt: prompt, Client: req.Origin.Client,
				State: handoff.StatusStarted, CreatedAt: time.Now(),
			},
		)
		if verb, _, _ := strings.Cut(prompt, " "); verb == "ask" || verb == "danger" || verb == "form" || verb == "secret" {
			q := handoff.RecordQuestion{
				ID: handoff.QuestionID("question of " + id), Label: "q1", Handoff: id, Server: "bigpc",
				Kind: handoff.QuestionCommand, Command: "go test ./...", Risk: "medium",
			}
			if verb == "form" || verb == "secret" {
				q.Words, q.Decisions, q.Asks = true, nil, []handoff.Ask{
					{Text: "Where?", Options: []string{"here", "in the sandbox"}, Only: true},
					{Text: "Why?", Optional: true, Secret: verb == "secret"},
				}
			}
			if verb == "danger" {
				q.Command, q.Risk, q.Tap = "rm -rf ~", "high", "it is risky"
			}
			f.questions = append(f.questions, q)
		}
	})
	switch verb, _, _ := strings.Cut(prompt, " "); {
	case again, verb == "wait", verb == "ask", verb == "danger", verb == "form", verb == "secret":
	default:
		f.finish(id, handoff.OutcomeResult, "Done: "+prompt)
	}
	return handoff.ID(id), nil
}

func (f *fleet) Follow(
	ctx context.Context, g handoff.Grant, id handoff.ID, _ uint64,
) iter.Seq2[handoff.Event, error] {
	return func(yield func(handoff.Event, error) bool) {
		f.change(func() { f.followers++ })
		defer f.change(func() { f.followers-- })
		for {
			f.mu.Lock()
			changed, found := f.changed, handoff.Record{}
			for _, rec := range f.records {
				if rec.ID == string(id) && rec.Title == g.Caller.String() {
					found = rec
				}
			}
			f.mu.Unlock()
			e := handoff.Event{ID: id, Record: found, Kind: handoff.EventSnapshot{}}
			switch {
			case found.ID == "":
				yield(e, handoff.Fault(handoff.CodeNotFound, "such work", ""))
				return
			case found.Outcome != "":
				e.Kind = handoff.EventEnded{}
			}
			if !yield(e, nil) || found.Outcome != "" {
				return
			}
			select {
			case <-changed:
			case <-ctx.Done():
				yield(handoff.Event{}, ctx.Err())
				return
			}
		}
	}
}

func (f *fleet) Told(_ context.Context, _ handoff.Grant, id handoff.ID) error {
	f.change(func() {
		f.told++
		maps.DeleteFunc(f.prints, func(_, of string) bool { return of == string(id) })
		for i := range f.records {
			if f.records[i].ID == string(id) {
				f.records[i].State = handoff.StatusDelivered
			}
		}
	})
	return nil
}

func (f *fleet) Recovered(context.Context, time.Duration) error { return nil }

func (f *fleet) Servers(context.Context, handoff.Grant) []handoff.ServerInfo {
	return []handoff.ServerInfo{{Name: "bigpc", Kind: "codex", Health: "up"}}
}

func (f *fleet) Sessions(context.Context, handoff.Grant, handoff.SessionQuery) (handoff.SessionList, error) {
	return handoff.SessionList{}, nil
}

func (f *fleet) Read(context.Context, handoff.Grant, handoff.Target, int) (handoff.Transcript, error) {
	return handoff.Transcript{}, handoff.Fault(handoff.CodeUnknownSession, "that", "")
}

// until waits for something that change makes true.
func (f *fleet) until(done func() bool) {
	for {
		f.mu.Lock()
		changed, is := f.changed, done()
		f.mu.Unlock()
		if is {
			return
		}
		<-changed
	}
}

// count returns how much work was begun.
func (f *fleet) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.records)
}

func (f *fleet) Heard(context.Context, handoff.Grant, handoff.ID) error { return nil }
