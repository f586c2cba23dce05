package realtime

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidwall/gjson"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"switchboard/handoff"
	"switchboard/realtime/events"
)

// A kind is a model server that differs from OpenAI's in its answers to what it is sent, or in its events.
type kind struct {
	updates func(n int, event string) []string // to the nth session.update
	item    func(item string) []string         // that comes into the conversation
	begins  func(id, tag string) []string
	pcm     bool // whatever it is asked for
}

// kinds are the kinds of model servers, by their difference from OpenAI's. Set once.
var kinds = map[string]kind{
	"as OpenAI's":       {},
	"keeps no metadata": {begins: func(id, _ string) []string { return []string{began(id, "")} }},
	"answers no update": {updates: func(int, string) []string { return nil }, pcm: true}, // of which it told first
	"answers updates together": {updates: func(n int,
		event string) []string {
		return map[bool][]string{true: {confirm(event)}}[n == 3]
	}},
	"names items the old way": {item: func(item string) []string {
		return []string{`{"type":"conversation.item.created","previous_item_id":null,"item":` + item + `}`}
	}},
	"begins responses silently": {begins: func(id, _ string) []string {
		return []string{`{"type":"response.output_item.added","response_id":"` + id + `","item":{"id":"m_` + id +
			`","type":"message","role":"assistant"}}`}
	}},
	"refuses G.711": {updates: refusesG711(`"code":"invalid_value","event_id":%s`), pcm: true},
	"refuses G.711 and names no one": {updates: refusesG711(`"param":"session.audio.input.format","event_id":null%.0s`),
		pcm: true},
	"keeps to PCM16": {updates: func(_ int, event string) []string {
		kept := []byte(confirm(event))
		for _, side := range []string{"input", "output"} {
			kept = events.Set(kept, "session.audio."+side+".format", `{"type":"audio/pcm","rate":24000}`)
		}
		return []string{string(kept)}
	}, pcm: true},
	"does not transcribe": {updates: func(_ int, event string) []string {
		if gjson.Get(event, "session.audio.input.transcription").IsObject() {
			return []string{`{"type":"error","error":{"type":"invalid_request_error","code":"unknown_parameter",` +
				`"message":"no","event_id":` + gjson.Get(event, "event_id").Raw + `}}`}
		}
		return []string{confirm(event)}
	}},
	"names no event in errors": {updates: func(_ int, event string) []string {
		if gjson.Get(event, "session.audio.input.transcription").IsObject() {
			return []string{`{"type":"error","error":{"type":"invalid_request_error",` +
				`"param":"session.audio.input.transcription","message":"no"}}`}
		}
		return []string{confirm(event)}
	}},
}

// refusesG711 refuses each update that asks for G.711, with a message that may name the update.
func refusesG711(words string) func(int, string) []string {
	return func(_ int, event string) []string {
		if gjson.Get(event, "session.audio.output.format.type").String() == events.PCMU {
			return []string{`{"type":"error","error":{"type":"invalid_request_error","message":"no",` +
				fmt.Sprintf(words, gjson.Get(event, "event_id").Raw) + `}}`}
		}
		return []string{confirm(event)}
	}
}

func confirm(update string) string {
	return `{"type":"session.updated","session":` + gjson.Get(update, "session").Raw + `}`
}

// whole completes a kind with the behaviour of OpenAI's server.
func (k kind) whole() kind {
	if k.updates == nil {
		k.updates = func(_ int, event string) []string { return []string{confirm(event)} }
	}
	if k.item == nil {
		k.item = func(item string) []string {
			return []string{itemAdded(item), `{"type":"conversation.item.done","item":` + item + `}`}
		}
	}
	if k.begins == nil {
		k.begins = func(id, tag string) []string { return []string{began(id, tag)} }
	}
	return k
}

