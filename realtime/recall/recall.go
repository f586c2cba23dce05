package recall

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"switchboard/realtime/events"
	"switchboard/realtime/filter"
)

const (
	// maxItems and maxBytes bound the remembered items and their text. The oldest go first, except calls without an
	// output; a line tells the model that some are missing.
	maxItems = 200
	maxBytes = 64 << 10
	// maxText bounds the text of one item, in bytes; a longer one is clipped.
	maxText = 8 << 10
	// maxGone bounds the remembered ids of forgotten items, maxRunning the running responses.
	maxGone    = 4096
	maxRunning = 64
	// msPerLetter is how long a letter takes to be spoken, for sound that was cut: 15 a second.
	msPerLetter = 66
)

// notTranscribed is the text of what the caller said if there is no transcript.
const notTranscribed = "[not transcribed]"

// A Recall is what is remembered of one call. It may be used from one goroutine at a time.
type Recall struct {
	items        []*item  // in the order of the conversation
	bytes        int      // of text in the items
	forgotten    int      // number of items forgotten so far
	forgottenIDs []string // the newest of these
	deleted      []string // newest deleted items, of which late events may still come
	running      []*response
	unanswered   []sentEvent
	givenItems   map[string]bool // items that this session was sent when it began
}

// An item is one item of the conversation.
type item struct {
	id, kind, role          string
	text                    string // of a message
	callID, name, arguments string
	output                  string
	complete                bool // it is done; of a call: its arguments are all there
	untranscribed           bool // sound of the caller without a transcript yet
	isCut                   bool // its sound was cut: at most so many letters were heard
	letters                 int
}

// A response is a running response.
type response struct {
	raw   string   // as it began, raw JSON
	aside bool     // out of band
	items []string // its items that are done, raw JSON
	open  []openItem
}

// An openItem is an item that a response is still writing.
type openItem struct {
	id    string
	index int64
	raw   string
	words strings.Builder
}

// New returns the memory of a call whose session has not begun.
func New() *Recall { return &Recall{givenItems: map[string]bool{}} }

// FromModel handles an event of the model. It is given all events in order, but sound and errors.
func (r *Recall) FromModel(kind string, event []byte) {
	field := func(path string) gjson.Result { return gjson.GetBytes(event, path) }
	switch kind {
	case events.TypeItemAdded, events.TypeItemCreated, events.TypeItemDone:
		if id := field("item.id").String(); kind != events.TypeItemDone { // an id may be used again
			r.deleted = slices.DeleteFunc(r.deleted, func(other string) bool { return other == id })
		}
		r.item(field("item"), field("previous_item_id"))
		r.answered(kind, field("item.id").String())
	case events.TypeTranscribed:
		if _, it := r.find(field("item_id").String()); it != nil {
			it.untranscribed = false
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
		o := r.openItem(field("response_id").String(), field("item_id").String())
		if o != nil && o.words.Len() < maxText {
			o.words.WriteString(field("delta").String())
		}
	case events.TypeOutputDone:
		r.close(event)
	case events.TypeDone:
		r.end(field("response"))
	}
}

// begin notes the beginning of a response.
func (r *Recall) begin(raw gjson.Result) {
	aside := filter.Aside(events.TagOf(raw)) || events.OutOfBand(raw)
	if raw.IsObject() && len(r.running) < maxRunning {
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

// open notes an item that a response begins to write.
func (r *Recall) open(event []byte) {
	it := gjson.GetBytes(event, "item")
	p := r.responseOf(gjson.GetBytes(event, "response_id").String())
	if p != nil && it.IsObject() && len(p.open) < maxRunning {
		p.open = append(p.open, openItem{
			id: strings.Clone(it.Get("id").String()), index: gjson.GetBytes(event, "output_index").Int(),
			raw: strings.Clone(it.Raw),
		})
	}
}

func (r *Recall) openItem(response, id string) *openItem {
	if p := r.responseOf(response); p != nil {
		for i := range p.open {
			if p.open[i].id == id {
				return &p.open[i]
			}
		}
	}
	return nil
}

// close notes an item that a response has finished.
func (r *Recall) close(event []byte) {
	it := gjson.GetBytes(event, "item")
	p := r.responseOf(gjson.GetBytes(event, "response_id").String())
	if p == nil || !it.IsObject() {
		return
	}
	p.open = slices.DeleteFunc(p.open, func(o openItem) bool { return o.id == it.Get("id").String() })
	if p.items = append(p.items, strings.Clone(it.Raw)); !p.aside {
		r.item(it, gjson.Result{})
	}
}

// end handles the end of a response, whose beginning may not have been reported, with its output.
func (r *Recall) end(raw gjson.Result) {
	id := raw.Get("id").String()
	p := r.responseOf(id)
	r.running = slices.DeleteFunc(r.running, func(other *response) bool { return other == p })
	if p != nil && p.aside || filter.Aside(events.TagOf(raw)) || events.OutOfBand(raw) {
		return
	}
	status := raw.Get("status").String()
	for _, it := range raw.Get("output").Array() {
		if it.Get("status").String() == "" && status == events.StatusCompleted { // some servers give items no status
			it = gjson.ParseBytes(events.Set([]byte(it.Raw), "status", events.Quote(status)))
		}
		r.item(it, gjson.Result{})
	}
}

// find returns an item and its index, or -1 and nil.
func (r *Recall) find(id string) (int, *item) {
	for i, it := range slices.Backward(r.items) {
		if it.id == id {
			return i, it
		}
	}
	return -1, nil
}

// item notes an item as the model reports it now.
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
		} else if raw.Get("role").String() != "assistant" && raw.Get("type").String() != events.ItemCall &&
			r.comesFirst(id) {
			at = 0
		}
		r.items = slices.Insert(r.items, at, it)
	}
	it.kind, it.role = strings.Clone(raw.Get("type").String()), strings.Clone(raw.Get("role").String())
	it.complete = it.complete || raw.Get("status").String() == events.StatusCompleted
	switch it.kind {
	case events.ItemMessage:
		r.message(it, raw)
	case events.ItemCall:
		it.callID, it.name = strings.Clone(raw.Get("call_id").String()), strings.Clone(raw.Get("name").String())
		r.keep(&it.arguments, arguments(raw.Get("arguments").String()))
	case events.ItemOutput:
		it.callID, it.complete = strings.Clone(raw.Get("call_id").String()), true
		r.keep(&it.output, clip(raw.Get("output").String()))
	}
	r.forget()
}

