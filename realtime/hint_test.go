package realtime

import (
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"switchboard/handoff"
	"switchboard/realtime/events"
)

// drip adds arguments in pieces of a size and returns the hints.
func drip(arguments string, size int) []string {
	var h hint
	var all []string
	for len(arguments) > 0 {
		n := min(size, len(arguments))
		if h.add(arguments[:n]) {
			all = append(all, string(h.text))
		}
		arguments = arguments[n:]
	}
	return all
}

func TestHintsTellWhatCanBeLearnt(t *testing.T) {
	const text = `{"server":"big\"pc","thread_id":"auth","prompt":"run: \"x\" now"}`
	want := []string{
		`{"server"`, `{"server":"big\"pc"`, `{"server":"big\"pc","thread_id"`, `{"server":"big\"pc","thread_id":"auth"`,
		`{"server":"big\"pc","thread_id":"auth","prompt"`, `{"server":"big\"pc","thread_id":"auth","prompt":`,
		`{"server":"big\"pc","thread_id":"auth","prompt":"run: \"x\" now"`,
	}
	if got := drip(text, 1); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("hinted\n%s", strings.Join(got, "\n"))
	}
	if got := drip(text, len(text)); len(got) != 1 || got[0] != text {
		t.Errorf("in one piece: %q", got)
	}
}

func TestHintsAreFew(t *testing.T) {
	long := `{"server":"bigpc","prompt":"` + strings.Repeat("word \\\" ", 5000)
	got := drip(long, 5)
	last := got[len(got)-1]
	if !strings.Contains(last, `"prompt":"`) || len(last) > 200 || len(got) > 7 {
		t.Errorf("%d hints, the last is %.200q", len(got), last)
	}
	slow := drip(`{"server":"`+strings.Repeat("é", 5000), 3)
	if n := len(slow); n != 1+maxHint/3/hintEvery {
		t.Errorf("%d hints without news", n)
	}
	if once := drip(`{"server":"`+strings.Repeat("é", 5000)+`"`, 1<<20); len(once) != 1 || len(once[0]) != maxHint-1 ||
		!strings.HasSuffix(once[0], "é") {
		t.Errorf("at once: %d", len(once))
	}
	nested := drip(`{"x":{"prompt":"a","b":["prompt"]},"server":"bigpc","prompt":"`, 1)
	if got := nested[len(nested)-1]; !strings.HasSuffix(got, `"bigpc","prompt":`) {
		t.Errorf("stopped at %s", got)
	}
}

