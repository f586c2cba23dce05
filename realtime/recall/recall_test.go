package recall

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/tidwall/gjson"

	"switchboard/realtime/events"
)

// tell feeds a memory with events of the model.
func tell(r *Recall, all ...string) {
	for _, e := range all {
		r.FromModel(gjson.Get(e, "type").String(), []byte(e))
	}
}

func added(previous, item string) string {
	return fmt.Sprintf(`{"type":"conversation.item.added","previous_item_id":%s,"item":%s}`, previous, item)
}

func user(id, text string) string {
	return fmt.Sprintf(`{"id":%q,"type":"message","role":"user","content":[{"type":"input_text","text":%q}]}`, id, text)
}

func heard(id string) string {
	return fmt.Sprintf(`{"id":%q,"type":"message","role":"user","content":[{"type":"input_audio","transcript":null}]}`, id)
}

func said(id, text, status string) string {
	return fmt.Sprintf(`{"id":%q,"type":"message","role":"assistant","status":%q,"content":[{"type":"output_audio",`+
		`"transcript":%q}]}`, id, status, text)
}

func call(id, callID, status string) string {
	return fmt.Sprintf(`{"id":%q,"type":"function_call","call_id":%q,"name":"codex","arguments":"{}","status":%q}`, id,
		callID, status)
}

func output(id, callID string) string {
	return fmt.Sprintf(`{"id":%q,"type":"function_call_output","call_id":%q,"output":"ok"}`, id, callID)
}

// conversation returns the items for a new session in short form.
func conversation(r *Recall) string {
	var all []string
	for _, it := range r.Items("line") {
		e := gjson.Parse(it.JSON)
		all = append(all, it.ID+" "+e.Get("role").String()+e.Get("content.0.type").String()+":"+
			e.Get("content.0.text").String()+e.Get("call_id").String()+e.Get("output").String())
	}
	return strings.Join(all, "; ")
}

func TestConversation(t *testing.T) {
	for _, row := range []struct {
		name, want string
		told       []string
	}{
		{"written", "u userinput_text:hi", []string{added("null", user("u", "hi"))}},
		{"spoken, with its words", "u userinput_text:run it", []string{added("null", heard("u")),
			`{"type":"conversation.item.input_audio_transcription.completed","item_id":"u","transcript":" run it "}`}},
		{"spoken, without them", "u userinput_text:[not transcribed]", []string{added("null", heard("u"))}},
		{"a cough", "", []string{added("null", heard("u")),
			`{"type":"conversation.item.input_audio_transcription.completed","item_id":"u","transcript":""}`}},
		{"said", "m assistantoutput_text:Well.", []string{`{"type":"response.created","response":{"id":"r"}}`,
			added("null", said("m", "", "in_progress")),
			`{"type":"response.output_item.done","response_id":"r","item":` + said("m", "Well.", "completed") + `}`}},
		{"said, to where it was heard", "m assistantoutput_text:One two …", []string{
			added("null", said("m", "One two three four.", "completed")),
			`{"type":"conversation.item.truncated","item_id":"m","audio_end_ms":700}`}},
		{"said, and cut before its words came", "m assistantoutput_text:One two …", []string{
			added("null", said("m", "", "in_progress")), `{"type":"conversation.item.truncated","item_id":"m","audio_end_ms":700}`,
			`{"type":"conversation.item.done","item":` + said("m", "One two three four.", "completed") + `}`}},
		{"said beside it", "", []string{`{"type":"response.created","response":{"id":"r","conversation_id":null}}`,
			`{"type":"response.output_item.done","response_id":"r","item":` + said("m", "Well.", "completed") + `}`}},
		{"a call that is open", "f :call_1", []string{added("null", call("f", "call_1", "completed"))}},
		{"a call with its output", "f :call_1; o :call_1ok", []string{added("null", call("f", "call_1", "completed")),
			added(`"f"`, output("o", "call_1"))}},
		{"a call that was not written to its end", "", []string{added("null", call("f", "call_1", "in_progress"))}},
		{"in its place", "a userinput_text:1; b userinput_text:2; c userinput_text:3", []string{
			added("null", user("a", "1")), added(`"a"`, user("c", "3")), added(`"a"`, user("b", "2"))}},
		{"deleted", "b userinput_text:2", []string{added("null", user("a", "1")), added(`"a"`, user("b", "2")),
			`{"type":"conversation.item.deleted","item_id":"a"}`, `{"type":"conversation.item.done","item":` + user("a", "1") + `}`}},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := New()
			if tell(r, row.told...); conversation(r) != row.want {
				t.Errorf("it is %s", conversation(r))
			}
		})
	}
}

