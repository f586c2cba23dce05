package realtime

import (
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"switchboard/realtime/events"
)

// A streamView checks the stream of a client against the protocol's rules, and against what the model sent.
type streamView struct {
	t       *testing.T
	made    map[string]string // the model's events, by id
	sent    map[string]string // the client's, by id
	hidden  map[string]bool   // items that are ours
	owed    map[string]string // what the client must still see, by id
	began   bool
	known   []string          // items of the conversation that the client may name
	writing map[string]string // items that a response writes, with it
	running map[string]bool   // responses
	again   map[string]bool   // items that a new session was given
	muted   map[string]bool   // responses that Switchboard ended by itself
	calls   map[string]string // of its own tools
	updates int               // of the session that it asked for and was not answered
}

func newStreamView(t *testing.T) *streamView {
	return &streamView{
		t: t, made: map[string]string{}, sent: map[string]string{}, hidden: map[string]bool{}, owed: map[string]string{},
		writing: map[string]string{}, again: map[string]bool{}, running: map[string]bool{}, muted: map[string]bool{}, calls: map[string]string{},
	}
}

// hide notes an item of ours.
func (v *streamView) hide(item string) { v.hidden[item] = true }

// isOurs reports whether an event is about what the client must not see.
func (v *streamView) isOurs(e gjson.Result) bool {
	if it := e.Get("item"); strings.HasPrefix(it.Get("id").Str, itemPrefix) ||
		strings.HasPrefix(it.Get("call_id").Str, "ours_") {
		return true
	}
	id := e.Get("item_id").Str
	return v.hidden[id] || strings.HasPrefix(id, itemPrefix)
}

// expect notes an event that the model is about to send.
func (v *streamView) expect(id, event string) {
	v.made[id] = event
	e := gjson.Parse(event)
	kind, item := e.Get("type").Str, e.Get("item.id").Str
	if kind == events.TypeItemAdded && slices.Contains(v.known, item) {
		v.again[item] = true
		return
	} else if kind == events.TypeItemDone && v.again[item] {
		delete(v.again, item)
		return
	}
	switch {
	case kind == events.TypeError && v.sent[e.Get("error.event_id").Str] == "", v.isOurs(e):
	case kind == events.TypeError && e.Get("error.code").Str == events.CodeActive: // it is asked again
	case kind == events.TypeSessionUpdated || v.muted[e.Get("response_id").Str]:
	default:
		v.owed[id] = kind
	}
}

// passed checks an event that the model is sent: the client's events are as the client wrote them.
func (v *streamView) passed(event string) {
	e := gjson.Parse(event)
	kind, was := e.Get("type").Str, v.sent[e.Get("event_id").Str]
	if was != "" && was != event && kind != events.TypeSessionUpdate && kind != events.TypeCreate {
		v.t.Errorf("the client's %s became %s", was, event)
	}
	if kind == events.TypeCancel && was == "" {
		v.muted[e.Get("response_id").Str] = true
	}
}

// see looks at an event that the client is sent.
func (v *streamView) see(event string) {
	e := gjson.Parse(event)
	kind := e.Get("type").Str
	if v.began = v.began || kind == events.TypeSessionCreated; !v.began {
		v.t.Errorf("the stream begins with %s", event)
	}
	for _, mark := range []string{guide, "ours_", "list_servers", `"sb"`, `"id":"sb_`, `item_id":"sb_`} {
		if strings.Contains(event, mark) {
			v.t.Errorf("the client sees %s in %s", mark, event)
		}
	}
	v.same(kind, e, event)
	switch kind {
	case events.TypeSessionUpdated:
		if v.updates--; v.updates < 0 {
			v.t.Errorf("nobody asked for %s", event)
		}
	case events.TypeCreated:
		id := e.Get("response.id").Str
		if _, twice := v.running[id]; twice {
			v.t.Errorf("not a valid stream: %s begins twice", id)
		}
		v.running[id] = true
	case events.TypeDone:
		v.finished(e)
	case events.TypeError, events.TypeSessionCreated:
	default:
		v.item(kind, e)
	}
}

// same checks that an event is as the model wrote it.
func (v *streamView) same(kind string, e gjson.Result, event string) {
	id := e.Get("event_id").Str
	was, made := v.made[id]
	if delete(v.owed, id); !made { // an answer of Switchboard's own to what the client did
		return
	}
	switch kind {
	case events.TypeSessionCreated, events.TypeSessionUpdated:
		was = event // the filter's own tests hold what is in it
	case events.TypeItemAdded, events.TypeItemDone:
		was = string(events.Set([]byte(was), "previous_item_id", e.Get("previous_item_id").Raw))
	case events.TypeCreated, events.TypeDone:
		was = string(events.Set([]byte(was), "response.metadata", e.Get("response.metadata").Raw))
		was = string(events.Set([]byte(was), "response.output", e.Get("response.output").Raw))
	}
	if was != event {
		v.t.Errorf("%s became %s", v.made[id], event)
	}
}

// item follows the items of the conversation, and those that a response writes.
func (v *streamView) item(kind string, e gjson.Result) {
	id := e.Get("item.id").Str
	if id == "" {
		id = e.Get("item_id").Str
	}
	known, response := slices.Contains(v.known, id), e.Get("response_id").Str
	fine := true
	switch kind {
	case events.TypeItemAdded:
		previous := e.Get("previous_item_id")
		fine = !known && (previous.Type == gjson.Null || slices.Contains(v.known, previous.Str))
		v.known = append(v.known, id)
	case events.TypeItemDone:
		fine = known
	case events.TypeItemDeleted:
		fine = known
		v.known = slices.DeleteFunc(v.known, func(other string) bool { return other == id })
	case events.TypeOutputAdded:
		fine = v.running[response] && v.writing[id] == ""
		v.writing[id] = response
	case events.TypeOutputDone:
		fine = v.running[response] && v.writing[id] == response
		v.calls[id] = response
	case events.TypeSpokenDelta, events.TypeArguments:
		fine = v.running[response] && v.writing[id] == response && v.calls[id] == ""
	}
	if !fine {
		v.t.Errorf("not a valid stream: %s; items %v", e.Raw, v.known)
	}
}

// finished looks at the end of a response: what is in it was told of before.
func (v *streamView) finished(e gjson.Result) {
	id := e.Get("response.id").Str
	if !v.running[id] {
		v.t.Errorf("not a valid stream: %s ends, and never began", id)
	}
	v.running[id] = false
	for _, item := range e.Get("response.output").Array() {
		if v.calls[item.Get("id").Str] != id {
			v.t.Errorf("not a valid stream: %s was never told of before %s", item, e)
		}
	}
	was, made := v.made[e.Get("event_id").Str]
	if !made { // Switchboard's, in the place of a session that is gone
		return
	}
	whole := gjson.Get(was, "response.output").Array()
	theirs := slices.DeleteFunc(whole,
		func(item gjson.Result) bool { return strings.HasPrefix(item.Get("call_id").Str, "ours_") })
	if len(theirs) != len(e.Get("response.output").Array()) {
		v.t.Errorf("of %v the client sees %s", whole, e.Get("response.output"))
	}
}