// Whatever the model's server, the client sees what OpenAI's would have said, its update is answered, and work is
// handed over, answered and told.
func TestKindsOfModels(t *testing.T) {
	for name, k := range kinds {
		k = k.whole()
		t.Run(name, func(t *testing.T) {
			playFresh(t, func(s *stage) {
				updates := 0
				answer := func() {
					for _, e := range s.model.sent() {
						if gjson.Get(e, "type").String() == events.TypeSessionUpdate {
							updates++
							s.fromModel(k.updates(updates, e)...)
						}
					}
				}
				s.fromModel(freshSession)
				s.fromClient(`{"type":"session.update","event_id":"mine","session":{"type":"realtime","instructions":"mine"}}`)
				answer()
				s.wait(answerLimit)
				got := s.wantSent(s.client, "session.created session.updated")[1]
				if gjson.Get(got, "session.instructions").String() != "mine" || strings.Contains(got, "codex") {
					t.Errorf("its update is answered with %s", got)
				}
				s.fromModel(k.item(`{"id":"u1","type":"message","role":"user","status":"completed",` +
					`"content":[{"type":"input_text","text":"hi"}]}`)...)
				s.wantSent(s.client, "conversation.item.added:message conversation.item.done:message")
				s.fromModel(k.begins("r1", "")...)
				if got := types(s.client.sent()); !strings.HasPrefix(got, "response.created") {
					t.Errorf("a response begins with %s", got)
				}
				it := callItem("k1", "call_1", "codex", events.StatusCompleted)
				s.fromModel(itemDone("r1", it), done("r1", "", events.StatusCompleted, it))
				s.wantHeard(handoff.FunctionCall{CallID: "call_1", Tool: "codex", Arguments: `{"server":"bigpc"}`})
				s.say(handoff.Utterance{ID: "a", CallID: "call_1", Text: "{}", Floor: handoff.FloorAsk})
				up := s.wantSent(s.model, "conversation.item.create:function_call_output response.create")
				s.fromModel(k.item(gjson.Get(up[0], "item").Raw)...)
				s.fromModel(k.begins("r2", tagIn(up[1]))...)
				s.fromModel(spoken("r2"), done("r2", gjson.Get(strings.Join(k.begins("r2", tagIn(up[1])), ""),
					"response.metadata.sb").String(), events.StatusCompleted))
				s.wait(15 * time.Second)
				s.wantHeard(handoff.Said{ID: "a"})
				if all := types(s.client.sent()); strings.Contains(all, "error") || strings.Contains(all, "function_call") {
					t.Errorf("the client saw %s", all)
				}
			})
		})
	}
}

