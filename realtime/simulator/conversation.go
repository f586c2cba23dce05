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

// An item is one entry of the conversation.
type item struct {
	id        string
	kind      string // message, function_call, function_call_output
	status    string // in_progress, completed, incomplete
	role      string // of a message: system, developer, user, assistant
	parts     []part
	callID    string
	name      string
	arguments string
	output    string

	fromClient bool                       // the client created it
	taken      bool                       // a response has read it
	transcript string                     // of sound, as the model understood it
	sent       time.Duration              // length of its sound that was sent
	then       func(Heard, Output) []Move // of a call
}

// A part is one part of a message. Sound and pictures from clients are not kept.
type part struct {
	Type        string `json:"type"`
	Text        string `json:"text"`
	Transcript  string `json:"transcript"`
	transcribed bool   // the transcript is known to the client
}

func (p part) wire() fields {
	f := fields{"type": p.Type}
	switch p.Type {
	case "input_audio":
		f["transcript"] = nil
		if p.transcribed {
			f["transcript"] = p.Transcript
		}
	case "output_audio":
		f["transcript"] = p.Transcript
	case "input_image":
	default:
		f["text"] = p.Text
	}
	return f
}

// wire returns the item as clients see it now.
func (it *item) wire() fields {
	f := fields{"id": it.id, "object": "realtime.item", "type": it.kind, "status": it.status}
	switch it.kind {
	case "message":
		content := []fields{}
		for _, p := range it.parts {
			content = append(content, p.wire())
		}
		f["role"], f["content"] = it.role, content
	case "function_call":
		f["call_id"], f["name"], f["arguments"] = it.callID, it.name, it.arguments
	case "function_call_output":
		f["call_id"], f["output"] = it.callID, it.output
	}
	return f
}

func (it *item) size() int {
	n := len(it.arguments) + len(it.output) + len(it.transcript) + 200
	for _, p := range it.parts {
		n += len(p.Text) + len(p.Transcript)
	}
	return n
}

// text returns the texts and transcripts of a message.
func (it *item) text() string {
	s := it.transcript
	for _, p := range it.parts {
		for _, t := range []string{p.Text, p.Transcript} {
			if t == "" || t == it.transcript {
				continue
			}
			if s != "" {
				s += " "
			}
			s += t
		}
	}
	return s
}

// A conversation is the items in their order.
type conversation struct {
	items []*item
}

func (c *conversation) find(id string) (int, *item) {
	for i, it := range c.items {
		if it.id == id {
			return i, it
		}
	}
	return -1, nil
}

// call returns the function call with this call_id, or nil.
func (c *conversation) call(id string) *item {
	for _, it := range c.items {
		if it.kind == "function_call" && it.callID == id {
			return it
		}
	}
	return nil
}

// last returns the id of the newest item for a previous_item_id, nil if there is none.
func (c *conversation) last() any { return c.before(len(c.items)) }

func (c *conversation) before(i int) any {
	if i == 0 {
		return nil
	}
	return c.items[i-1].id
}

// insert puts an item at a position and forgets the oldest beyond the bounds.
func (c *conversation) insert(i int, it *item) {
	c.items = slices.Insert(c.items, i, it)
	total := 0
	for i, it := range slices.Backward(c.items) {
		total += it.size()
		if len(c.items)-i > maxItems || total > maxItemBytes && i < len(c.items)-1 {
			c.items = slices.Delete(c.items, 0, i+1)
			return
		}
	}
}

// fresh returns the items that no response has read. If a client replays a conversation, the items up to the
// assistant's last message or call in it were answered already.
func (c *conversation) fresh() []*item {
	return slices.DeleteFunc(slices.Clone(c.items[c.replayed():]), func(it *item) bool { return it.taken })
}

// replayed returns the index of the last item of a replay: the assistant's last message or call that the client
// created; 0 without a replay.
func (c *conversation) replayed() int {
	for i, it := range slices.Backward(c.items) {
		if it.fromClient && (it.role == "assistant" || it.kind == "function_call") {
			return i
		}
	}
	return 0
}

