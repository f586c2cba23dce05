package filter

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

// A world is a client and a model at both ends of a filter, who do what comes to their mind.
type world struct {
	t      *testing.T
	random *rand.Rand
	m      *Filter
	n      int
	queue  [][]byte        // session updates that the model has not answered, oldest first
	has    string          // the tools that the model has, raw
	says   string          // the instructions that are in force, raw
	items  []string        // of the conversation, in the model's order
	seen   map[string]bool // items that the client knows
	slow   bool            // the model takes its time for answers
	told   map[string]bool // updates that were given up before it answered, by event id
}

// TestClientSeesItsOwn lets many worlds run: whatever is asked for, refused, answered late, called and deleted, the
// client sees nothing of ours, all of its own, and no place that it does not know.
func TestClientSeesItsOwn(t *testing.T) {
	for seed := range uint64(300) {
		w := &world{t: t, random: rand.New(rand.NewPCG(seed, 11)), m: newTestFilter(), has: "[]", says: `"be nice"`,
			seen: map[string]bool{}, told: map[string]bool{}}
		_, w.queue = w.m.FromModel("session.created", []byte(freshSession))
		if w.slow = seed%2 > 0; w.slow { // as a model that answers is known by an answer
			w.answer(false)
		}
		for range 80 {
			w.step()
		}
		for len(w.queue) > 0 {
			w.answer(false)
		}
		if !w.m.Confirmed() {
			t.Fatalf("seed %d: an update is left", seed)
		}
	}
}

func (w *world) step() {
	w.n++
	if w.slow && w.random.IntN(8) == 0 {
		w.m.Overdue()
		for _, u := range w.queue {
			w.told[gjson.GetBytes(u, "event_id").String()] = true
		}
	}
	switch w.random.IntN(7) {
	case 0:
		w.update()
	case 1, 2:
		if len(w.queue) > 0 {
			w.answer(w.random.IntN(3) == 0)
		}
	case 3:
		w.call()
	case 4, 5:
		w.add(fmt.Sprint("u", w.n), w.random.IntN(3) == 0)
	case 6:
		if len(w.items) > 0 {
			i := w.random.IntN(len(w.items))
			id := w.items[i]
			if shown := w.m.model(`{"type":"conversation.item.deleted","item_id":"` + id + `"}`); (shown != "") != w.seen[id] {
				w.t.Fatalf("the deletion of %s is shown as %q", id, shown)
			}
			w.items = append(w.items[:i], w.items[i+1:]...)
			delete(w.seen, id)
		}
	}
}

// update is one of the client.
func (w *world) update() {
	session := []string{
		`{"tools":[]}`, `{"tools":[{"type":"function","name":"weather"}]}`, `{"tools":[{"type":"function","name":"codex"}]}`,
		`{"tool_choice":"required"}`, `{"tool_choice":"auto"}`, `{"instructions":"mine"}`, `{"voice":"cedar"}`,
		`{"tools":null,"tool_choice":"auto"}`,
	}[w.random.IntN(8)]
	w.queue = append(w.queue,
		w.m.client(fmt.Sprintf(`{"type":"session.update","event_id":"c%d","session":%s}`, w.n, session)).Forward)
}

// answer is the model's to the oldest update. Ours it never refuses here.
func (w *world) answer(refuse bool) {
	u := w.queue[0]
	w.queue = w.queue[1:]
	id := gjson.GetBytes(u, "event_id").String()
	own := strings.HasPrefix(id, "sb_")
	if refuse && !own {
		refusal, known := w.m.Refused(id, fault(id))
		if w.queue = append(w.queue, refusal.Again...); !known || refusal.Shown == nil {
			w.t.Fatalf("the client does not hear that %s was refused: %s; known %s", id, u, w.m.session.reported)
		}
		return
	}
	if tools := gjson.GetBytes(u, pathTools); tools.Exists() {
		w.has = tools.Raw
	}
	if instructions := gjson.GetBytes(u, pathInstructions); instructions.Exists() {
		w.says = instructions.Raw
	}
	shown := w.m.model(`{"type":"session.updated","session":{"instructions":` + w.says + `,"tools":` + w.has + `}}`)
	if (shown == "") != (own || w.told[id]) || strings.Contains(shown, guide) || strings.Contains(shown, "list_servers") {
		w.t.Fatalf("of the answer to %s the client sees %q", u, shown)
	}
}

// call lets the model call one of the tools that it has: what is ours is hidden, its output is not the client's.
func (w *world) call() {
	tools := gjson.Parse(w.has).Array()
	if len(tools) == 0 {
		return
	}
	tool := tools[w.random.IntN(len(tools))]
	name, id := tool.Get("name").String(), fmt.Sprint("k", w.n)
	ours := tool.Get("parameters").Exists() // the client's have none here
	response := fmt.Sprint("r", w.n)
	w.m.model(began(response, ""))
	item := callItem(id, "c"+id, name, "completed")
	event := itemDone(response, item)
	if shown := w.m.model(event); ours && shown != "" || !ours && shown != event {
		w.t.Fatalf("of a call of %s (ours: %t) the client sees %q", name, ours, shown)
	}
	if end := w.m.model(done(response, "", "completed", item)); strings.Contains(end, id) == ours {
		w.t.Fatalf("of its end it sees %q", end)
	}
	if v := w.m.client(`{"type":"conversation.item.create","item":{"type":"function_call_output","call_id":"c` + id +
		`","output":"x"}}`); v.Leaked != ours {
		w.t.Fatalf("the client's output of %s (ours: %t) is dropped: %t", name, ours, v.Leaked)
	}
}

// add puts an item at the end of the conversation.
func (w *world) add(id string, ours bool) {
	if ours {
		w.m.Hide(id)
	}
	previous := "null"
	if n := len(w.items); n > 0 {
		previous = `"` + w.items[n-1] + `"`
	}
	w.items = append(w.items, id)
	shown := w.m.model(`{"type":"conversation.item.added","previous_item_id":` + previous + `,"item":{"id":"` + id +
		`","type":"message","role":"user"}}`)
	if ours != (shown == "") {
		w.t.Fatalf("of %s (ours: %t) the client sees %q", id, ours, shown)
	}
	if ours {
		return
	}
	want := "" // the nearest before it that the client knows
	for _, other := range w.items[:len(w.items)-1] {
		if w.seen[other] {
			want = other
		}
	}
	w.seen[id] = true
	if got := gjson.Get(shown, "previous_item_id").String(); got != want {
		w.t.Fatalf("%s stands behind %q, want %q", id, got, want)
	}
}