// Some servers announce an item by both events. The client sees one of each, whichever came first.
func TestServersThatTellByBothNames(t *testing.T) {
	const written = `{"id":"m1","type":"message","role":"assistant","status":"in_progress"}`
	const heard = `{"id":"u1","type":"message","role":"user","status":"completed"}`
	const added, ended = "conversation.item.added:message", "conversation.item.done:message"
	old := func(item string) string { return `{"type":"conversation.item.created","item":` + item + `}` }
	end := func(item string) string { return `{"type":"conversation.item.done","item":` + item + `}` }
	const output = `{"type":"response.output_item.done","item":` + written + `}`
	for name, c := range map[string]struct {
		says []string
		want string
	}{
		"of what was heard":   {[]string{old(heard), itemAdded(heard), end(heard)}, added + " " + ended},
		"without the new one": {[]string{old(heard), end(heard)}, added + " " + ended},
		"of what is written": {[]string{old(written), itemAdded(written), output, end(written)}, added +
			" response.output_item.done:message " + ended},
		"written, its end twice": {[]string{old(written), output, end(written)}, added +
			" response.output_item.done:message " + ended},
		"the new name before all": {[]string{itemAdded(heard), end(heard)}, added + " " + ended},
	} {
		d, all := newDialect(), []string(nil)
		for _, says := range c.says {
			read, _ := d.read(events.PeekType([]byte(says)), []byte(says))
			for _, e := range read {
				all = append(all, string(e))
			}
		}
		if got := types(all); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// An item that a response writes is done when it is complete, not when it is announced; a response begins once.
func TestItemsOfOldServers(t *testing.T) {
	d := newDialect()
	read := func(event string) string {
		all, _ := d.read(events.PeekType([]byte(event)), []byte(event))
		var list []string
		for _, e := range all {
			list = append(list, string(e))
		}
		return types(list)
	}
	const writing = `{"id":"m1","type":"message","role":"assistant","status":"in_progress"}`
	const old = `{"type":"conversation.item.created","item":` + writing + `}`
	for _, step := range [][2]string{
		{`{"type":"conversation.item.created","item":{"type":"function_call"}}`, "conversation.item.added:function_call"},
		{`{"type":"response.output_item.done"}`, "response.output_item.done"},
		{old, "conversation.item.added:message"},
		{`{"type":"response.output_item.done","item":` + writing + `}`,
			"response.output_item.done:message conversation.item.done:message"},
		{`{"type":"response.output_item.done","item":` + writing + `}`, "response.output_item.done:message"},
		{itemAdded(`{"id":"m2","type":"message"}`), "conversation.item.added:message"},
		{old, "conversation.item.created:message"}, // it tells of both
	} {
		if got := read(step[0]); got != step[1] {
			t.Errorf("%s is %s, want %s", step[0], got, step[1])
		}
	}
	for _, id := range []string{"r1", "r2"} { // one is beside the conversation
		read(began(id, ""))
	}
	for _, id := range []string{"r1", "r2"} {
		if got := read(`{"type":"response.output_item.added","response_id":"` + id +
			`","item":{"id":"m","type":"message"}}`); got != "response.output_item.added:message" {
			t.Errorf("%s has begun, and its item is %s", id, got)
		}
		read(done(id, "", events.StatusCompleted))
	}
	for range 2 * maxDialect {
		d.added = false
		read(`{"type":"response.output_item.added","response_id":"` + newCallID("") + `","item":{"id":"m","type":"message"}}`)
		read(`{"type":"conversation.item.created","item":{"id":"` + newCallID("") + `","type":"function_call"}}`)
	}
	if len(d.created) > maxDialect || len(d.running) > maxDialect {
		t.Errorf("%d and %d are remembered", len(d.created), len(d.running))
	}
}

// A feature that a model server lacks is logged once a call, in words that say what that means for the caller.
func TestWhatAModelCannotDoIsToldOnce(t *testing.T) {
	for lacks, words := range map[string]string{
		"session.tools": "the voice model refused Switchboard's tools: nothing can be handed over in " +
			"this call",
		"session.audio.input.transcription": "the voice model does not transcribe the caller: permissions cannot be given " +
			"by voice in this call",
	} {
		synctest.Test(t, func(t *testing.T) {
			logs, told := observer.New(zap.WarnLevel)
			client := newWire()
			s := newStageBy(t, someone, client, client, func(c *Call) { c.logs = zap.New(logs) })
			s.fromModel(freshSession)
			for n := range 4 {
				for _, e := range s.model.sent() {
					answer := confirm(e)
					if v := gjson.Get(e, lacks); v.IsObject() || strings.Contains(v.Raw, "codex") {
						answer = `{"type":"error","error":{"type":"invalid_request_error","param":"` + lacks +
							`","message":"no","event_id":` + gjson.Get(e, "event_id").Raw + `}}`
					}
					s.fromModel(answer)
				}
				s.fromClient(fmt.Sprintf(`{"type":"session.update","event_id":"e%d","session":{"type":"realtime",`+
					`"audio":{"output":{"speed":1}}}}`, n))
			}
			if n := told.FilterMessage(words).Len(); n != 1 {
				t.Errorf("without %s it is told %d times: %v", lacks, n, told.All())
			}
			s.close()
		})
	}
}

// An interrupted response of an old server may end without an event for the items that it was writing. The client sees
// the end of these, too, and also those of later responses, however many there were.
func TestItemsOfInterruptedResponses(t *testing.T) {
	d := newDialect()
	for i := range maxDialect + 2 {
		item := fmt.Sprintf(`{"id":"m%d","type":"message","role":"assistant","status":"in_progress"}`, i)
		d.read(events.TypeItemCreated, []byte(`{"type":"conversation.item.created","item":`+item+`}`))
		all, made := d.read(events.TypeDone, []byte(done(fmt.Sprint("r", i), "", "cancelled", item)))
		var got []string
		for _, e := range all {
			got = append(got, string(e))
		}
		if want := "conversation.item.done:message response.done"; types(got) != want || made != 1 {
			t.Fatalf("response %d ends with %s (%d made), want %s", i, types(got), made, want)
		}
	}
}