// past returns what there was to say in a replay that this session has not read, marks it as read, and returns the
// assistant's last message in it with what that answered.
func (c *conversation) past() (news, cut) {
	end := c.replayed()
	unread := slices.DeleteFunc(slices.Clone(c.items[:end]), func(it *item) bool { return it.taken })
	for _, it := range unread {
		it.taken = true
	}
	past := c.hear(unread).news()
	if end == len(c.items) || c.items[end].role != "assistant" {
		return past, cut{}
	}
	begin := end
	for begin > 0 && c.items[begin-1].role != "assistant" {
		begin--
	}
	return past, cut{strings.TrimSuffix(c.items[end].text(), " …"), c.hear(c.items[begin:end]).news()}
}

// hear returns what the model hears of items.
func (c *conversation) hear(items []*item) Heard {
	var h Heard
	for _, it := range items {
		switch {
		case it.kind == "function_call_output":
			out := Output{Text: it.output}
			if call := c.call(it.callID); call != nil {
				out.Tool, out.Arguments, out.then = call.name, call.arguments, call.then
			}
			h.Outputs = append(h.Outputs, out)
		case it.kind != "message" || it.role == "assistant":
		case it.role == "user" && it.text() == "":
			h.Sound = true
		case it.role == "user":
			h.Texts = append(h.Texts, it.text())
		default:
			h.Messages = append(h.Messages, it.text())
		}
	}
	return h
}

// A clientItem is an item as a client sends it.
type clientItem struct {
	ID        string  `json:"id"`
	Type      string  `json:"type"`
	Role      string  `json:"role"`
	Status    string  `json:"status"`
	Content   []part  `json:"content"`
	CallID    string  `json:"call_id"`
	Name      string  `json:"name"`
	Arguments *string `json:"arguments"`
	Output    *string `json:"output"`
}

// newItem checks a client's item.
func newItem(raw json.RawMessage) (*item, *fault) {
	in, f := decode[clientItem](raw, "item")
	if f != nil {
		return nil, f
	}
	if n := len(in.ID); n > maxItemID {
		return nil, refusal("string_above_max_length", "item.id",
			"Invalid 'item.id': string too long. Expected a string with maximum length %d, but got a "+
				"string with length %d instead.", maxItemID, n)
	}
	it := &item{id: in.ID, kind: in.Type, status: "completed", callID: in.CallID, name: in.Name, fromClient: true}
	switch in.Type {
	case "message":
		it.role, it.parts = in.Role, in.Content
		return it, checkParts(in)
	case "function_call":
		it.taken = true
		switch {
		case in.Name == "":
			return nil, missing("item.name")
		case in.Arguments == nil:
			return nil, missing("item.arguments")
		}
		it.arguments = *in.Arguments
	case "function_call_output":
		switch {
		case in.CallID == "":
			return nil, missing("item.call_id")
		case in.Output == nil:
			return nil, missing("item.output")
		}
		it.output = *in.Output
	case "":
		return nil, missing("item.type")
	default:
		return nil, invalid("item.type", in.Type, "message", "function_call", "function_call_output")
	}
	return it, nil
}

// checkParts checks that the content fits the role. Clients cannot create sound of the assistant.
func checkParts(in clientItem) *fault {
	allowed := map[string][]string{
		"system": {"input_text"}, "developer": {"input_text"},
		"user":      {"input_text", "input_audio", "input_image"},
		"assistant": {"output_text", "text"},
	}[in.Role]
	if allowed == nil {
		return invalid("item.role", in.Role, "user", "assistant", "system")
	}
	if len(in.Content) == 0 {
		return missing("item.content")
	}
	for i, p := range in.Content {
		if !slices.Contains(allowed, p.Type) {
			return invalid(fmt.Sprintf("item.content[%d].type", i), p.Type, allowed...)
		}
	}
	return nil
}