// Forgotten items become one line, and a call without an output stays.
func TestBounds(t *testing.T) {
	r := New()
	for i := range maxItems {
		tell(r, added("null", call(fmt.Sprint("open", i), fmt.Sprint("open", i), "in_progress")))
	}
	tell(r, added("null", call("f", "call_1", "completed")))
	for i := range 2 * maxItems {
		tell(r, `{"type":"conversation.item.added","item":`+user(fmt.Sprint("u", i), strings.Repeat("x", i))+`}`)
	}
	items := r.Items("line")
	if len(r.items) > maxItems || len(items) > maxItems+1 || items[0].ID != "line" || items[1].ID != "f" || !r.Forgot("u0") || r.Forgot("f") {
		t.Errorf("%d items, first %v", len(items), items[:2])
	}
	size := 0
	for _, it := range items {
		size += len(gjson.Get(it.JSON, "content.0.text").String())
	}
	if size > maxBytes+1<<10 {
		t.Errorf("%d bytes", size)
	}
	tell(r, added("null", user("long", strings.Repeat("y", 1<<20))))
	if last := r.Items("line"); len(last[len(last)-1].JSON) > 2*maxText {
		t.Error("a long text is whole")
	}
}

// Running responses end with what was written of them.
func TestEndings(t *testing.T) {
	r := New()
	tell(r, `{"type":"response.created","response":{"id":"r1","status":"in_progress","metadata":{"sb":"a1"},"output":[]}}`,
		added("null", said("m", "", "in_progress")),
		`{"type":"response.output_item.added","response_id":"r1","output_index":0,"item":`+said("m", "", "in_progress")+`}`,
		`{"type":"response.output_audio_transcript.delta","response_id":"r1","item_id":"m","delta":"All "}`,
		`{"type":"response.output_audio_transcript.delta","response_id":"r1","item_id":"m","delta":"tests"}`,
		`{"type":"response.created","response":{"id":"r2","conversation_id":null,"output":[]}}`,
		`{"type":"response.output_item.done","response_id":"r2","item":`+said("n", "Aside.", "completed")+`}`)
	n := 0
	all := r.Endings(func() string { n++; return fmt.Sprint("e", n) })
	var kinds []string
	for _, e := range all {
		for _, event := range e.Events {
			kinds = append(kinds, gjson.GetBytes(event, "type").String())
		}
	}
	if strings.Join(kinds, " ") != "response.output_item.done conversation.item.done response.done response.done" ||
		all[0].Complete || !all[1].Complete || !all[1].Aside {
		t.Fatalf("%s, %+v", kinds, all)
	}
	r1 := gjson.ParseBytes(all[0].Events[2]).Get("response")
	if r1.Get("status").String() != events.StatusIncomplete || r1.Get("metadata.sb").String() != "a1" ||
		r1.Get("output.0.content.0.transcript").String() != "All tests" {
		t.Errorf("r1 ends with %s", r1)
	}
	for _, e := range all {
		for _, event := range e.Events {
			r.FromModel(gjson.GetBytes(event, "type").String(), event)
		}
	}
	if left := r.Endings(func() string { return "" }); len(left) > 0 || conversation(r) != "m assistantoutput_text:All tests" {
		t.Errorf("left %v, it is %s", left, conversation(r))
	}
}

// Whatever a model sends in place of a response or an item, running responses end.
func TestEndingsOfMalformedEvents(t *testing.T) {
	for _, value := range []string{"", "null", "7", `"x"`, "[]", `[{"id":"m"}]`, "{}"} {
		r := New()
		field := func(name string) string {
			if value == "" {
				return "}"
			}
			return `,"` + name + `":` + value + "}"
		}
		tell(r, `{"type":"response.created"`+field("response"), `{"type":"response.created","response":{"id":"r1"}}`)
		for _, kind := range []string{"added", "done", "added"} {
			tell(r, `{"type":"response.output_item.`+kind+`","response_id":"r1"`+field("item"))
		}
		for _, e := range r.Endings(func() string { return "e" }) {
			if last := gjson.ParseBytes(e.Events[len(e.Events)-1]); !last.Get("response").IsObject() {
				t.Errorf("with %s it ends with %s", value, last)
			}
		}
	}
}