func FuzzHint(f *testing.F) {
	f.Add(`{"server":"a","prompt":"b"}`, uint8(1))
	f.Add(`}}]]"\`, uint8(3))
	f.Fuzz(func(t *testing.T, text string, size uint8) {
		before := ""
		for _, got := range drip(text, int(size)+1) {
			if len(got) > maxHint || !strings.HasPrefix(text, got) || !strings.HasPrefix(got, before) {
				t.Fatalf("%q of %q after %q", got, text, before)
			}
			before = got
		}
	})
}

func callAdded(response, item, call, name string) string {
	return `{"type":"response.output_item.added","response_id":"` + response + `","item":{"id":"` + item +
		`","type":"function_call","call_id":"` + call + `","name":"` + name + `","status":"in_progress","arguments":""}}`
}

func piece(item, text string) string {
	return `{"type":"response.function_call_arguments.delta","item_id":"` + item + `","delta":` + events.Quote(text) + `}`
}

func TestHint(t *testing.T) {
	play(t, func(s *stage) {
		s.fromModel(began("r1", ""), callAdded("r1", "k1", "call_1", "codex"), callAdded("r1", "k2", "call_2", "codex"),
			callAdded("r1", "k3", "call_3", "list_servers"), piece("k1", `{"ser`), piece("k2", `{"server":"laptop",`),
			piece("k1", `ver":"bigpc"`),
			piece("k3", `{"server":"x"}`), piece("k9", `{"server":"x"}`))
		s.wantStory(`loud; hint call_2 {"server":"laptop",; hint call_1 {"server":"bigpc"`)
		s.fromModel(itemDone("r1", callItem("k1", "call_1", "codex", "completed")), piece("k1", `,"prompt":`))
		s.wantStory("request call_1")
		s.fromModel(done("r1", "", "cancelled"), piece("k2", `"prompt":`))
		s.wantStory("quiet")
		if n := len(s.call.saying.hints); n != 0 {
			t.Errorf("%d hints are kept", n)
		}
	})
}

func TestNoHintOfAnothersTools(t *testing.T) {
	tool := `"tools":[{"type":"function","name":"codex"}]`
	for name, c := range map[string]struct{ client, created string }{
		"the client's codex": {`{"type":"session.update","session":{"type":"realtime",` + tool + `}}`, began("r1", "")},
		"a forced choice": {`{"type":"session.update","session":{"type":"realtime","tool_choice":"required"}}`,
			began("r1", "")},
		"an out-of-band answer": {`{"type":"response.create","response":{"conversation":"none"}}`,
			`{"type":"response.created","response":{"id":"r1","metadata":{"sb":"out"}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(s *stage) {
				s.fromClient(c.client)
				if strings.Contains(c.client, "session.update") {
					s.fromModel(`{"type":"session.updated","session":{}}`)
				}
				s.fromModel(c.created, callAdded("r1", "k1", "call_1", "codex"), piece("k1", `{"server":"bigpc"`))
				if got := s.story(); strings.Contains(got, "hint") {
					t.Errorf("router heard %s", got)
				}
			})
		})
	}
}

// A router that takes no events loses hints first, then words, and never gets an outdated quiet.
func TestWhatABusyRouterMisses(t *testing.T) {
	c := newCall(someone, ours, "rtc_test", newWire(), newWire(), nopLog())
	c.report(handoff.Hint{CallID: "a", Partial: "{"})
	c.report(handoff.Hint{CallID: "a", Partial: `{"`})
	if len(c.pending) != 1 || c.pending[0] != (handoff.Hint{CallID: "a", Partial: `{"`}) {
		t.Errorf("pending %v", c.pending)
	}
	for range eventQueue {
		c.report(handoff.Quiet{On: false})
		c.report(handoff.Quiet{On: true})
	}
	if c.counts.hints != 1 || c.counts.unheard != 0 || c.pending[len(c.pending)-1] != (handoff.Quiet{On: true}) {
		t.Errorf("dropped %d hints, %d words", c.counts.hints, c.counts.unheard)
	}
	for range eventQueue {
		c.report(handoff.Spoke{})
		c.report(handoff.Heard{Text: "x"})
	}
	quiet, spoke := 0, 0
	for _, e := range c.pending {
		switch e.(type) {
		case handoff.Quiet:
			quiet++
		case handoff.Spoke:
			spoke++
		}
	}
	if c.counts.unheard == 0 || quiet != 1 || spoke < keptSpokes || c.ended {
		t.Errorf("dropped %d words, %d quiets and %d times spoke are left, ended %t", c.counts.unheard, quiet, spoke, c.ended)
	}
	for i := range eventQueue {
		c.report(handoff.Said{ID: string(rune(i))})
	}
	c.report(handoff.Hint{CallID: "b"})
	if c.counts.hints != 2 || !c.ended || c.cause.Code != handoff.CodeOverloaded {
		t.Errorf("dropped %d hints, ended %v", c.counts.hints, c.cause)
	}
}

// The router takes an event at once, unless the loop has one that comes before it.
func TestEventsComeInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCall(someone, ours, "rtc_test", newWire(), newWire(), nopLog())
		told := make(chan handoff.VoiceEvent, 1)
		go func() { told <- <-c.Events() }()
		synctest.Wait()
		c.awaits.first = handoff.Said{ID: "1"} // which the loop is about to offer
		c.do(func() { c.report(handoff.Said{ID: "2"}) })
		if len(c.pending) != 1 {
			t.Error("the second event came first")
		}
		c.awaits.first = nil
		c.do(func() { c.report(handoff.Said{ID: "3"}) })
		if got := <-told; got != (handoff.Said{ID: "2"}) || len(c.pending) != 1 {
			t.Errorf("the router took %v, %d wait", got, len(c.pending))
		}
	})
}

// What is said before the model's session begins waits for it, up to a bound; beyond it the call ends.
func TestSaidTooEarly(t *testing.T) {
	c := newCall(someone, ours, "rtc_test", newWire(), newWire(), nopLog())
	for i := range sayQueue {
		c.Say(handoff.Utterance{ID: strconv.Itoa(i), Text: "x"})
	}
	if len(c.saying.says) != sayQueue || c.ended {
		t.Fatalf("%d wait, ended %t", len(c.saying.says), c.ended)
	}
	c.Say(handoff.Utterance{ID: "more", Text: "x"})
	if !c.ended || c.cause.Code != handoff.CodeOverloaded {
		t.Errorf("ended %t with %v", c.ended, c.cause)
	}
}
