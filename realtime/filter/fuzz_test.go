package filter

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"switchboard/realtime/events"
)

// FuzzFilter holds the filter to three things whatever JSON passes: it never panics, what it lets through is
// JSON, and an event that holds nothing of ours stays the same bytes.
func FuzzFilter(f *testing.F) {
	for _, seed := range []string{
		freshSession,
		`{"type":"session.update","session":{"tools":[{"name":"codex"}],"tool_choice":"required","audio":{"input":null}}}`,
		`{"type":"session.update","session":{"instructions":null,"audio":{"input":{"transcription":null,` +
			`"turn_detection":null}}}}`,
		`{"type":"session.updated","session":{"tools":[{"type":"function","name":"codex"}],"instructions":"x"}}`,
		`{"type":"response.create","response":{"conversation":"none","metadata":{"a":"b"},"tools":[]}}`,
		began("r1", "c1"), done("r1", "c1", "completed", callItem("k1", "c1", "codex", "completed")),
		itemDone("r1", callItem("k1", "c1", "codex", "completed")),
		itemAdded(callItem("", "", "codex", "")),
		`{"type":"conversation.item.added","previous_item_id":"k1","item":{"id":"k1","type":"function_call","name":"codex"}}`,
		`{"type":"conversation.item.create","item":{"type":"function_call_output","call_id":"c1"}}`,
		`{"type":"conversation.item.delete","item_id":"k1"}`,
		`{"type":"conversation.item.done","item":{"id":"u1","type":"message","role":"user",` +
			`"content":[{"type":"input_audio","transcript":"hi"},7]}}`,
		`{"item":[],"response":[],"session":[],"type":"response.done"}`,
		`{"type":"made.up","item_id":7}`,
	} {
		f.Add(seed, seed)
	}
	f.Fuzz(func(t *testing.T, first, second string) {
		if !gjson.Valid(first) || !gjson.Valid(second) {
			return
		}
		m := newOpenFilter()
		m.model(itemDone("r1", callItem("k1", "c1", "codex", "completed")))
		for _, event := range []string{first, second, first} {
			pass(t, m, event)
		}
	})
}

// pass puts an event through the filter both ways.
func pass(t *testing.T, m *Filter, event string) {
	t.Helper()
	kind := events.PeekType([]byte(event))
	shown, updates := m.FromModel(kind, []byte(event))
	for _, own := range updates {
		check(t, m, "", string(own))
	}
	for _, e := range shown {
		check(t, m, event, string(e))
	}
	if kind == events.TypeCreate {
		check(t, m, "", m.create(event))
		return
	}
	v := m.client(event)
	check(t, m, "", string(v.Forward))
	check(t, m, "", string(v.Reply))
}

// TestFilterAtRandom makes events of the words that matter, in shapes that may be wrong; not so many that a
// loaded machine would mind.
func TestFilterAtRandom(t *testing.T) {
	for seed := range uint64(40) {
		random := rand.New(rand.NewPCG(seed, 3))
		m := newTestFilter()
		for range 40 {
			pass(t, m, randomEvent(random))
		}
	}
}

var (
	someTypes = strings.Fields(`session.created session.update session.updated response.create response.created response.done
		response.output_item.added response.output_item.done conversation.item.added conversation.item.done
		conversation.item.create conversation.item.delete conversation.item.retrieved
		input_audio_buffer.committed response.function_call_arguments.delta response.output_text.delta
		conversation.item.input_audio_transcription.completed made.up`)
	someKeys = strings.Fields(`session response item item_id previous_item_id id type tools name tool_choice instructions audio
		input transcription turn_detection output metadata sb call_id status conversation event_id content x`)
	someWords = strings.Fields(`"codex" "weather" "k1" "u1" "c1" "sb_n" "function" "function_call" "function_call_output" "message"
		"none" "required" "realtime" "transcription" "completed" null true 7 1.50 [] {} "\\u0041"`)
)

func randomEvent(random *rand.Rand) string {
	return `{"type":"` + someTypes[random.IntN(len(someTypes))] + `","item_id":` + randomValue(random, 4) +
		`,"session":` + randomValue(random, 0) + `,"response":` + randomValue(random, 0) + `,"item":` +
		randomValue(random, 1) + "}"
}

func randomValue(random *rand.Rand, depth int) string {
	n := random.IntN(5)
	switch {
	case depth > 3 || n == 0:
		return someWords[random.IntN(len(someWords))]
	case n == 1:
		var all []string
		for range random.IntN(4) {
			all = append(all, randomValue(random, depth+1))
		}
		return "[" + strings.Join(all, ",") + "]"
	}
	all := map[string]string{}
	for range random.IntN(8) {
		all[someKeys[random.IntN(len(someKeys))]] = randomValue(random, depth+1)
	}
	var pairs []string
	for key, value := range all {
		pairs = append(pairs, strconv.Quote(key)+":"+value)
	}
	return "{" + strings.Join(pairs, ",") + "}"
}

// check looks at an event that passed; before is what it was, or "" when it may have changed.
func check(t *testing.T, m *Filter, before, after string) {
	t.Helper()
	if after == "" {
		return
	}
	if !gjson.Valid(after) {
		t.Fatalf("not JSON: %q", after)
	}
	if before == "" || before == after {
		return
	}
	for _, mark := range []string{"codex", "list_", "read_session", events.TagKey, "session", "previous_item_id", "k1",
		"input_audio", `\u`} {
		if strings.Contains(before, mark) {
			return
		}
	}
	for id := range m.items.hidden {
		if strings.Contains(before, id) {
			return
		}
	}
	t.Fatalf("%q became %q", before, after)
}
