package recall

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"switchboard/realtime/events"
	"switchboard/realtime/mask"
)

const (
	// maxItems and maxBytes bound the items that are remembered, and their words. The oldest go first, calls that wait
	// for their output last; a line tells the model that there were some.
	maxItems = 200
	maxBytes = 64 << 10
	// maxText bounds the words of one item, in bytes: what is longer is clipped.
	maxText = 8 << 10
	// maxGone bounds the items that are known to be forgotten, maxRunning the responses that are followed.
	maxGone    = 4096
	maxRunning = 64
	// msPerLetter is how long a letter takes to be spoken, for sound that was cut: 15 a second.
	msPerLetter = 66
)

// notTranscribed stands for what the caller said where the model wrote it down for nobody.
const notTranscribed = "[not transcribed]"

// A Recall is what is remembered of one call. It may be used from one goroutine at a time.
type Recall struct {
	items   []*item  // in the order of the conversation
	bytes   int      // of words in them
	left    int      // items that were forgotten, all in all
	gone    []string // the newest of them
	deleted []string // items that were deleted, the newest: their ends may be told of later
	running []*response
	asked   []asked
	given   map[string]bool // items that the session was given when it began
}

// An item is one item of the conversation.
type item struct {
	id, kind, role          string
	text                    string // of a message
	callID, name, arguments string
	output                  string
	whole                   bool // it is done; a call: it may be called
	sound                   bool // of the caller, whose words come later
}

// A response is one that runs.
type response struct {
	raw   string   // the response as it began
	aside bool     // beside the conversation
	items []string // raw, that it put out and are done
	open  []opened
}

// An opened is an item that a response is still writing.
type opened struct {
	id    string
	index int64
	raw   string
	words strings.Builder
}

// New returns the memory of a call whose session has not begun.
func New() *Recall { return &Recall{given: map[string]bool{}} }

// FromModel takes an event of the model, every one but sound and errors, in order.
func (r *Recall) FromModel(kind string, event []byte) {
	field := func(path string) gjson.Result { return gjson.GetBytes(event, path) }
	switch kind {
	case events.TypeItemAdded, events.TypeItemCreated, events.TypeItemDone:
		if id := field("item.id").String(); kind != events.TypeItemDone { // made again
			r.deleted = slices.DeleteFunc(r.deleted, func(other string) bool { return other == id })
		}
		r.item(field("item"), field("previous_item_id"))
		r.answered(kind, field("item.id").String())
	case events.TypeTranscribed:
		if _, it := r.find(field("item_id").String()); it != nil {
			it.sound = false
			r.write(it, strings.TrimSpace(field("transcript").String()))
		}
	case events.TypeItemTruncated:
		r.Truncate(field("item_id").String(), field("audio_end_ms").Int())
		r.answered(kind, field("item_id").String())
	case events.TypeItemDeleted:
		r.Delete(field("item_id").String())
		r.answered(kind, field("item_id").String())
	case events.TypeItemRetrieved:
		r.answered(kind, field("item.id").String())
	case events.TypeCreated:
		r.begin(field("response"))
	case events.TypeOutputAdded:
		r.open(event)
	case events.TypeSpokenDelta, events.TypeTextDelta, events.TypeArguments:
		if o := r.openItem(field("response_id").String(), field("item_id").String()); o != nil && o.words.Len() < maxText {
			o.words.WriteString(field("delta").String())
		}
	case events.TypeOutputDone:
		r.close(event)
	case events.TypeDone:
		r.end(field("response"))
	}
}

// begin follows a response.
func (r *Recall) begin(raw gjson.Result) {
	aside := mask.Aside(events.TagOf(raw)) || events.OutOfBand(raw)
	if len(r.running) < maxRunning {
		r.running = append(r.running, &response{raw: strings.Clone(raw.Raw), aside: aside})
	}
	if aside {
		r.answered(events.TypeCreated, "")
	}
}

func (r *Recall) responseOf(id string) *response {
	for _, p := range r.running {
		if gjson.Get(p.raw, "id").String() == id {
			return p
		}
	}
	return nil
}

// open follows an item that a response begins to write.
func (r *Recall) open(event []byte) {
	it := gjson.GetBytes(event, "item")
	if p := r.responseOf(gjson.GetBytes(event, "response_id").String()); p != nil && len(p.open) < maxRunning {
		p.open = append(p.open, opened{
			id: strings.Clone(it.Get("id").String()), index: gjson.GetBytes(event, "output_index").Int(),
			raw: strings.Clone(it.Raw),
		})
	}
}

func (r *Recall) openItem(response, id string) *opened {
	if p := r.responseOf(response); p != nil {
		for i := range p.open {
			if p.open[i].id == id {
				return &p.open[i]
			}
		}
	}
	return nil
}

// close takes an item that a response has written.
func (r *Recall) close(event []byte) {
	it := gjson.GetBytes(event, "item")
	p := r.responseOf(gjson.GetBytes(event, "response_id").String())
	if p == nil {
		return
	}
	p.open = slices.DeleteFunc(p.open, func(o opened) bool { return o.id == it.Get("id").String() })
	if p.items = append(p.items, strings.Clone(it.Raw)); !p.aside {
		r.item(it, gjson.Result{})
	}
}

