package codex

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"switchboard/handoff"
	"switchboard/servers"
)

// Bounds of reading.
const (
	maxPage      = 100 // threads; the server gives no more at once
	maxReadTurns = 10  // turns with all their items
	maxReadPages = 50  // pages of turns, when a thread is read to its beginning
	maxLineRunes = 600
)

// A catalog lists and reads the threads of a connection. It implements [servers.Catalog], [servers.Archiver],
// [servers.Renamer] and [servers.Overhearer].
type catalog struct {
	conn *connection // Set once
}

// List returns at most limit threads, the newest first, without those that never ran.
func (c catalog) List(ctx context.Context, limit int) ([]servers.Thread, error) {
	limit = max(limit, 1)
	var threads []servers.Thread
	for page := (threadListResult{}); ; {
		var err error
		if page, err = c.conn.client.threadList(ctx, limit-len(threads), page.NextCursor); err != nil {
			return threads, c.conn.name("").fault(err, handoff.CodeUnreachable, handoff.CodeUnreachable)
		}
		for i := range page.Data[:min(len(page.Data), limit-len(threads))] {
			threads = append(threads, catalogThread(&page.Data[i]))
		}
		if page.NextCursor == nil || len(page.Data) == 0 || len(threads) == limit {
			return threads, nil
		}
	}
}

// Archive implements [servers.Archiver].
func (c catalog) Archive(ctx context.Context, thread string, on bool) error {
	if err := c.conn.client.archive(ctx, thread, on); err != nil {
		return c.conn.name("").fault(err, handoff.CodeUnreachable, handoff.CodeUnreachable)
	}
	return nil
}

// Rename implements [servers.Renamer]. Other programs that have the thread open show the new name.
func (c catalog) Rename(ctx context.Context, thread, name string) error {
	if err := c.conn.client.rename(ctx, thread, name); err != nil {
		return c.conn.name("").fault(err, handoff.CodeUnreachable, handoff.CodeUnreachable)
	}
	return nil
}

// Read returns the newest lines of a thread, oldest first. It reads the newest maxReadTurns turns, and older ones only
// if lines is more than a voice model gets. More counts the lines of these turns that are left out, plus 1 if there are
// older turns. A thread that never ran has no lines.
func (c catalog) Read(ctx context.Context, thread string, lines int) (servers.Text, error) {
	w, err := c.conn.client.threadRead(ctx, thread)
	if err != nil {
		return servers.Text{}, c.conn.name("").fault(err, handoff.CodeUnreachable, handoff.CodeUnreachable)
	}
	text := servers.Text{Thread: catalogThread(&w)}
	page, err := c.conn.client.turnsList(ctx, thread, nil, min(max(lines, 1), maxReadTurns), "full")
	if errors.Is(err, servers.ErrLongFrame) {
		page, err = c.newestItems(ctx, thread)
	}
	if refusedAs(err, refusedNeverRan) {
		return text, nil
	}
	if err != nil {
		return servers.Text{}, c.conn.name(text.Thread.Title).fault(err, handoff.CodeUnreachable, handoff.CodeUnreachable)
	}
	if lines > handoff.MaxReadLines {
		c.older(ctx, thread, lines, &page)
	}
	text.Lines = readLines(page.Data)
	if n := len(text.Lines) - max(lines, 0); n > 0 {
		text.Lines, text.More = text.Lines[n:], n
	}
	if page.NextCursor != nil {
		text.More++
	}
	return text, nil
}

// older adds older turns to a page until it has enough lines. If they cannot be read, the page keeps its cursor, which
// says that there is more.
func (c catalog) older(ctx context.Context, thread string, lines int, page *turnsPage) {
	for range maxReadPages {
		if page.NextCursor == nil || len(readLines(page.Data)) >= lines {
			return
		}
		next, err := c.conn.client.turnsList(ctx, thread, page.NextCursor, maxReadTurns, "full")
		if err != nil {
			return
		}
		page.Data, page.NextCursor = append(page.Data, next.Data...), next.NextCursor
	}
}

// newestItems returns a thread's newest items as one turn.
func (c catalog) newestItems(ctx context.Context, thread string) (turnsPage, error) {
	items, err := c.conn.client.itemsBefore(ctx, itemsListParams{ThreadID: thread})
	var w wireTurn
	for _, entry := range slices.Backward(items.Data) {
		w.Items = append(w.Items, entry.Item)
	}
	return turnsPage{Data: []wireTurn{w}, NextCursor: items.NextCursor}, err
}

// catalogThread translates a thread.
func catalogThread(w *wireThread) servers.Thread {
	t := servers.Thread{ID: w.ID, From: w.From, Title: title(w), Dir: w.Cwd, Status: sessionStatus(w.Status)}
	if w.GitInfo != nil && w.GitInfo.Branch != nil {
		t.Branch = handoff.ClipRunes(*w.GitInfo.Branch, nameRunes)
	}
	if w.CreatedAt > 0 {
		t.Created = time.Unix(w.CreatedAt, 0)
	}
	seconds := max(w.CreatedAt, w.UpdatedAt)
	if w.RecencyAt != nil {
		seconds = *w.RecencyAt
	}
	t.Updated = time.Unix(seconds, 0)
	return t
}

// readLines returns the readable items of turns that come newest first, oldest first.
func readLines(turns []wireTurn) []handoff.Line {
	var lines []handoff.Line
	for _, w := range slices.Backward(turns) {
		for i := range w.Items {
			if line, ok := readLine(&w.Items[i]); ok {
				lines = append(lines, line)
			}
		}
	}
	return lines
}

// readLine returns an item as a line; false: items of its kind are not shown.
func readLine(w *wireItem) (handoff.Line, bool) {
	item := w.shown()
	line := handoff.Line{Text: item.Text}
	switch item.Kind {
	case handoff.ItemMessage:
		line.Role = "agent"
	case handoff.ItemCommand:
		line.Role = "command"
	case handoff.ItemFileChange:
		line.Role, line.Text = "edit", strings.ReplaceAll(item.Text, "\n", ", ")
	case handoff.ItemToolCall:
		line.Role = "tool"
	case handoff.ItemPlan:
		line.Role = "plan"
	default:
		if w.Type != typeUserMessage {
			return handoff.Line{}, false
		}
		line.Role, line.Text = "user", w.userText()
	}
	line.Text = handoff.ClipRunes(strings.TrimSpace(line.Text), maxLineRunes)
	return line, line.Text != ""
}

// Bounds of a title.
const (
	titleWords = 8   // of one that is made of the thread's first words
	titleRunes = 60  // of one that is made of the thread's first words
	nameRunes  = 300 // of a name that somebody has given
)

// title returns the name of a thread, or else its first words.
func title(t *wireThread) string {
	if t.Name != nil && strings.TrimSpace(*t.Name) != "" {
		return handoff.ClipRunes(strings.Join(strings.Fields(*t.Name), " "), nameRunes)
	}
	words := strings.Fields(handoff.ClipRunes(t.Preview, 4*titleRunes))
	return handoff.ClipRunes(strings.Join(words[:min(len(words), titleWords)], " "), titleRunes)
}

// sessionStatus translates a thread's status. A thread whose last turn failed is idle.
func sessionStatus(s threadStatus) handoff.SessionStatus {
	switch {
	case s.Type == "active" && len(s.ActiveFlags) > 0:
		return handoff.SessionWaiting
	case s.Type == "active":
		return handoff.SessionRunning
	case s.Type == "idle", s.Type == "systemError":
		return handoff.SessionIdle
	}
	return handoff.SessionUnknown
}