// Only unanswered events are sent again.
func TestUnanswered(t *testing.T) {
	r := New()
	ask := func(id, kind, rest string) {
		r.Sent(kind, []byte(`{"type":"`+kind+`","event_id":"`+id+`"`+rest+`}`))
	}
	ask("1", events.TypeItemCreate, `,"item":{"id":"a"}`)
	ask("2", events.TypeItemCreate, `,"item":{"type":"message"}`)
	ask("3", events.TypeItemCreate, `,"previous_item_id":"root","item":{"type":"message"}`)
	ask("4", events.TypeItemRetrieve, `,"item_id":"a"`)
	ask("5", events.TypeItemDelete, `,"item_id":"a"`)
	ask("6", events.TypeSessionUpdate, ``)
	left := func() string {
		var all []string
		for _, e := range r.Unanswered() {
			all = append(all, gjson.GetBytes(e, "event_id").String())
		}
		return strings.Join(all, "")
	}
	for _, row := range []struct{ told, want string }{
		{added("null", said("m", "Hi.", "completed")), "12345"}, // the model's own
		{added("null", user("i7", "")), "1345"},
		{added("null", user("a", "x")), "345"},
		{`{"type":"conversation.item.retrieved","item":{"id":"a"}}`, "35"},
		{added("null", user("i8", "first")), "5"},
	} {
		if tell(r, row.told); left() != row.want {
			t.Errorf("after %s: %s", row.told, left())
		}
	}
	if !strings.HasPrefix(conversation(r), "i8") {
		t.Errorf("it is %s", conversation(r))
	}
	if r.Refused("5"); left() != "" {
		t.Errorf("left %s", left())
	}
}

// TestLast: what was said last has what the client gave, once, before and after the model answers it, and neither notes
// nor outputs nor what was refused.
func TestLast(t *testing.T) {
	r := New()
	want := func(when, want string) {
		t.Helper()
		var all []string
		for _, l := range r.Last(2) {
			all = append(all, fmt.Sprintf("%t:%s", l.Caller, l.Text))
		}
		if got := strings.Join(all, " "); got != want {
			t.Errorf("%s: %s", when, got)
		}
	}
	give := func(id, item string) {
		r.Sent(events.TypeItemCreate, []byte(`{"event_id":"`+id+`","item":`+item+`}`))
	}
	tell(r, added("null", user("a", "old")), added("null", user("b", "first")))
	give("1", `{"type":"message","role":"user","content":[{"type":"input_text","text":"second"}]}`)
	give("2", user("c", "third"))
	give("3", `{"type":"message","role":"system","content":[{"type":"input_text","text":"a note"}]}`)
	give("4", output("d", "call"))
	want("unanswered", "true:second true:third")
	r.Refused("2")
	want("one refused", "true:first true:second")
	tell(r, added("null", user("e", "second")))
	want("answered", "true:first true:second")
}

// Whatever a model sends, the items for a new session are within their bounds, have unique ids, and each output comes
// after its call.
func TestAnyConversation(t *testing.T) {
	for seed := range uint64(40) {
		random := rand.New(rand.NewPCG(seed, 3))
		r, ids := New(), 0
		some := func() string { return fmt.Sprint("i", random.IntN(ids+1)) }
		for range 300 {
			ids++
			id, previous := fmt.Sprint("i", ids), []string{"null", `"` + some() + `"`}[random.IntN(2)]
			text := strings.Repeat("w ", random.IntN(2000))
			tell(r, []string{
				added(previous, user(id, text)), added(previous, said(id, text, "completed")),
				added(previous, call(id, "call_"+id, []string{"in_progress", "completed"}[random.IntN(2)])),
				added(previous, output(id, "call_"+some())), added(previous, user(some(), text)),
				`{"type":"conversation.item.deleted","item_id":"` + some() + `"}`,
				`{"type":"conversation.item.truncated","item_id":"` + some() + `","audio_end_ms":300}`,
			}[random.IntN(7)])
		}
		var seen, calls []string
		for _, it := range r.Items("line") {
			e := gjson.Parse(it.JSON)
			if slices.Contains(seen, it.ID) {
				t.Fatalf("seed %d: %s is given twice", seed, it.ID)
			}
			seen = append(seen, it.ID)
			switch id := e.Get("call_id").String(); e.Get("type").String() {
			case events.ItemCall:
				calls = append(calls, id)
			case events.ItemOutput:
				if !slices.Contains(calls, id) {
					t.Fatalf("seed %d: an output of %s", seed, id)
				}
			}
		}
		sum := 0
		for _, it := range r.items {
			sum += len(it.text) + len(it.arguments) + len(it.output)
		}
		if sum != r.bytes || len(seen) > maxItems+1 {
			t.Fatalf("seed %d: %d bytes, counted as %d; %d items", seed, sum, r.bytes, len(seen))
		}
	}
}

// soundOf returns the sound in events for the model, with a "|" for each commit or clear.
func soundOf(t *testing.T, all [][]byte) (sound []byte) {
	t.Helper()
	for _, event := range all {
		if events.PeekType(event) != events.TypeAppend {
			sound = append(sound, '|')
			continue
		}
		piece, err := base64.StdEncoding.DecodeString(gjson.GetBytes(event, "audio").String())
		if err != nil || len(piece) == 0 {
			t.Fatalf("%s: %v", event, err)
		}
		sound = append(sound, piece...)
	}
	return sound
}

func inBase64(sound []byte) []byte { return base64.StdEncoding.AppendEncode(nil, sound) }

