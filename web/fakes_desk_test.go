package web

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
	"switchboard/sessions"
)

// desk is what a world says of machines, levels and decisions.
type desk struct {
	machines  []handoff.Machine
	level     handoff.SpeechLevel
	decisions []handoff.AuditRecord
	documents map[string]sessions.Document // by id
	past      ledger.HistoryPage
	did       []handoff.RecordItem // of the work k1 in it
	said      []sessions.Said
}

func (w *world) Machines(g handoff.Grant) []handoff.Machine {
	w.mu.Lock()
	defer w.mu.Unlock()
	_ = w.note("machines", g.Caller.String())
	return w.desk.machines
}

func (w *world) Test(_ context.Context, g handoff.Grant, server string) (time.Duration, error) {
	return 12 * time.Millisecond, w.called("test", g.Caller.String(), server)
}

func (w *world) RemoveWorktree(_ context.Context, g handoff.Grant, t handoff.Target) error {
	return w.called("worktree removed", g.Caller.String(), t.Server, t.Thread)
}

func (w *world) RenameSession(_ context.Context, g handoff.Grant, t handoff.Target, name string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, s := range w.sessions.Items {
		if s.ID == t.Thread {
			w.sessions.Items[i].Title = name
		}
	}
	return w.note("name", g.Caller.String(), t.Server, t.Thread, name)
}

func (w *world) Archive(_ context.Context, g handoff.Grant, t handoff.Target, on bool) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !on {
		for _, s := range w.archived {
			if s.ID == t.Thread {
				w.sessions.Items = append([]handoff.SessionInfo{s}, w.sessions.Items...)
			}
		}
	}
	kept := w.sessions.Items[:0:0]
	for _, s := range w.sessions.Items {
		if on && s.ID == t.Thread {
			w.archived = append(w.archived, s)
			continue
		}
		kept = append(kept, s)
	}
	w.sessions.Items = kept
	return w.note("archive", g.Caller.String(), t.Server, t.Thread, fmt.Sprint(on))
}

func (w *world) PutSticky(_ context.Context, g handoff.Grant, server, thread, title string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stickies = slices.DeleteFunc(w.stickies, func(s handoff.RecordSticky) bool { return s.Server == server })
	pinned := handoff.RecordSticky{
		Server: server, ThreadID: thread, Title: title, Why: handoff.WhyNamed, Since: time.Now(),
	}
	w.stickies = append(w.stickies, pinned)
	return w.note("pin", g.Caller.String(), server, thread, title)
}

func (w *world) Level(context.Context, handoff.Caller) handoff.SpeechLevel {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.desk.level
}

func (w *world) SetLevel(_ context.Context, c handoff.Caller, level handoff.SpeechLevel) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.desk.level = level
	return w.note("level", c.String(), string(level))
}

func (w *world) Decisions(c handoff.Caller, limit int) ([]handoff.AuditRecord, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.desk.decisions[:min(limit, len(w.desk.decisions))], w.note("decisions", c.String())
}

func (w *world) History(_ context.Context, c handoff.Caller, q ledger.HistoryQuery) (ledger.HistoryPage, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.desk.past, w.note("history", c.String(), q.Search+q.Before)
}

func (w *world) Past(_ context.Context, c handoff.Grant, key string) (handoff.Record, bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	rec := handoff.Record{
		Server: "bigpc", Prompt: "the whole prompt", Text: "the whole answer", Items: w.desk.did, Usage: &handoff.Usage{Input: 700},
	}
	if key == "k3" { // it waited behind work that was stopped
		rec = handoff.Record{Prompt: "Then push."}
	}
	return rec, strings.Contains("k1 k2 k3", key), w.note("past", c.Caller.String(), key)
}

func (w *world) AddSaid(_ context.Context, c handoff.Caller, lines []sessions.Said) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.desk.said = append(w.desk.said, lines...)
	return w.note("said", c.String(), fmt.Sprint(len(lines)))
}

func (w *world) Said(_ context.Context, c handoff.Caller, q sessions.SaidQuery) (sessions.SaidPage, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var page sessions.SaidPage
	for _, l := range slices.Backward(w.desk.said) {
		if strings.Contains(strings.ToLower(l.Text), q.Search) {
			page.Lines = append(page.Lines, l)
		}
	}
	return page, w.note("conversation", c.String(), q.Search+q.Before)
}

func (w *world) Key() string { return strings.Repeat("A", 87) }

func (w *world) Subscribe(_ context.Context, c handoff.Caller, login, endpoint, p256dh, auth string, _ handoff.Wishes) error {
	return w.called("subscribe", c.String(), endpoint, p256dh, auth, fmt.Sprint(login != ""))
}

func (w *world) Unsubscribe(_ context.Context, c handoff.Caller, endpoint string) error {
	return w.called("unsubscribe", c.String(), endpoint)
}

func (w *world) DropSaid(_ context.Context, c handoff.Caller) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.desk.said = nil
	return w.note("drop", c.String())
}

func (w *world) Recall(context.Context, handoff.Caller) error { return nil }

func (w *world) PutDocument(_ context.Context, d sessions.Document) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.desk.documents == nil {
		w.desk.documents = map[string]sessions.Document{}
	}
	w.desk.documents[d.ID] = d
	return w.note("put", d.Owner.String(), d.ID, string(d.Body))
}

func (w *world) Document(_ context.Context, c handoff.Caller, id string) (sessions.Document, bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	d, there := w.desk.documents[id]
	return d, there && d.Owner == c, w.note("document", c.String(), id)
}

func (w *world) DropDocument(context.Context, handoff.Caller, string) (bool, error) {
	return false, nil
}

// closed ends a question that was answered: a page that asks for all again gets it no more.
func (w *world) closed(id handoff.QuestionID, err error, answer func() error) error {
	if answer != nil {
		err = answer()
	}
	if err == nil {
		w.change(func(w *world) {
			w.questions = slices.DeleteFunc(w.questions, func(q handoff.RecordQuestion) bool { return q.ID == id })
		})
	}
	return err
}