// message notes the text of a message. An event without a text leaves the known one.
func (r *Recall) message(it *item, raw gjson.Result) {
	var words []string
	for _, part := range raw.Get("content").Array() {
		switch part.Get("type").String() {
		case "input_image":
			words = append(words, "[picture]")
		case "input_audio":
			it.untranscribed = part.Get("transcript").Type != gjson.String && it.text == ""
		}
		if text := strings.TrimSpace(part.Get("text").String() + part.Get("transcript").String()); text != "" {
			words = append(words, text)
		}
	}
	if text := strings.Join(words, " "); text != "" {
		r.write(it, text)
	}
}

// write sets the text of a message, as far as it was heard.
func (r *Recall) write(it *item, text string) {
	r.keep(&it.text, clip(it.heard(text)))
	r.forget()
}

// keep sets a text of an item, and counts its bytes.
func (r *Recall) keep(to *string, text string) {
	r.bytes += len(text) - len(*to)
	*to = strings.Clone(text)
}

// clip bounds the text of one item.
func clip(text string) string {
	if len(text) <= maxText {
		return text
	}
	return strings.ToValidUTF8(text[:maxText], "") + " [cut]"
}

// arguments bounds the arguments of a call, and keeps them a JSON object.
func arguments(text string) string {
	if len(text) <= maxText {
		return text
	}
	return string(events.Encode(events.Object{"beginning": strings.ToValidUTF8(text[:maxText], "")}))
}

