package simulator

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Bounds of a conversation. Beyond them the oldest items are forgotten, as with truncation "auto".
const (
	maxItems     = 2000
	maxItemBytes = 32 << 20
	maxItemID    = 32 // characters, as OpenAI has it
)

// Kinds of items.
const (
	message    = "message"
	callKind   = "function_call"
	outputKind = "function_call_output"
)

// An item is one entry of the conversation, as clients see it.
type item struct {
	ID        string  `json:"id"`
	Object    string  `json:"object"`
	Type      string  `json:"type"`
	Status    string  `json:"status"`         // in_progress, completed, incomplete
	Role      string  `json:"role,omitempty"` // of a message: system, developer, user, assistant
	Content   []part  `json:"content,omitempty"`
	CallID    string  `json:"call_id,omitempty"`
	Name      string  `json:"name,omitempty"`
	Arguments *string `json:"arguments,omitempty"`
	Output    *string `json:"output,omitempty"`

	fromClient bool                       // the client created it
	taken      bool                       // a response has read it
	heard      string                     // the words of sound, as the model understood them
	sent       time.Duration              // length of its sound that was sent
	then       func(Heard, Output) []Move // of a call
}

// A part is one part of a message. Sound and pictures from clients are not kept.
type part struct {
	Type       string  `json:"type"`
	Text       *string `json:"text,omitempty"`
	Transcript *string `json:"transcript,omitempty"` // of sound; nil: not known to the client
}

// MarshalJSON writes an unknown transcript of sound as null: clients want to see that.
func (p part) MarshalJSON() ([]byte, error) {
	type plain part
	if p.Type != "input_audio" {
		return json.Marshal(plain(p))
	}
	return json.Marshal(fields{"type": p.Type, "transcript": p.Transcript})
}

// newItem checks a client's item.
func newItem(raw json.RawMessage) (*item, *fault) {
	it, f := decode[item](raw, "item")
	if f != nil {
		return nil, f
	}
	if n := len(it.ID); n > maxItemID {
		return nil, refusal("string_above_max_length", "item.id",
			"Invalid 'item.id': string too long. Expected a string with maximum length %d, but got a "+
				"string with length %d instead.", maxItemID, n)
	}
	it.Object, it.Status, it.fromClient = "realtime.item", "completed", true
	switch it.taken = it.Type == callKind; {
	case it.Type == message:
		return &it, checkParts(it)
	case it.Type == callKind && (it.Name == "" || it.Arguments == nil):
		return nil, missing("item.name, item.arguments")
	case it.Type == outputKind && it.Output == nil:
		return nil, missing("item.output")
	case it.Type != callKind && it.Type != outputKind:
		return nil, invalid("item.type", it.Type, message, callKind, outputKind)
	}
	return &it, nil
}

// checkParts checks that the content fits the role. Clients cannot create sound of the assistant.
func checkParts(it item) *fault {
	allowed := map[string][]string{
		"system": {"input_text"}, "developer": {"input_text"},
		"user":      {"input_text", "input_audio", "input_image"},
		"assistant": {"output_text", "text"},
	}[it.Role]
	if allowed == nil {
		return invalid("item.role", it.Role, "user", "assistant", "system")
	}
	if len(it.Content) == 0 {
		return missing("item.content")
	}
	for i, p := range it.Content {
		if !slices.Contains(allowed, p.Type) {
			return invalid(fmt.Sprintf("item.content[%d].type", i), p.Type, allowed...)
		}
	}
	return nil
}

// deref returns a text, "" for none.
func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// text returns the texts and transcripts of a message.
func (it *item) text() string {
	all := []string{it.heard}
	for _, p := range it.Content {
		for _, t := range []string{deref(p.Text), deref(p.Transcript)} {
			if t != it.heard {
				all = append(all, t)
			}
		}
	}
	return strings.TrimSpace(strings.Join(all, " "))
}

// A conversation is the items in their order.
type conversation struct {
	items []*item
}

func (c *conversation) find(id string) (int, *item) {
	i := slices.IndexFunc(c.items, func(it *item) bool { return it.ID == id })
	if i < 0 {
		return i, nil
	}
	return i, c.items[i]
}

// call returns the function call with this call_id, or nil.
func (c *conversation) call(id string) *item {
	for _, it := range c.items {
		if it.Type == callKind && it.CallID == id {
			return it
		}
	}
	return nil
}

// before returns the id of the item before a position, for a previous_item_id; nil if there is none.
func (c *conversation) before(i int) any {
	if i <= 0 {
		return nil
	}
	return c.items[i-1].ID
}

// insert puts an item at a position and forgets the oldest beyond the bounds.
func (c *conversation) insert(i int, it *item) {
	c.items = slices.Insert(c.items, i, it)
	total := 0
	for i, it := range slices.Backward(c.items) {
		total += len(deref(it.Arguments)) + len(deref(it.Output)) + len(it.text()) + 200
		if len(c.items)-i > maxItems || total > maxItemBytes && i < len(c.items)-1 {
			c.items = slices.Delete(c.items, 0, i+1)
			return
		}
	}
}

// fresh returns the items that no response has read. If a client replays a conversation, the items up to the
// assistant's last message or call in it were answered already.
func (c *conversation) fresh() []*item { return c.unread(c.replayed(), len(c.items)) }

