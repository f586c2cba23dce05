package floor

import (
	"fmt"
	"strings"
	"testing"

	"switchboard/realtime/events"
)

// mixedResponse holds a request of ours, and a call of the client.
func mixedResponse(open ...string) []line {
	return []line{{Created{"r1", ""}, ""}, {Called{"r1", "k"}, ""}, {Mixed{"r1", open}, ""}, {whole("r1", ""), ""}}
}

func answer(id string) Uttered { return Uttered{id, "k", wants("").Need} }

// A response with calls of both sides is answered once, after the outputs of both.
func TestMixedResponses(t *testing.T) {
	for name, script := range map[string][]line{
		"ours first": {{answer("n"), ""}, {Output{"w"}, ""}, {ClientAsked{Ask: "c1"}, "forward c1"},
			{Created{"r2", "c1"}, ""}, {whole("r2", "c1"), "given n"}},
		"theirs first": {{Output{"w"}, ""}, {ClientAsked{Ask: "c1"}, ""}, {answer("n"), "forward c1"},
			{Created{"r2", "c1"}, ""}, {whole("r2", "c1"), "given n"}},
		"ours is late": {{Output{"w"}, ""}, {ClientAsked{Ask: "c1"}, ""}, {Elapsed{timerSiblings, 1}, "forward c1"},
			{Created{"r2", "c1"}, ""}, {answer("n"), ""}, {whole("r2", "c1"), "ask a1"}},
		"it does not ask": {{answer("n"), ""}, {Elapsed{timerSiblings, 1}, ""}, {Output{"w"}, ""},
			{Elapsed{timerTheirAsk, 1}, "ask a1"}},
		"it never answers": {{answer("n"), ""}, {Elapsed{timerSiblings, 1}, ""}, {Elapsed{timerTheirs, 1}, "ask a1"}},
		"something else meanwhile": {{answer("n"), ""}, {ClientAsked{Ask: "c1"}, "forward c1"}, {Created{"r2", "c1"}, ""},
			{whole("r2", "c1"), ""},
			{Output{"w"}, ""}, {ClientAsked{Ask: "c2"}, "forward c2"}, {Created{"r3", "c2"}, ""},
			{whole("r3", "c2"), "given n"}},
		"other speech does not wait": {{answer("n"), ""}, {wants("m"), "ask a1"}, {Created{"r2", "a1"}, ""},
			{whole("r2", "a1"), "given m"}},
		"with its own instructions": {{answer("n"), ""}, {Output{"w"}, ""},
			{ClientAsked{Ask: "c1", Instructed: true}, "forward c1"}, {Created{"r2", "c1"}, ""}, {whole("r2", "c1"), "ask a1"}},
		"its ask is cut by the caller": {{answer("n"), ""}, {Output{"w"}, ""}, {ClientAsked{Ask: "c1"}, "forward c1"},
			{Created{"r2", "c1"}, ""}, {Elapsed{timerTheirAsk, 1}, ""}, {Speech{true}, ""},
			{Ended{"r2", "c1", events.StatusCancelled, false}, ""}, {Speech{false}, ""}, {Created{"r3", ""}, ""},
			{whole("r3", ""), "ask a1"}},
		"its ask fails": {{answer("n"), ""}, {Output{"w"}, ""}, {ClientAsked{Ask: "c1"}, "forward c1"},
			{Elapsed{timerTheirAsk, 1}, ""}, {Rejected{"c1"}, "ask a1"}},
		"its ask is lost with the session": {{answer("n"), ""}, {Output{"w"}, ""}, {ClientAsked{Ask: "c1"}, "forward c1"},
			{Created{"r2", "c1"}, ""}, {Elapsed{timerTheirAsk, 1}, ""}, {Lost{}, ""},
			{Ended{"r2", "c1", events.StatusIncomplete, false}, ""}, {Renewed{}, "ask a1"}},
		"its ask waits": {{answer("n"), ""}, {Created{"v", ""}, ""}, {Output{"w"}, ""}, {ClientAsked{Ask: "c1"}, ""},
			{Elapsed{timerTheirAsk, 1}, ""}, {whole("v", ""), "forward c1"}, {Refused{"c1"}, ""}, {whole("ghost", ""), "forward c1"},
			{Created{"r2", "c1"}, ""}, {whole("r2", "c1"), "given n"}},
		"its ask waits, and for a session": {{answer("n"), ""}, {Output{"w"}, ""}, {ClientAsked{Ask: "c1"}, "forward c1"},
			{Lost{}, ""}, {Elapsed{timerTheirAsk, 1}, ""}, {Renewed{}, "forward c1"}, {Created{"r2", "c1"}, ""},
			{whole("r2", "c1"), "given n"}},
		"its ask waits, and is cut": {{answer("n"), ""}, {Created{"v", ""}, ""}, {Output{"w"}, ""}, {ClientAsked{Ask: "c1"}, ""},
			{Elapsed{timerTheirAsk, 1}, ""}, {whole("v", ""), "forward c1"}, {Created{"r2", "c1"}, ""},
			{Ended{"r2", "c1", events.StatusCancelled, false}, "ask a1"}},
		"it takes its ask back": {{answer("n"), ""}, {Created{"v", ""}, ""}, {Output{"w"}, ""}, {ClientAsked{Ask: "c1"}, ""},
			{Elapsed{timerTheirAsk, 1}, ""}, {Cancelled{}, ""}, {whole("v", ""), "ask a1"}},
		"apart": {{answer("n"), ""}, {Output{"w"}, ""},
			{ClientAsked{Ask: "c1", Apart: true}, "forward c1"}, {Created{"r2", "c1"}, ""}, {whole("r2", "c1"), ""}},
	} {
		t.Run(name, func(t *testing.T) {
			f := New()
			f.Step(Opened{})
			f.Step(Configured{})
			for i, l := range append(mixedResponse("w"), script...) {
				if got := brief(f.Step(l.event)); got != l.want {
					t.Fatalf("line %d, %#v: %q, want %q", i, l.event, got, l.want)
				}
			}
			f.Step(Elapsed{timerTheirs, f.armed[timerTheirs]})
			f.Step(Elapsed{timerTheirAsk, f.armed[timerTheirAsk]})
			if len(f.clientCalls) > 0 {
				t.Error("a call is waited for without end")
			}
		})
	}
}