// end takes the end of a response, which may never have begun, with what it put out.
func (r *Recall) end(raw gjson.Result) {
	id := raw.Get("id").String()
	p := r.responseOf(id)
	r.running = slices.DeleteFunc(r.running, func(other *response) bool { return other == p })
	if p != nil && p.aside || mask.Aside(events.TagOf(raw)) || events.OutOfBand(raw) {
		return
	}
	status := raw.Get("status").String()
	for _, it := range raw.Get("output").Array() {
		if it.Get("status").String() == "" && status == events.StatusCompleted { // servers that give items none
			it = gjson.ParseBytes(events.Set([]byte(it.Raw), "status", events.Quote(status)))
		}
		r.item(it, gjson.Result{})
	}
}

// find returns an item and its place.
func (r *Recall) find(id string) (int, *item) {
	for i, it := range slices.Backward(r.items) {
		if it.id == id {
			return i, it
		}
	}
	return -1, nil
}

// item takes an item as the model tells it now.
func (r *Recall) item(raw, previous gjson.Result) {
	id := raw.Get("id").String()
	if id == "" || len(id) > events.MaxID {
		return
	}
	_, it := r.find(id)
	if it == nil && slices.Contains(r.deleted, id) {
		return
	}
	if it == nil {
		it = &item{id: strings.Clone(id)}
		at := len(r.items)
		if i, known := r.find(previous.String()); known != nil {
			at = i + 1
		} else if raw.Get("role").String() != "assistant" && raw.Get("type").String() != events.ItemCall && r.first(id) {
			at = 0
		}
		r.items = slices.Insert(r.items, at, it)
	}
	it.kind, it.role = strings.Clone(raw.Get("type").String()), strings.Clone(raw.Get("role").String())
	it.whole = it.whole || raw.Get("status").String() == events.StatusCompleted
	switch it.kind {
	case events.ItemMessage:
		r.message(it, raw)
	case events.ItemCall:
		it.callID, it.name = strings.Clone(raw.Get("call_id").String()), strings.Clone(raw.Get("name").String())
		r.keep(&it.arguments, arguments(raw.Get("arguments").String()))
	case events.ItemOutput:
		it.callID, it.whole = strings.Clone(raw.Get("call_id").String()), true
		r.keep(&it.output, clip(raw.Get("output").String()))
	}
	r.forget()
}

// message takes the words of a message; a later event without any leaves what is known.
func (r *Recall) message(it *item, raw gjson.Result) {
	var words []string
	for _, part := range raw.Get("content").Array() {
		switch part.Get("type").String() {
		case "input_image":
			words = append(words, "[picture]")
		case "input_audio":
			it.sound = part.Get("transcript").Type != gjson.String && it.text == ""
		}
		if text := strings.TrimSpace(part.Get("text").String() + part.Get("transcript").String()); text != "" {
			words = append(words, text)
		}
	}
	if text := strings.Join(words, " "); text != "" {
		r.write(it, text)
	}
}

// write sets the words of a message.
func (r *Recall) write(it *item, text string) {
	r.keep(&it.text, clip(text))
	r.forget()
}

// keep sets a text of an item.
func (r *Recall) keep(to *string, text string) {
	r.bytes += len(text) - len(*to)
	*to = strings.Clone(text)
}

// clip bounds the words of one item.
func clip(text string) string {
	if len(text) <= maxText {
		return text
	}
	return strings.ToValidUTF8(text[:maxText], "") + " [cut]"
}

// arguments bounds the arguments of a call, which stay an object.
func arguments(text string) string {
	if len(text) <= maxText {
		return text
	}
	return string(events.Encode(events.Object{"beginning": strings.ToValidUTF8(text[:maxText], "")}))
}

// forget lets the oldest items go beyond the bounds. A call and its output go together, and not before there is one.
func (r *Recall) forget() {
	for i := 0; i < len(r.items)-1 && (len(r.items) > maxItems || r.bytes > maxBytes); {
		it := r.items[i]
		if it.kind == events.ItemCall && !r.has(it.callID) {
			i++
			continue
		}
		r.drop(it)
		if it.kind == events.ItemCall {
			for _, other := range slices.Clone(r.items) {
				if other.kind == events.ItemOutput && other.callID == it.callID {
					r.drop(other)
				}
			}
		}
	}
}

// has reports whether a call has its output.
func (r *Recall) has(call string) bool {
	return slices.ContainsFunc(r.items, func(it *item) bool { return it.kind == events.ItemOutput && it.callID == call })
}

// drop forgets an item of the conversation.
func (r *Recall) drop(it *item) {
	r.remove(it)
	r.left++
	if r.gone = append(r.gone, it.id); len(r.gone) > maxGone {
		r.gone = slices.Delete(r.gone, 0, 1)
	}
}

