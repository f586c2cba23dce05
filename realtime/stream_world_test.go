package realtime

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidwall/gjson"

	"switchboard/handoff"
	"switchboard/realtime/events"
)

// A streamWorld is a whole call with a client, a model that follows the protocol's rules, and a router, which all act
// at random. A streamView checks what the call sends.
type streamWorld struct {
	*stage
	choose func(n int) int // one of n things
	view   *streamView
	slow   bool // the model may answer updates after their time
	n      int

	inbox      []string // that the model has not taken yet
	tools      string   // the model's, raw
	says       string   // its instructions, raw
	items      []string // of its conversation, in order
	run        *streamResponse
	outputs    map[string]int // of our calls that were completed
	theirs     []string       // calls of the client's tools that wait for their output
	open       []string       // requests that the router has not answered
	successors *successors    // nil: it has one session alone
}

// A streamResponse is one that the model makes.
type streamResponse struct {
	id, metadata, conversation, tools string
	item, kind                        string // that it writes; "" for none
	call                              string // what that item calls, raw
	output                            []string
}

// TestStreams checks many random calls: the client sees a valid stream with nothing of ours in it, all else is as its
// author wrote it, and each of our completed function calls has exactly one output, whenever the client leaves.
func TestStreams(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 7))
		t.Run(fmt.Sprint(seed), func(t *testing.T) { runStream(t, 120, random.IntN) })
	}
}

// FuzzStreams does the same with calls made from bytes.
func FuzzStreams(f *testing.F) {
	f.Add([]byte("0123456789"))
	f.Add([]byte{3, 1, 3, 0, 1, 1, 4, 2, 9, 9, 3, 7, 1, 6, 6, 200, 13, 5, 4, 77})
	f.Fuzz(func(t *testing.T, choices []byte) {
		runStream(t, min(len(choices), 300), func(n int) int {
			if len(choices) == 0 {
				return 0
			}
			c := choices[0]
			choices = choices[1:]
			return int(c) % n
		})
	})
}

func runStream(t *testing.T, steps int, choose func(int) int) {
	synctest.Test(t, func(t *testing.T) {
		w := &streamWorld{stage: newStage(t), choose: choose, view: newStreamView(t), tools: "[]", says: `"be nice"`,
			outputs: map[string]int{}}
		w.slow = w.choose(4) == 0
		if w.choose(2) == 0 {
			w.successors = renewed(w.stage)
		}
		w.emit(events.TypeSessionCreated, `"session":`+w.session())
		for range steps {
			w.step()
		}
		if w.choose(2) == 0 { // else the client leaves in the middle of it
			w.quiet()
			for id, runs := range w.view.running {
				if runs {
					t.Errorf("%s never ends", id)
				}
			}
			if len(w.view.owed) > 0 {
				t.Errorf("the client never saw %v", w.view.owed)
			}
		}
		w.close()
		w.look()
		for call, n := range w.outputs {
			if n != 1 {
				t.Errorf("%s has %d outputs", call, n)
			}
		}
	})
}

// step lets something happen.
func (w *streamWorld) step() {
	w.n++
	if w.successors != nil && w.choose(12) == 0 {
		w.swap()
		return
	}
	switch w.choose(10) {
	case 0, 1, 2:
		w.take()
	case 3, 4, 5:
		w.speak()
	case 6, 7:
		w.client()
	case 8:
		w.answer()
	case 9:
		for !w.slow && slices.ContainsFunc(w.inbox,
			func(e string) bool { return events.PeekType([]byte(e)) == events.TypeSessionUpdate }) {
			w.take() // a model that takes its time for updates is another kind
		}
		w.wait([]time.Duration{20 * time.Millisecond, time.Second, 4 * time.Second}[w.choose(3)])
	}
	w.look()
}

// swap lets the model's session end, and another one begin some time later, which knows nothing.
func (w *streamWorld) swap() {
	for len(w.inbox) > 0 { // a model is not that slow
		w.take()
	}
	w.wait(21 * time.Second) // three that are lost within a minute are enough for a call
	w.look()
	for range w.choose(6) { // in the middle of something
		[]func(){w.take, w.speak, w.client, w.answer}[w.choose(4)]()
		w.look()
	}
	w.inbox, w.items, w.run, w.tools, w.says = nil, nil, nil, "[]", `"be nice"`
	for call := range w.outputs {
		w.outputs[call] = 0
	}
	w.successors.lose()
	w.look()
	for range w.choose(4) {
		if w.choose(2) == 0 {
			w.client()
		} else {
			w.answer()
		}
		w.look()
	}
	if len(w.inbox) > 0 {
		w.t.Errorf("a session that is gone was sent %v", w.inbox)
	}
	if w.choose(2) == 0 {
		w.wait(time.Second)
	}
	w.n++
	w.successors.begin(fmt.Sprintf(`{"type":%q,"event_id":"m%d","session":%s}`,
		events.TypeSessionCreated, w.n, w.session()))
	w.look()
	for len(w.inbox) > 0 { // before it hears anything of the caller, and could begin by itself
		w.take()
	}
}

