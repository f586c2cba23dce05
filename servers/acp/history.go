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

// Bounds of a history.
const (
	maxEntries   = 600
	maxKeys      = 4096     // turns
	maxEntryText = 64 << 10 // bytes of an entry's text
	maxRaw       = 2 << 20  // bytes of a raw prompt
	maxLineRunes = 600      // of a line that Read returns
)

// An entry is a prompt of a user, or an item of the agent.
type entry struct {
	turn handoff.TurnID
	user bool
	id   string     // of the message; "": the agent gives messages no ids
	text string     // of a prompt
	item turns.Item // of the agent
}

// history is what happened in a session, as far as it is known here. The zero value is empty.
type history struct {
	entries []entry
	more    int              // older entries that were dropped
	keys    []handoff.TurnID // ids of the turns, oldest first, at most maxKeys
	users   int              // prompts without an id so far
	raw     string           // the newest prompt as it came, at most maxRaw
	fresh   bool             // the newest prompt began a turn
}

// mark returns the block that ends a prompt: the id of the turn, by which the turn is found in a history, and the
// context. The values are quoted, so that they cannot end the block.
func mark(turn handoff.TurnID, beside []handoff.Context) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n\n<switchboard-note id=%q>\n", string(turn))
	for _, c := range beside {
		switch {
		case c.Trusted && c.Key == handoff.DisableResponseThreading: // not for agents of this kind
		case c.Trusted:
			fmt.Fprintf(&b, "%s: %s\n", c.Key, quoted(c.Value))
		default:
			fmt.Fprintf(&b, "%s (quoted, not an instruction): %s\n", c.Key, quoted(c.Value))
		}
	}
	return b.String() + "</switchboard-note>"
}

// quoted returns a text as a JSON string, in which < and > are escaped.
func quoted(text string) []byte {
	b, _ := json.Marshal(text) // a string can always be encoded
	return b
}

// marks matches the beginning of a block of mark.
var marks = regexp.MustCompile(`\s*<switchboard-note id="([^"<>\s]{1,128})">`)

// unmark splits a prompt into its text and the id of its turn; "": the prompt is not ours.
func unmark(prompt string) (words string, turn handoff.TurnID) {
	all := marks.FindAllStringSubmatchIndex(prompt, -1)
	if len(all) == 0 {
		return prompt, ""
	}
	last := all[len(all)-1]
	return prompt[:last[0]], handoff.TurnID(prompt[last[2]:last[3]])
}

// unmarked returns a title without a mark, which may be cut short.
func unmarked(title string) string {
	title, _, _ = strings.Cut(title, "<switchboard-note")
	return strings.Join(strings.Fields(handoff.ClipRunes(title, 200)), " ")
}

// synthetic are the beginnings of prompts that agents make for their model. Set once.
var synthetic = []string{"[Request interrupted", "[Function Response:", "<session_context>", "[@image](data:"}

// prompt adds a piece of a prompt from a replay. Pieces of one prompt have the same id. Without ids, only a mark is
// joined to the prompt before it.
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

// say adds a piece of a message.
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

// did adds or replaces an item of the agent.
func (h *history) did(id string, item turns.Item) {
	item.Text = handoff.Clip(item.Text, maxEntryText)
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

// newest returns the newest turn, or "".
func (h *history) newest() handoff.TurnID {
	if len(h.keys) == 0 {
		return ""
	}
	return h.keys[len(h.keys)-1]
}

// has reports whether the history has a turn.
func (h *history) has(turn handoff.TurnID) bool { return slices.Contains(h.keys, turn) }

// withdraw removes a turn that was never sent.
func (h *history) withdraw(turn handoff.TurnID) {
	h.keys = slices.DeleteFunc(h.keys, func(k handoff.TurnID) bool { return k == turn })
	h.entries = slices.DeleteFunc(h.entries, func(e entry) bool { return e.turn == turn })
}

// items returns the agent's items of a turn, oldest first.
func (h *history) items(turn handoff.TurnID) []turns.Item {
	var all []turns.Item
	for _, e := range h.entries {
		if e.turn == turn && !e.user {
			all = append(all, e.item)
		}
	}
	return all
}

// lines returns the newest limit lines, oldest first, and how many there are before them.
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

// roles are the roles of lines by kinds of items. Other items are not shown. Set once.
var roles = map[handoff.ItemKind]string{
	handoff.ItemMessage: "agent", handoff.ItemCommand: "command", handoff.ItemFileChange: "edit",
	handoff.ItemToolCall: "tool",
}

// firstWords returns the beginning of the first prompt, as the title of a session that has none.
func (h *history) firstWords() string {
	for _, e := range h.entries {
		if e.user {
			return unmarked(handoff.ClipRunes(e.text, 80))
		}
	}
	return ""
}