func (c *conversation) unread(from, to int) []*item {
	return slices.DeleteFunc(slices.Clone(c.items[from:to]), func(it *item) bool { return it.taken })
}

// replayed returns the index of the last item of a replay: the assistant's last message or call that the client
// created; 0 without a replay.
func (c *conversation) replayed() int {
	for i, it := range slices.Backward(c.items) {
		if it.fromClient && (it.Role == "assistant" || it.Type == callKind) {
			return i
		}
	}
	return 0
}

// past returns what there was to say in a replay that this session has not read, marks it as read, and returns the
// assistant's last message in it with what that answered.
func (c *conversation) past() (news, cut) {
	end := c.replayed()
	unread := c.unread(0, end)
	for _, it := range unread {
		it.taken = true
	}
	past := c.hear(unread).news()
	if end == len(c.items) || c.items[end].Role != "assistant" {
		return past, cut{}
	}
	begin := end
	for begin > 0 && c.items[begin-1].Role != "assistant" {
		begin--
	}
	return past, cut{strings.TrimSuffix(c.items[end].text(), " …"), c.hear(c.items[begin:end]).news()}
}

// hear returns what the model hears of items.
func (c *conversation) hear(items []*item) Heard {
	var h Heard
	for _, it := range items {
		switch {
		case it.Type == outputKind:
			out := Output{Text: deref(it.Output)}
			if call := c.call(it.CallID); call != nil {
				out.Tool, out.Arguments, out.then = call.Name, deref(call.Arguments), call.then
			}
			h.Outputs = append(h.Outputs, out)
		case it.Type != message || it.Role == "assistant":
		case it.Role == "user" && it.text() == "":
			h.Sound = true
		case it.Role == "user":
			h.Texts = append(h.Texts, it.text())
		default:
			h.Messages = append(h.Messages, it.text())
		}
	}
	return h
}

// createItem puts a client's item into the conversation and acknowledges it.
func (s *session) createItem(frame []byte) *fault {
	in, f := decode[struct {
		Item     json.RawMessage `json:"item"`
		Previous *string         `json:"previous_item_id"`
	}](frame, "")
	if f != nil {
		return f
	}
	if len(in.Item) == 0 || string(in.Item) == "null" {
		return missing("item")
	}
	it, f := newItem(in.Item)
	if f != nil {
		return f
	}
	at := len(s.items.items)
	if in.Previous != nil {
		i, previous := s.items.find(*in.Previous)
		if previous == nil && *in.Previous != "root" {
			return refusal("invalid_value", "previous_item_id", "Previous item with id '%.40s' does not exist.",
				*in.Previous)
		}
		at = i + 1
	}
	if _, old := s.items.find(it.ID); old != nil {
		return refusal("invalid_value", "item.id", "Item with id '%s' already exists.", it.ID)
	}
	if it.Type == outputKind && s.items.call(it.CallID) == nil {
		return refusal("invalid_tool_call_id", "item.call_id", "Tool call ID '%.40s' not found in conversation.",
			it.CallID)
	}
	if it.ID == "" {
		it.ID = s.ids.next("item")
	}
	if it.Type == callKind && it.CallID == "" {
		it.CallID = s.ids.next("call")
	}
	s.add(at, it)
	return nil
}

// add inserts a complete item and announces it.
func (s *session) add(at int, it *item) {
	previous := s.items.before(at)
	s.items.insert(at, it)
	s.emit("conversation.item.added", fields{"previous_item_id": previous, "item": it})
	s.emit("conversation.item.done", fields{"previous_item_id": previous, "item": it})
}

// changeItem retrieves or deletes an item, or truncates it: it shortens the assistant's sound to what the caller heard,
// and drops its transcript.
func (s *session) changeItem(verb string, frame []byte) *fault {
	in, f := decode[struct {
		ItemID  string `json:"item_id"`
		Content int    `json:"content_index"`
		EndMS   int64  `json:"audio_end_ms"`
	}](frame, "")
	if f != nil {
		return f
	}
	i, it := s.items.find(in.ItemID)
	switch {
	case in.ItemID == "":
		return missing("item_id")
	case it == nil: // each verb has a code of its own
		return refusal("item_"+verb+"_invalid_item_id", "item_id",
			"Error with item_id in %s: the item with id '%.40s' does not exist.", verb, in.ItemID)
	case verb == "retrieve":
		s.emit("conversation.item.retrieved", fields{"item": it})
	case verb == "delete":
		s.items.items = slices.Delete(slices.Clone(s.items.items), i, i+1)
		s.emit("conversation.item.deleted", fields{"item_id": it.ID})
	case it.Role != "assistant" || in.Content != 0 || len(it.Content) == 0 || it.Content[0].Type != "output_audio":
		return refusal("invalid_value", "item_id", "Only audio of the assistant can be truncated, at content index 0.")
	case in.EndMS < 0 || in.EndMS > it.sent.Milliseconds():
		return refusal("invalid_value", "audio_end_ms", "Audio content of %dms is already shorter than %dms",
			it.sent.Milliseconds(), in.EndMS)
	default:
		it.sent = time.Duration(in.EndMS) * time.Millisecond
		it.Content[0].Transcript = new("")
		s.emit("conversation.item.truncated", fields{"item_id": it.ID, "content_index": 0, "audio_end_ms": in.EndMS})
	}
	return nil
}