// quiet lets everything finish.
func (w *streamWorld) quiet() {
	for range 40 {
		for len(w.inbox) > 0 || w.run != nil {
			w.take()
			w.end(events.StatusCompleted)
		}
		for len(w.open) > 0 {
			w.answer()
			w.look()
		}
		w.wait(time.Second)
		w.look()
	}
}

// look takes what left the call: the client looks at it, and the model's part waits for it.
func (w *streamWorld) look() {
	for _, e := range w.stage.client.sent() {
		w.view.see(e)
	}
	for _, e := range w.model.sent() {
		w.view.passed(e)
		if w.inbox = append(w.inbox, e); gjson.Get(e, "item.type").Str == events.ItemOutput {
			if call := gjson.Get(e, "item.call_id").Str; strings.HasPrefix(call, "ours_") {
				w.outputs[call]++
			}
		}
	}
	for _, e := range w.router.heard() {
		if call, ok := e.(handoff.FunctionCall); ok {
			w.open = append(w.open, call.CallID)
		}
	}
}

// answer is the router's to a request, or news.
func (w *streamWorld) answer() {
	floor := []handoff.Floor{handoff.FloorAsk, handoff.FloorUnlessSpoke, handoff.FloorNone}[w.choose(3)]
	u := handoff.Utterance{ID: fmt.Sprint("n", w.n), Text: "[news]", Floor: floor}
	if len(w.open) > 0 {
		u.CallID, w.open = w.open[0], w.open[1:]
		u.ID, w.n = "a"+u.CallID, w.n+1
	}
	w.say(u)
}

// client lets the client do something that a client may.
func (w *streamWorld) client() {
	known := w.view.known
	switch w.choose(8) {
	case 0, 1:
		w.view.updates++
		w.sends(`"type":"session.update","session":` + []string{
			`{"type":"realtime","tools":[]}`, `{"type":"realtime","tools":[{"type":"function","name":"weather"}]}`,
			`{"type":"realtime","tool_choice":"required"}`, `{"type":"realtime","tool_choice":"auto","instructions":"mine"}`,
			`{"type":"realtime","instructions":""}`, `{"type":"realtime","tools":[{"type":"function","name":"codex"}]}`,
		}[w.choose(6)])
	case 2:
		w.sends(`"type":"conversation.item.create",` + []string{``, `"previous_item_id":"root",`}[w.choose(2)] +
			`"item":{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]}`)
	case 3:
		if len(known) > 0 {
			w.sends(`"type":"conversation.item.delete","item_id":"` + known[w.choose(len(known))] + `"`)
		}
	case 4, 5:
		w.sends([]string{`"type":"response.create"`, `"type":"response.create","response":{"metadata":{"mine":"1"}}`,
			`"type":"response.create","response":{"tools":[{"type":"function","name":"codex"}]}`, `"type":"response.create",` +
				`"response":{"conversation":"none","metadata":{"mine":"2"}}`}[w.choose(4)])
	case 6:
		w.sends([]string{`"type":"response.cancel"`, `"type":"response.cancel","response_id":"r1"`}[w.choose(2)])
	case 7:
		if len(w.theirs) > 0 {
			w.sends(`"type":"conversation.item.create","item":{"type":"function_call_output","call_id":"` + w.theirs[0] +
				`","output":"x"}`)
			w.sends(`"type":"response.create"`)
			w.theirs = w.theirs[1:]
		}
	}
}

// sends sends an event of the client, in the protocol's own spelling.
func (w *streamWorld) sends(fields string) {
	w.n++
	e := fmt.Sprintf(`{"event_id":"c%d",%s}`, w.n, fields)
	w.view.sent[fmt.Sprint("c", w.n)] = e
	w.fromClient(e)
}

// emit sends an event of the model.
func (w *streamWorld) emit(kind, fields string) {
	w.n++
	e := fmt.Sprintf(`{"type":%q,"event_id":"m%d",%s}`, kind, w.n, fields)
	w.view.expect(fmt.Sprint("m", w.n), e)
	w.fromModel(e)
	w.look()
}

func (w *streamWorld) session() string {
	return `{"type":"realtime","id":"sess_1","instructions":` + w.says + `,"tools":` + w.tools +
		`,"audio":{"input":{"transcription":null}}}`
}

// ourTool reports whether a tool that the model has is ours: the client's have no parameters here.
func ourTool(tool gjson.Result) bool { return tool.Get("parameters").Exists() }

// remove takes an item out of the model's conversation.
func (w *streamWorld) remove(id string) bool {
	i := slices.Index(w.items, id)
	if i < 0 {
		return false
	}
	w.items = slices.Delete(w.items, i, i+1)
	return true
}
