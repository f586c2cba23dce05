package tools

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/handoff"
)

// office is a backend with one machine on which work runs as its events say. With it the test is a front of its own,
// which knows no call and no HTTP.
type office struct {
	desk
	events []handoff.Event // of each handoff; after them nothing happens
	asked  []handoff.RecordQuestion
	began  []handoff.Request // by key once
	did    []string
}

var owner = handoff.Grant{Caller: handoff.Caller{Principal: "owner"}}

func (o *office) Servers(context.Context, handoff.Grant) []handoff.ServerInfo {
	return []handoff.ServerInfo{{
		Name: "bigpc", Aliases: []string{"the desktop"}, Kind: "codex", Health: handoff.HealthDown, Problem: "no answer",
		Projects: []string{"api"}, Version: "1.2", Note: "It may write.", Working: []string{"Auth"},
	}}
}

func (o *office) Sessions(context.Context, handoff.Grant, handoff.SessionQuery) (handoff.SessionList, error) {
	return handoff.SessionList{
		Items: []handoff.SessionInfo{{
			ID: "t-1", Label: "auth", Title: "Auth refactor", Server: "bigpc", Directory: "/src", Branch: "main",
			Age: "now", Status: handoff.SessionRunning,
		}},
		Errors: []handoff.ServerProblem{{Server: "attic", Code: handoff.CodeUnreachable, Message: "no answer"}},
	}, nil
}

func (o *office) Read(context.Context, handoff.Grant, handoff.Target, int) (handoff.Transcript, error) {
	return handoff.Transcript{
		Server: "bigpc", ID: "t-1", Title: "Auth refactor", Status: handoff.SessionIdle,
		Lines: []handoff.Line{{Role: "agent", Text: "All pass."}},
	}, nil
}

func (o *office) Questions(handoff.Grant) []handoff.RecordQuestion { return o.asked }

func (o *office) Question(_ handoff.Grant, name string) (handoff.OpenQuestion, error) {
	for _, q := range o.asked {
		if q.Label == name {
			return handoff.OpenQuestion{Shown: q}, nil
		}
	}
	return handoff.OpenQuestion{}, handoff.Fault(handoff.CodeNotPending, "", "")
}

func (o *office) Decide(_ context.Context, _ handoff.Grant, id handoff.QuestionID, d handoff.Decision) error {
	o.did = append(o.did, string(d)+" to "+string(id))
	return nil
}

func (o *office) Reply(_ context.Context, _ handoff.Grant, id handoff.QuestionID, reply handoff.Reply) error {
	o.did = append(o.did, reply.Words+" to "+string(id))
	return nil
}

func (o *office) SetLevel(_ context.Context, c handoff.Caller, level handoff.SpeechLevel) error {
	o.did = append(o.did, string(level)+" for "+c.String())
	return nil
}

func (o *office) Start(_ context.Context, _ handoff.Grant, req handoff.Request) (handoff.ID, error) {
	if !slices.ContainsFunc(o.began, func(r handoff.Request) bool { return r.Key == req.Key }) {
		o.began = append(o.began, req)
	}
	return "h-1", nil
}

func (o *office) Give(ctx context.Context, g handoff.Grant, req handoff.Request) (handoff.Record, error) {
	_, err := o.Start(ctx, g, req)
	return handoff.Record{ID: "h-1", Server: "bigpc", State: handoff.StatusStarted}, err
}

func (o *office) Follow(
	ctx context.Context, g handoff.Grant, _ handoff.ID, _ uint64,
) iter.Seq2[handoff.Event, error] {
	return func(yield func(handoff.Event, error) bool) {
		for _, e := range o.events {
			if !e.Record.Shown(g) {
				yield(handoff.Event{}, handoff.Fault(handoff.CodeNotFound, "such work", ""))
				return
			}
			if !yield(e, nil) {
				return
			}
			if _, ended := e.Kind.(handoff.EventEnded); ended {
				return
			}
		}
		<-ctx.Done()
		yield(handoff.Event{}, ctx.Err())
	}
}

func (o *office) RenameSession(context.Context, handoff.Grant, handoff.Target, string) error {
	return nil
}

func (o *office) RemoveWorktree(context.Context, handoff.Grant, handoff.Target) error { return nil }

func (o *office) Heard(context.Context, handoff.Grant, handoff.ID) error { return nil }

// front is a program with a key of its own for a request.
func (o *office) front(key string, wait time.Duration) Direct {
	return Direct{
		Backend: Backend{
			Directory: o, Resolver: o, Namer: o, Trees: o, Work: o, Questions: o, Giver: o, Handoffs: o, Decisions: o, Levels: o,
		},
		Complete: func(req *handoff.Request) { req.Key = key }, Wait: wait,
	}
}

// event is something that happens to h-1, a running work on bigpc.
func event(kind handoff.EventKind, change func(*handoff.Record)) handoff.Event {
	rec := handoff.Record{ID: "h-1", Server: "bigpc", Title: "Auth", Why: handoff.WhyContinued, ThreadID: "t-1",
		State: handoff.StatusStarted}
	if change != nil {
		change(&rec)
	}
	return handoff.Event{ID: "h-1", Record: rec, Kind: kind}
}