// A Sound keeps the newest sound whole, and of older sound at most one piece, over any order of appends, marks and
// confirmations.
func TestSound(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	type told struct {
		at    time.Time
		sound []byte // "|" is a mark
	}
	for seed := range 8 {
		var s Sound
		var all []told
		now, since := time.Unix(1, 0), time.Time{}
		for step := range 200 {
			now = now.Add(time.Duration(random.IntN(200)) * time.Millisecond)
			sound, most := bytes.Repeat([]byte{byte('A' + step%50)}, 1+random.IntN(3000)), MaxSound
			switch random.IntN(40) {
			case 0:
				s.Taken()
				all = all[slices.IndexFunc(append(all, told{now, []byte("|")}), func(x told) bool { return x.sound[0] == '|' }):]
				all = all[min(1, len(all)):]
				continue
			case 1:
				sound = []byte("|")
				s.Mark(now, []byte(`{"type":"input_audio_buffer.commit"}`))
			case 2:
				s.Add(now, []byte("no base64!"), most)
				continue
			default:
				most = time.Duration(1+random.IntN(8)) * time.Second
				s.Add(now, inBase64(sound), most)
			}
			all = append(all, told{now, sound})
			if from := now.Add(-most); from.After(since) {
				since = from
			}
			var young, whole []byte
			for _, x := range all {
				if whole = append(whole, x.sound...); !x.at.Before(since) {
					young = append(young, x.sound...)
				}
			}
			got := soundOf(t, s.Events())
			if !bytes.HasSuffix(whole, got) || !bytes.HasSuffix(got, young) && len(young) < soundBytes {
				t.Fatalf("seed %d, step %d: kept %d bytes of %d, %d of them young", seed, step, len(got), len(whole), len(young))
			}
			if n := len(bytes.ReplaceAll(got, []byte("|"), nil)); n != s.Bytes() {
				t.Fatalf("seed %d, step %d: %d bytes, not %d", seed, step, s.Bytes(), n)
			}
			for gone := len(whole) - len(got); gone > 0; {
				n := min(gone, len(all[0].sound))
				gone, all[0].sound = gone-n, all[0].sound[n:]
				if len(all[0].sound) == 0 {
					all = all[1:]
				}
			}
		}
	}
}

// What is dropped is as old as was asked for, and the time of the oldest that is kept is known.
func TestSoundAge(t *testing.T) {
	var s Sound
	now := time.Unix(0, 0)
	for range 100 {
		now = now.Add(20 * time.Millisecond)
		s.Add(now, inBase64(make([]byte, 960)), 600*time.Millisecond)
	}
	if ms := s.Bytes() / 48; ms < 600 || ms > 660 {
		t.Errorf("%d ms are kept", ms)
	}
	if age := now.Sub(s.Since()); age < 600*time.Millisecond || age > 660*time.Millisecond {
		t.Errorf("they began %v ago", age)
	}
	s.Mark(now, []byte("{}"))
	s.Add(now, inBase64([]byte("t")), MaxSound)
	if s.Taken(); string(soundOf(t, s.Events())) != "t" {
		t.Errorf("after its commit there are %d bytes", s.Bytes())
	}
	if s.Taken(); s.Bytes() != 0 || !s.Since().IsZero() {
		t.Errorf("after a commit of the model's there are %d bytes", s.Bytes())
	}
	for range 100 {
		now = now.Add(time.Second)
		s.Add(now, inBase64(make([]byte, 75<<10)), MaxSound)
	}
	if n := s.Bytes(); n > 30*soundBytes+75<<10 || n < 30*soundBytes-75<<10 {
		t.Errorf("%d bytes of a stuck network", n)
	}
}

// A silent call holds little memory, and one that spoke for long gives it back.
func TestSoundMemory(t *testing.T) {
	var s Sound
	now, frame := time.Unix(0, 0), inBase64(make([]byte, 960))
	add := func(n int, most time.Duration) {
		for range n {
			now = now.Add(20 * time.Millisecond)
			s.Add(now, frame, most)
		}
	}
	for range 100 { // all at once, after the line stood still
		s.Add(now, frame, 600*time.Millisecond)
	}
	held := func() (bytes int) {
		for _, p := range s.pieces[:cap(s.pieces)] {
			bytes += cap(p.bytes) + int(unsafe.Sizeof(p))
		}
		return bytes
	}
	for _, after := range []struct {
		what string
		do   func()
	}{
		{"a silent call", func() { add(5000, 600*time.Millisecond) }},
		{"one large event", func() { s.Add(now, inBase64(make([]byte, 1<<20)), MaxSound); add(2, 600*time.Millisecond) }},
		{"long speech", func() { add(5000, MaxSound); s.Taken(); add(100, 600*time.Millisecond) }},
	} {
		if after.do(); held() > 36<<10 {
			t.Errorf("after %s %d bytes are held", after.what, held())
		}
	}
}