// forget forgets the oldest items beyond the bounds. A call and its output go together, and not before there is an
// output, unless the call was not written to its end.
func (r *Recall) forget() {
	for i := 0; i < len(r.items)-1 && (len(r.items) > maxItems || r.bytes > maxBytes); {
		it := r.items[i]
		if it.kind == events.ItemCall && it.complete && !r.has(it.callID) {
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

// has reports whether there is an output for a call.
func (r *Recall) has(call string) bool {
	return slices.ContainsFunc(r.items, func(it *item) bool {
		return it.kind == events.ItemOutput && it.callID == call
	})
}

// drop forgets an item, which the conversation still has.
func (r *Recall) drop(it *item) {
	r.remove(it)
	r.forgotten++
	if r.forgottenIDs = append(r.forgottenIDs, it.id); len(r.forgottenIDs) > maxGone {
		r.forgottenIDs = slices.Delete(r.forgottenIDs, 0, 1)
	}
}

func (r *Recall) remove(it *item) {
	r.items = slices.DeleteFunc(r.items, func(other *item) bool { return other == it })
	r.bytes -= len(it.text) + len(it.arguments) + len(it.output)
}

// Delete removes an item that was deleted from the conversation.
func (r *Recall) Delete(id string) {
	if _, it := r.find(id); it != nil {
		r.remove(it)
	}
	if r.deleted = append(r.deleted, strings.Clone(id)); len(r.deleted) > maxRunning {
		r.deleted = slices.Delete(r.deleted, 0, 1)
	}
	r.forgottenIDs = slices.DeleteFunc(r.forgottenIDs, func(other string) bool { return other == id })
}

// Forgot reports whether an item of the conversation was forgotten, so that later sessions do not have it.
func (r *Recall) Forgot(id string) bool { return slices.Contains(r.forgottenIDs, id) }

// Truncate shortens the text of an item whose sound was cut after so many milliseconds, also if it comes later. How
// much text that is, is estimated.
func (r *Recall) Truncate(id string, ms int64) {
	_, it := r.find(id)
	if it == nil || it.role != "assistant" {
		return
	}
	it.isCut, it.letters = true, int(min(max(ms, 0), 1<<20)/msPerLetter)
	r.keep(&it.text, it.heard(it.text))
}

// heard returns what was heard of the item's text.
func (it *item) heard(text string) string {
	if !it.isCut || utf8.RuneCountInString(text) <= it.letters {
		return text
	}
	heard := string([]rune(text)[:it.letters])
	if end := strings.LastIndexByte(heard, ' '); end >= 0 {
		return heard[:end] + " …"
	}
	return "…"
}

// A SessionItem is an item for a new session.
type SessionItem struct {
	ID, JSON string
	Ours     bool // the client never had it
}

// Items returns the conversation for a new session, in order and with the items' ids. If items were forgotten, the
// first one is a line about that, with the id line. Incomplete calls are left out.
func (r *Recall) Items(line string) []SessionItem {
	var all []SessionItem
	give := func(id string, ours bool, fields events.Object) {
		fields["id"] = id
		all = append(all, SessionItem{ID: id, JSON: string(events.Encode(fields)), Ours: ours})
		r.givenItems[id] = true
	}
	clear(r.givenItems)
	if r.forgotten > 0 {
		give(line, true, message("system", "The call has been going on for long: its first part is left out here. "+
			"Say nothing of it unless asked; ask again for what you need to know."))
	}
	calls := map[string]bool{}
	for _, it := range r.items {
		switch {
		case it.kind == events.ItemMessage:
			if text := it.words(); text != "" {
				give(it.id, false, message(it.role, text))
			}
		case it.kind == events.ItemCall && it.complete:
			calls[it.callID] = true
			give(it.id, false, events.Object{"type": it.kind, "call_id": it.callID, "name": it.name,
				"arguments": cmp.Or(it.arguments, "{}")})
		case it.kind == events.ItemOutput && calls[it.callID]:
			give(it.id, false, events.Object{"type": it.kind, "call_id": it.callID, "output": it.output})
		}
	}
	return all
}

// words returns the text of a message, for the model.
func (it *item) words() string {
	if it.text == "" && it.untranscribed {
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

// A Line is one message of the caller or the voice.
type Line struct {
	Caller bool
	Text   string
}

// Last returns the last messages of the caller and the voice, at most so many, oldest first. Items from the client
// count before the model has confirmed them.
func (r *Recall) Last(lines int) []Line {
	items := slices.Clone(r.items)
	for _, a := range r.unanswered {
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

// Transcript returns these items as one text, for a model that refuses them as items; "": they have no text.
func (r *Recall) Transcript(ids []string) string {
	var lines []string
	for _, it := range r.items {
		if !slices.Contains(ids, it.id) {
			continue
		}
		switch who := map[string]string{"user": "The caller", "assistant": "You"}[it.role]; {
		case it.kind == events.ItemMessage && it.words() != "":
			lines = append(lines, cmp.Or(who, "To you")+": "+it.words())
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