// ended is the end of h-1 with a result.
func ended() handoff.Event {
	return event(handoff.EventEnded{}, func(rec *handoff.Record) {
		rec.State, rec.Outcome, rec.Text = handoff.StatusCompleted, handoff.OutcomeResult, "All pass. See **auth**."
	})
}

// TestEveryToolByAnotherFront: a front that is no call and no HTTP runs each tool of the table, and gets a result whose
// text and JSON each say all there is.
func TestEveryToolByAnotherFront(t *testing.T) {
	question := handoff.RecordQuestion{ID: "id-1", Label: "q1", Handoff: "h-2", Server: "bigpc", Command: "make"}
	calls := map[string][]struct{ raw, says string }{
		Codex:        {{`{"server":"bigpc","prompt":"test"}`, "All pass. See **auth**."}},
		ListServers:  {{`{}`, "bigpc (codex): down"}},
		ListSessions: {{`{"query":"auth"}`, "thread_id t-1"}},
		ReadSession:  {{`{"server":"bigpc","thread_id":"t-1"}`, "agent: All pass."}},
		RunOnServer:  {{`{"server":"bigpc","prompt":"which branch?"}`, "work_id: h-1"}},
		QueueNext:    {{`{"server":"bigpc","prompt":"push"}`, "work_id: h-1"}},
		Watch:        {{`{"server":"bigpc","thread_id":"t-1"}`, "All pass. See **auth**."}},
		NameSession:  {{`{"server":"bigpc","thread_id":"t-1","name":"Tokens"}`, "Okay, it is called Tokens now."}},
		RemoveTree:   {{`{"server":"bigpc","thread_id":"t-1"}`, "Okay."}},
		StopWork:     {{`{"server":"bigpc"}`, "Stopping the work on bigpc."}},
		Status:       {{`{}`, "waiting: bigpc; question q1: make"}},
		AnswerAgent: {
			{`{"question":"q1","decision":"decline"}`, "Okay, bigpc will not do that."},
			{`{"question":"q1","text":"1.2.3"}`, "I told bigpc."},
		},
		SetUpdates:   {{`{"level":"quiet"}`, "Okay."}},
		RemainSilent: {{`{}`, ""}},
	}
	for _, tool := range All() {
		if len(calls[tool.Name]) == 0 {
			t.Errorf("%s is not tried", tool.Name)
		}
		for _, call := range calls[tool.Name] {
			o := &office{events: []handoff.Event{ended()}, asked: []handoff.RecordQuestion{question}}
			o.records = []handoff.Record{{ID: "h-2", Server: "bigpc", ThreadID: "t-1", Title: "Auth", CreatedAt: time.Now()}}
			args, err := tool.Parse(call.raw)
			if err != nil {
				t.Fatal(err)
			}
			front := o.front("k", time.Minute)
			result, err := args.Do(t.Context(), front.Backend, front, owner)
			if err != nil {
				t.Fatalf("%s: %v", tool.Name, err)
			}
			text := tool.Bounded(result).Text()
			if !strings.Contains(text, call.says) {
				t.Errorf("%s says %q", tool.Name, text)
			}
			var whole map[string]any
			if err := json.Unmarshal([]byte(tool.Output(result)), &whole); err != nil {
				t.Fatal(err)
			}
			for _, word := range leaves(whole) {
				if !strings.Contains(text, word) {
					t.Errorf("%s: its text lacks %q: %s", tool.Name, word, text)
				}
			}
		}
	}
}

// leaves returns the texts of a JSON value, but for those by which only programs decide.
func leaves(v any) (texts []string) {
	switch v := v.(type) {
	case string:
		texts = append(texts, v)
	case []any:
		for _, one := range v {
			texts = append(texts, leaves(one)...)
		}
	case map[string]any:
		for name, one := range v {
			if name == "say" && (v["result"] != nil || v["lines"] != nil) {
				continue // it is made of them
			}
			if !slices.Contains([]string{"status", "why", "code", "updated", "kind", "version"}, name) {
				texts = append(texts, leaves(one)...)
			}
		}
	}
	return texts
}

// TestWhatAFrontGives: each tool that gives work says how it meets work that runs, what it begins, and whose it is; the
// same key is the same work.
func TestWhatAFrontGives(t *testing.T) {
	for raw, want := range map[string]handoff.Request{
		Codex + ` {"server":"a","thread_id":"t","prompt":"x"}`: {Target: handoff.Target{Server: "a", Thread: "t"}},
		Codex + ` {"server":"a","prompt":"x","begin":"h-9"}`:   {Target: handoff.Target{Server: "a"}, Instead: "h-9"},
		Codex + ` {"server":"a","from_server":"b","from_thread_id":"t","prompt":"x"}`: {Target: handoff.Target{Server: "a"},
			From: handoff.Target{Server: "b", Thread: "t"}},
		QueueNext + ` {"server":"a","prompt":"x"}`: {Target: handoff.Target{Server: "a"}, Mode: handoff.ModeNext},
		RunOnServer + ` {"server":"a/api","prompt":"x"}`: {Target: handoff.Target{Server: "a/api"},
			Mode: handoff.ModeAside},
	} {
		name, raw, _ := strings.Cut(raw, " ")
		o := &office{}
		for range 2 {
			args, err := parsed[Arguments](name, raw)
			if err != nil {
				t.Fatal(err)
			}
			front := o.front("k-1", 0)
			result, err := args.Do(t.Context(), front.Backend, front, owner)
			if err != nil || result.(WorkResult).Record.ID != "h-1" {
				t.Fatalf("%s: %+v, %v", raw, result, err)
			}
		}
		want.Key, want.Input = "k-1", handoff.TextInput("x")
		if len(o.began) != 1 || handoff.Encode(o.began[0]) != handoff.Encode(want) {
			t.Errorf("%s: began %+v", raw, o.began)
		}
	}
}