func (r *Recall) remove(it *item) {
	r.items = slices.DeleteFunc(r.items, func(other *item) bool { return other == it })
	r.bytes -= len(it.text) + len(it.arguments) + len(it.output)
}

// Delete takes an item out of the conversation.
func (r *Recall) Delete(id string) {
	if _, it := r.find(id); it != nil {
		r.remove(it)
	}
	if r.deleted = append(r.deleted, strings.Clone(id)); len(r.deleted) > maxRunning {
		r.deleted = slices.Delete(r.deleted, 0, 1)
	}
	r.gone = slices.DeleteFunc(r.gone, func(other string) bool { return other == id })
}

// Forgot reports whether an item of the conversation was forgotten: a session that was begun since does not have it.
func (r *Recall) Forgot(id string) bool { return slices.Contains(r.gone, id) }

// Truncate takes back the words of an item that were not heard, as its sound was cut after so many milliseconds. How
// many they are is estimated.
func (r *Recall) Truncate(id string, ms int64) {
	_, it := r.find(id)
	if it == nil || it.role != "assistant" {
		return
	}
	letters := int(min(max(ms, 0), 1<<20) / msPerLetter)
	if utf8.RuneCountInString(it.text) <= letters {
		return
	}
	heard := string([]rune(it.text)[:letters])
	if end := strings.LastIndexByte(heard, ' '); end >= 0 {
		heard = heard[:end] + " …"
	} else {
		heard = "…"
	}
	r.keep(&it.text, heard)
}

// A Given is an item for a new session.
type Given struct {
	ID, JSON string
	Ours     bool // its client never had it
}

// Items returns the conversation for a new session, in order and with the ids that it has. What was forgotten is one
// line before all, of this id. A call that was not written to its end is left out.
func (r *Recall) Items(line string) []Given {
	var all []Given
	give := func(id string, ours bool, fields events.Object) {
		fields["id"] = id
		all = append(all, Given{ID: id, JSON: string(events.Encode(fields)), Ours: ours})
		r.given[id] = true
	}
	clear(r.given)
	if r.left > 0 {
		give(line, true, message("system", "The call has been going on for long: its first part is left out here. "+
			"Say nothing of it unless asked; ask again for what you need to know."))
	}
	calls := map[string]bool{}
	for _, it := range r.items {
		switch {
		case it.kind == events.ItemMessage:
			if text := it.said(); text != "" {
				give(it.id, false, message(it.role, text))
			}
		case it.kind == events.ItemCall && it.whole:
			calls[it.callID] = true
			give(it.id, false, events.Object{"type": it.kind, "call_id": it.callID, "name": it.name,
				"arguments": cmp.Or(it.arguments, "{}")})
		case it.kind == events.ItemOutput && calls[it.callID]:
			give(it.id, false, events.Object{"type": it.kind, "call_id": it.callID, "output": it.output})
		}
	}
	return all
}

// said are the words of a message, for the model.
func (it *item) said() string {
	if it.text == "" && it.sound {
		return notTranscribed
	}
	return it.text
}

func message(role, text string) events.Object {
	kind := "input_text"
	if role == "assistant" {
		kind = "output_text"
	}
	return events.Object{"type": events.ItemMessage, "role": role,
		"content": []events.Object{{"type": kind, "text": text}}}
}

// A Line is what the caller or the voice said.
type Line struct {
	Caller bool
	Text   string
}

// Last returns what was said last, at most so many lines, oldest first: no notes, no calls. What the client gave counts
// as said before the model answers it.
func (r *Recall) Last(lines int) []Line {
	items := slices.Clone(r.items)
	for _, a := range r.asked {
		if raw := gjson.GetBytes(a.event, "item"); a.answer == events.TypeItemAdded {
			it := &item{kind: raw.Get("type").String(), role: raw.Get("role").String()}
			new(Recall).message(it, raw)
			items = append(items, it)
		}
	}
	var all []Line
	for _, it := range slices.Backward(items) {
		if it.kind != events.ItemMessage || it.role == "system" || it.text == "" {
			continue
		}
		if all = append(all, Line{it.role == "user", it.text}); len(all) == lines {
			break
		}
	}
	slices.Reverse(all)
	return all
}

// Transcript returns these items as one text, for a model that does not take them as they are; "": there is nothing to
// tell.
func (r *Recall) Transcript(ids []string) string {
	var lines []string
	for _, it := range r.items {
		if !slices.Contains(ids, it.id) {
			continue
		}
		switch who := map[string]string{"user": "The caller", "assistant": "You"}[it.role]; {
		case it.kind == events.ItemMessage && it.said() != "":
			lines = append(lines, cmp.Or(who, "To you")+": "+it.said())
		case it.kind == events.ItemCall:
			lines = append(lines, "You called "+it.name+": "+it.arguments)
		case it.kind == events.ItemOutput:
			lines = append(lines, "It gave: "+it.output)
		}
	}
	if len(lines) == 0 {
		return ""
	}
	return "What was said earlier in this call:\n" + strings.Join(lines, "\n")
}
