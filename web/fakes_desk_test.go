package web

import (
	"context"
	"fmt"
	"time"

	"switchboard/handoff"
)

// desk is what a world says of machines, levels and decisions.
type desk struct {
	machines  []handoff.Machine
	level     handoff.SpeechLevel
	decisions []handoff.AuditRecord
}

func (w *world) Machines(g handoff.Grant) []handoff.Machine {
	w.mu.Lock()
	defer w.mu.Unlock()
	_ = w.note("machines", g.Caller.String())
	return w.desk.machines
}

func (w *world) Test(_ context.Context, g handoff.Grant, server string) (time.Duration, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return 12 * time.Millisecond, w.note("test", g.Caller.String(), server)
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
	kept := w.stickies[:0:0]
	for _, s := range w.stickies {
		if s.Server != server {
			kept = append(kept, s)
		}
	}
	w.stickies = append(kept, handoff.RecordSticky{Server: server, ThreadID: thread, Title: title, Why: handoff.WhyNamed, Since: time.Now()})
	return w.note("pin", g.Caller.String(), server, thread, title)
}

func (w *world) Level(handoff.Caller) handoff.SpeechLevel {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.desk.level
}

func (w *world) SetLevel(c handoff.Caller, level handoff.SpeechLevel) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.desk.level = level
	_ = w.note("level", c.String(), string(level))
}

func (w *world) Decisions(c handoff.Caller, limit int) ([]handoff.AuditRecord, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.desk.decisions[:min(limit, len(w.desk.decisions))], w.note("decisions", c.String())
}