// TestAwait: a front that waits gets the outcome, or a question that is open, or how the work stands when its time is
// over. Leaving touches nothing.
func TestAwait(t *testing.T) {
	asked := handoff.RecordQuestion{ID: "id-1", Label: "q1", Handoff: "h-1", Server: "bigpc",
		Kind: handoff.QuestionCommand, Command: "npm install"}
	other := asked
	other.Handoff, other.Label = "h-7", "q7"
	promised := event(handoff.EventPromised{}, nil)
	question := event(handoff.EventAsked{Question: handoff.OpenQuestion{Shown: asked}}, nil)
	for name, tc := range map[string]struct {
		grant  handoff.Grant
		events []handoff.Event
		open   []handoff.RecordQuestion
		took   time.Duration
		want   []string // in the text, or the code of the error
	}{
		"outcome": {owner, []handoff.Event{promised, ended()}, nil, 0,
			[]string{"All pass. See **auth**.", "work_id: h-1"}},
		"goes on": {owner, []handoff.Event{promised}, nil, 45 * time.Second,
			[]string{"Working on it on bigpc, going on in Auth.", "It goes on by itself", "work_id: h-1"}},
		"waits": {owner, []handoff.Event{event(handoff.EventWaiting{Waits: handoff.WaitsTheirs}, nil)}, nil,
			45 * time.Second, []string{"Somebody is working in Auth on bigpc"}},
		"question": {owner, []handoff.Event{promised, question}, []handoff.RecordQuestion{other, asked}, 0,
			[]string{"bigpc asks for permission to run a command", "npm install", "question: q1", "work_id: h-1"}},
		"answered": {owner, []handoff.Event{promised, question, ended()}, []handoff.RecordQuestion{other}, 0,
			[]string{"All pass."}},
		"late": {owner, []handoff.Event{event(handoff.EventSnapshot{}, nil)}, []handoff.RecordQuestion{asked}, 0,
			[]string{"question: q1"}},
		"joined": {owner, []handoff.Event{event(handoff.EventSteered{Into: "h-0"}, nil), ended()}, nil, 0,
			[]string{"work_id: h-0"}},
		"not begun": {owner, []handoff.Event{event(handoff.EventEnded{}, func(rec *handoff.Record) {
			rec.Outcome, rec.Fault = handoff.OutcomeFailed, handoff.Fault(handoff.CodeUnknownServer, "attic", "")
		})}, nil, 0, []string{"attic"}},
		"not theirs": {handoff.Grant{Servers: []string{"laptop"}}, []handoff.Event{promised}, nil, 0,
			[]string{"not_found"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := &office{events: tc.events, asked: tc.open}
				front, seen := o.front("k", 45*time.Second), 0
				front.Progress = func(handoff.Event) { seen++ }
				began := time.Now()
				result, err := front.Await(t.Context(), tc.grant, "h-1")
				said := ""
				if err != nil {
					said = string(handoff.CodeOf(err))
				} else {
					said = result.Text()
				}
				for _, want := range tc.want {
					if !strings.Contains(said, want) {
						t.Errorf("it says %q, not %q", said, want)
					}
				}
				if took := time.Since(began); took != tc.took || err == nil && seen == 0 {
					t.Errorf("it took %s, and %d events were seen", took, seen)
				}
			})
		})
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	o := &office{events: []handoff.Event{promised}}
	if _, err := o.front("k", time.Minute).Await(gone, owner, "h-1"); !errors.Is(err, context.Canceled) {
		t.Errorf("who left got %v", err)
	}
	if len(o.stopped) > 0 {
		t.Error("leaving stopped the work")
	}
}

// TestWorkResultFits: what an agent says is cut to what the tool has room for, and the work's id stays.
func TestWorkResultFits(t *testing.T) {
	for _, piece := range []string{"x", "\x00", "語", "\xff"} {
		e := ended()
		e.Record.Text = strings.Repeat(piece, 20_000)
		text, limit := output(t, Codex, WorkResult{Record: e.Record})
		if len(text) > limit || len(text) < limit/3 || !strings.Contains(text, `"work_id":"h-1"`) ||
			!json.Valid([]byte(text)) {
			t.Errorf("%q: %d bytes of %d", piece, len(text), limit)
		}
	}
}