// What the client answered before its response ended is not waited for.
func TestMixedResponseAnsweredInside(t *testing.T) {
	f := New()
	f.Step(Configured{})
	for i, l := range append(mixedResponse(), line{answer("n"), ""}, line{ClientAsked{Ask: "c1"}, "forward c1"},
		line{Created{"r2", "c1"}, ""}, line{whole("r2", "c1"), "given n"}) {
		if got := brief(f.Step(l.event)); got != l.want {
			t.Fatalf("line %d, %#v: %q, want %q", i, l.event, got, l.want)
		}
	}
	if f.Open() > 0 {
		t.Errorf("%d responses are remembered", f.Open())
	}
}

func TestCancelledAsks(t *testing.T) {
	f := New()
	for _, e := range []Event{Created{"r1", ""}, ClientAsked{Ask: "c1"}, ClientAsked{Ask: "c2"}} {
		f.Step(e)
	}
	var back strings.Builder
	for _, x := range f.Step(Cancelled{}) {
		if x.Kind == EffectTakenBack {
			back.WriteString(" " + x.Ask)
		}
	}
	if got := brief(f.Step(whole("r1", ""))); back.String() != " c1 c2" || got != "" {
		t.Errorf("taken back%s, then %q", back.String(), got)
	}
}

// theirs lets the running response call a function of the client, or the client answer the oldest.
func (m *voiceModel) theirs(output bool) {
	switch {
	case output && len(m.theirCalls) > 0:
		m.tell(Output{m.theirCalls[0]})
		m.theirCalls = m.theirCalls[1:]
	case !output && m.active != "" && m.activeCalls < 3:
		m.n++
		m.activeCalls++
		m.theirCalls = append(m.theirCalls, fmt.Sprintf("f%d", m.n))
		m.down = append(m.down, Mixed{m.active, m.theirCalls[len(m.theirCalls)-1:]})
	}
}
