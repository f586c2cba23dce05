package responses

import (
	"context"
	"strings"

	"switchboard/handoff"
	"switchboard/handoff/threads"
	"switchboard/servers"
	"switchboard/servers/responses/wire"
	"switchboard/servers/responses/workspace"
	"switchboard/servers/turns"
)

const (
	maxList      = 100 // threads of a list
	maxLineRunes = 600 // of a line of a thread
)

// List returns at most limit threads, and at most 100, the newest first.
func (c *conn) List(ctx context.Context, limit int) ([]servers.Thread, error) {
	if err := c.open(); err != nil {
		return nil, err
	}
	list, err := c.server.cfg.Threads.List(ctx, c.server.cfg.Name, min(limit, maxList))
	if err != nil {
		return nil, err
	}
	all := make([]servers.Thread, 0, len(list))
	for _, t := range list {
		all = append(all, c.listed(t))
	}
	return all, nil
}

func (c *conn) listed(t threads.Thread) servers.Thread {
	status := handoff.SessionIdle
	if c.server.active(t) != "" {
		status = handoff.SessionRunning
	}
	if r := c.server.running(t.ID); r != nil && r.hub.hasQuestions() {
		status = handoff.SessionWaiting
	}
	return servers.Thread{ID: t.ID, Title: t.Title, Dir: t.Dir, Created: t.Created, Updated: t.Updated, Status: status}
}

// Read returns the newest lines of a thread, oldest first.
func (c *conn) Read(ctx context.Context, thread string, lines int) (servers.Text, error) {
	record, err := c.read(ctx, thread)
	if err != nil {
		return servers.Text{}, err
	}
	text := servers.Text{Thread: c.listed(record.Thread)}
	for _, it := range record.Items {
		if line, ok := readLine(it); ok {
			text.Lines = append(text.Lines, line)
		}
	}
	if n := len(text.Lines) - max(lines, 0); n > 0 {
		text.Lines, text.More = text.Lines[n:], n
	}
	return text, nil
}

// readLine returns an item as a line. Reasoning, outputs and context have none.
func readLine(it threads.Item) (handoff.Line, bool) {
	s := wire.Read(it.JSON)
	line := handoff.Line{Text: s.Text()}
	switch {
	case s.Type == wire.Message && s.Role == "user" && it.From == "" && !isContext(line.Text):
		line.Role = "user"
	case s.Type == wire.Message && s.Role == "assistant":
		line.Role = "agent"
	case s.IsCall():
		line.Role, line.Text = "tool", workspace.Shown(s.Name, s.Arguments).Text
	}
	line.Text = handoff.ClipRunes(strings.TrimSpace(line.Text), maxLineRunes)
	return line, line.Role != "" && line.Text != ""
}

// replayUpdates returns the updates of a turn in the store: its finished items and its end. A turn that still counts
// as running, although this process does not run it, was lost.
func replayUpdates(record threads.Record, turn threads.Turn) []handoff.Update {
	r := turns.NewReducer(handoff.TurnID(turn.ID))
	updates := r.Begin()
	of := record.Items[min(turn.From, len(record.Items)):min(turn.Until, len(record.Items))]
	for i, it := range of {
		if it.From == "" {
			continue
		}
		s := wire.Read(it.JSON)
		item, ok := shown(s, s.ID)
		if s.IsCall() {
			item, ok = workspace.Shown(s.Name, s.Arguments), true
			item.ID = s.ID
			if out, answered := outputOf(s, of[i:]); answered {
				item.Output = handoff.Tail(wire.Read(out).Text(), maxShown)
				item.Failed = strings.HasPrefix(item.Output, "Error: ")
				if item.Changes = changesOf(s, of[i:]); len(item.Changes) > 0 {
					item.Output = ""
				}
			}
		}
		if ok {
			updates = append(updates, r.ItemDone(turns.Item{Item: item})...)
		}
	}
	if used := usageOf(turn.Usage); used != (handoff.Usage{}) {
		updates = append(updates, r.Used(used)...)
	}
	end := handoff.TurnEnded{Status: statuses[turn.Status], Code: handoff.Code(turn.Code), Detail: turn.Detail,
		Undelivered: turn.Left()}
	if turn.Status == threads.Running {
		end = handoff.TurnEnded{Status: handoff.TurnInterrupted, Detail: "whoever ran it was lost", Undelivered: turn.Left()}
	}
	return append(updates, r.End(end, nil)...)
}
