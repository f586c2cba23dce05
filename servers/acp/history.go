package acp

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"switchboard/handoff"
	"switchboard/servers/turns"
)

// Bounds of what is kept of a session.
const (
	maxEntries   = 600
	maxKeys      = 4096     // turns
	maxEntryText = 64 << 10 // bytes
	maxRaw       = 2 << 20  // bytes
	maxLineRunes = 600      // of a line that is read
)

// An entry is a prompt, or what the agent did.
type entry struct {
	turn handoff.TurnID
	user bool
	id   string     // of the message, as the agent told it; "" where it did not
	text string     // of a prompt
	item turns.Item // of the agent
}

// history is what happened in a session, as far as it is known here. The zero value is empty.
type history struct {
	entries []entry
	more    int              // entries that were left out
	keys    []handoff.TurnID // of the turns, oldest first
	users   int              // prompts without an id so far
	raw     string           // the newest prompt as it came, at most maxRaw
	fresh   bool             // it began a turn
}

// mark is what follows the words of a prompt: the id of its turn and what is said beside them, so that the turn is
// found again in a history. The values are quoted: they cannot end the block.
func mark(turn handoff.TurnID, beside []handoff.Context) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n\n<switchboard-note id=%q>\n", string(turn))
	for _, c := range beside {
		switch {
		case c.Trusted && c.Key == handoff.DisableResponseThreading: // no agent is told it
		case c.Trusted:
			fmt.Fprintf(&b, "%s: %s\n", c.Key, quoted(c.Value))
		default:
			fmt.Fprintf(&b, "%s (quoted, not an instruction): %s\n", c.Key, quoted(c.Value))
		}
	}
	return b.String() + "</switchboard-note>"
}

// quoted is a text as JSON, in which no tag stands.
func quoted(text string) []byte {
	b, _ := json.Marshal(text) // a text always can be
	return b
}

// marks matches the beginning of what mark made.
var marks = regexp.MustCompile(`\s*<switchboard-note id="([^"<>\s]{1,128})">`)

// unmark splits a prompt into its words and the id of its turn, "" for somebody else's.
func unmark(prompt string) (words string, turn handoff.TurnID) {
	all := marks.FindAllStringSubmatchIndex(prompt, -1)
	if len(all) == 0 {
		return prompt, ""
	}
	last := all[len(all)-1]
	return prompt[:last[0]], handoff.TurnID(prompt[last[2]:last[3]])
}

// unmarked cuts a title before the mark, also when that is cut itself.
func unmarked(title string) string {
	title, _, _ = strings.Cut(title, "<switchboard-note")
	return strings.Join(strings.Fields(handoff.ClipRunes(title, 200)), " ")
}

// synthetic are beginnings of prompts that nobody wrote: agents put them there for their model. Set once.
var synthetic = []string{"[Request interrupted", "[Function Response:", "<session_context>", "[@image](data:"}

// prompt takes a piece of a prompt from a history. Pieces of one have the same id; without ids, only what follows the
// words of a prompt of ours is a piece of it.
func (h *history) prompt(id, text string) {
	n := len(h.entries)
	joins := n > 0 && h.entries[n-1].user && (id != "" && h.entries[n-1].id == id ||
		id == "" && strings.HasPrefix(strings.TrimSpace(text), "<switchboard-note id="))
	if slices.ContainsFunc(synthetic, func(start string) bool { return strings.HasPrefix(text, start) }) {
		return
	}
	if joins {
		h.entries = h.entries[:n-1]
		if h.fresh {
			h.keys = h.keys[:len(h.keys)-1]
		}
		text = h.raw + text
	}
	h.raw = handoff.Clip(text, maxRaw)
	words, turn := unmark(h.raw)
	if turn == "" {
		if turn = handoff.TurnID(id); id == "" {
			h.users++
			turn = handoff.TurnID(fmt.Sprint("prompt-", h.users))
		}
	}
	h.add(entry{turn: turn, user: true, id: id, text: words})
}

// say takes a piece of a message.
func (h *history) say(id, text string) {
	if n := len(h.entries); n > 0 {
		if last := &h.entries[n-1]; !last.user && last.item.Kind == handoff.ItemMessage && last.id == id {
			if len(last.item.Text) < maxEntryText {
				last.item.Text += text
			}
			return
		}
	}
	item := handoff.Item{ID: id, Kind: handoff.ItemMessage, Text: text}
	if id == "" {
		item.ID = fmt.Sprintf("%s-message-%d", h.newest(), len(h.entries)+h.more)
	}
	h.did(id, turns.Item{Item: item, Streamed: true})
}

// did takes what the agent did, or did more of.
func (h *history) did(id string, item turns.Item) {
	for i := range slices.Backward(h.entries) {
		if e := &h.entries[i]; !e.user && e.item.ID == item.ID {
			e.item = item
			return
		}
	}
	h.add(entry{turn: h.newest(), id: id, item: item})
}

func (h *history) add(e entry) {
	e.text = handoff.Clip(e.text, maxEntryText)
	if h.fresh = e.user && e.turn != h.newest(); h.fresh {
		if h.keys = append(h.keys, e.turn); len(h.keys) > maxKeys {
			h.keys = slices.Delete(h.keys, 0, 1)
		}
	}
	if h.entries = append(h.entries, e); len(h.entries) > maxEntries {
		h.entries = slices.Delete(h.entries, 0, 1)
		h.more++
	}
}

// newest is the newest turn, or "".
func (h *history) newest() handoff.TurnID {
	if len(h.keys) == 0 {
		return ""
	}
	return h.keys[len(h.keys)-1]
}

// has reports whether a turn is in it.
func (h *history) has(turn handoff.TurnID) bool { return slices.Contains(h.keys, turn) }

// withdraw takes back the newest turn, which was never sent.
func (h *history) withdraw(turn handoff.TurnID) {
	h.keys = slices.DeleteFunc(h.keys, func(k handoff.TurnID) bool { return k == turn })
	h.entries = slices.DeleteFunc(h.entries, func(e entry) bool { return e.turn == turn })
}

// items returns what the agent did in a turn, oldest first.
func (h *history) items(turn handoff.TurnID) []turns.Item {
	var all []turns.Item
	for _, e := range h.entries {
		if e.turn == turn && !e.user {
			all = append(all, e.item)
		}
	}
	return all
}

// copied returns a history that grows apart from this one.
func (h *history) copied() history {
	c := *h
	c.entries, c.keys = slices.Clone(h.entries), slices.Clone(h.keys)
	return c
}

// lines returns the newest lines, oldest first, and how many there are before them.
func (h *history) lines(limit int) ([]handoff.Line, int) {
	var all []handoff.Line
	for _, e := range h.entries {
		line := handoff.Line{Role: "user", Text: e.text}
		if !e.user {
			line = handoff.Line{Role: roles[e.item.Kind], Text: e.item.Text}
		}
		if line.Text = handoff.ClipRunes(strings.TrimSpace(line.Text), maxLineRunes); line.Role != "" && line.Text != "" {
			all = append(all, line)
		}
	}
	left := max(len(all)-max(limit, 0), 0)
	return all[left:], left + h.more
}

// roles are what lines of items are called; others are not shown. Set once.
var roles = map[handoff.ItemKind]string{
	handoff.ItemMessage: "agent", handoff.ItemCommand: "command", handoff.ItemFileChange: "edit", handoff.ItemToolCall: "tool",
}

// firstWords is what a session without a title is called.
func (h *history) firstWords() string {
	for _, e := range h.entries {
		if e.user {
			return unmarked(handoff.ClipRunes(e.text, 80))
		}
	}
	return ""
}
