package floor

import (
	"testing"

	"switchboard/realtime/events"
)

// TestToldBeside holds when the silence of the model confirms the answer to a request: a response to something else
// had it in the conversation, and the caller got all of that. The request is in r1, the answer is n.
func TestToldBeside(t *testing.T) {
	answered := []line{{Created{"r1", ""}, ""}, {Called{"r1", "k"}, ""}, {answer("n"), ""}, {Taken{"n"}, ""}}
	empty := func(response, tag string) Ended { return Ended{Response: response, Tag: tag, Status: StatusEmpty} }
	client := []line{{ClientAsked{Ask: "c1"}, ""}, {whole("r1", ""), "forward c1"}, {Created{"r2", "c1"}, ""}}
	words, none := Spoke{Response: "r2"}, Spoke{Response: "r2", Silence: true}
	said := append(client[:3:3], line{words, ""}, line{whole("r2", "c1"), "ask a1"}, line{Created{"r3", "a1"}, ""})
	for name, script := range map[string][]line{
		"to the client's ask": append(said[:6:6], line{empty("r3", "a1"), "given n"}),
		"to the caller": {{whole("r1", ""), "ask a1"}, {Created{"r2", ""}, ""}, {words, ""}, {Refused{"a1"}, ""},
			{whole("r2", ""), "ask a2"}, {Created{"r3", "a2"}, ""}, {empty("r3", "a2"), "given n"}},
		"aloud": append(client[:3:3], line{Sounded{"r2"}, ""}, line{Sounding{true}, ""}, line{whole("r2", "c1"), ""},
			line{Played{"r2", HeardWhole}, ""}, line{Sounding{false}, "ask a1"}, line{Created{"r3", "a1"}, ""},
			line{empty("r3", "a1"), "given n"}),
		"with what is new": append(said[:6:6], line{wants("m"), ""}, line{whole("r3", "a1"), "given n; ask a2"},
			line{Created{"r4", "a2"}, ""}, line{empty("r4", "a2"), ""}),
		"not when it is told again": append(said[:6:6], line{whole("r3", "a1"), "given n"}),
		"once": append(said[:6:6], line{empty("r3", "a1"), "given n"},
			line{ClientAsked{Ask: "c2"}, "forward c2"}, line{Created{"r4", "c2"}, ""}, line{empty("r4", "c2"), ""}),
		"not by a failure": append(said[:6:6], line{Ended{"r3", "a1", events.StatusFailed, false}, ""},
			line{Elapsed{TimerRest, 1}, "ask a2"}),
		"not by silence": append(client[:3:3], line{none, ""}, line{whole("r2", "c1"), "ask a1"},
			line{Created{"r3", "a1"}, ""}, line{empty("r3", "a1"), ""}, line{Elapsed{TimerRest, 1}, "ask a2"}),
		"not where it was cut": append(client[:3:3], line{words, ""},
			line{Ended{"r2", "c1", events.StatusCancelled, true}, "ask a1"}, line{Created{"r3", "a1"}, ""},
			line{empty("r3", "a1"), ""}, line{Elapsed{TimerRest, 1}, "ask a2"}),
		"not where half was heard": append(client[:3:3], line{Sounded{"r2"}, ""}, line{whole("r2", "c1"), "ask a1"},
			line{Played{"r2", HeardPart}, ""}, line{Created{"r3", "a1"}, ""}, line{empty("r3", "a1"), ""},
			line{Elapsed{TimerRest, 1}, "ask a2"}),
		"by one that was whole before one that was cut": append(client[:3:3], line{words, ""},
			line{ClientAsked{Ask: "c2"}, ""}, line{whole("r2", "c1"), "forward c2"},
			line{Created{"r3", "c2"}, ""}, line{Spoke{Response: "r3"}, ""},
			line{Ended{"r3", "c2", events.StatusCancelled, true}, "ask a1"}, line{Created{"r4", "a1"}, ""},
			line{empty("r4", "a1"), "given n"}),
		"not apart": {{ClientAsked{Ask: "c1", Apart: true}, ""}, {whole("r1", ""), "forward c1"},
			{Created{"r2", "c1"}, ""}, {words, ""}, {whole("r2", "c1"), "ask a1"}, {Created{"r3", "a1"}, ""},
			{empty("r3", "a1"), ""}, {Elapsed{TimerRest, 1}, "ask a2"}},
		"only what it had": append([]line{{wants("m"), ""}}, append(client[:3:3], line{words, ""},
			line{whole("r2", "c1"), "ask a1"},
			line{Created{"r3", "a1"}, ""}, line{empty("r3", "a1"), "given n"}, line{Elapsed{TimerRest, 1}, "ask a2"})...),
	} {
		t.Run(name, func(t *testing.T) {
			f := New()
			f.Step(Configured{})
			for i, l := range append(answered[:len(answered):len(answered)], script...) {
				if got := brief(f.Step(l.event)); got != l.want {
					t.Fatalf("line %d, %#v: %q, want %q", i, l.event, got, l.want)
				}
			}
		})
	}
}
