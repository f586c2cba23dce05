package floor

import (
	"fmt"
	"strings"
	"testing"

	"switchboard/handoff"
	"switchboard/realtime/events"
)

// brief writes effects as one line: ask a1, forward c1, given n, cut n, silent n, lost n, cancel r1; what is
// asked for, timers and quiet are left out.
func brief(effects []Effect) string {
	names := map[EffectKind]string{EffectAsk: "ask", EffectForward: "forward", EffectGiven: "given",
		EffectSilent: "silent", EffectLost: "lost", EffectCancel: "cancel"}
	var all []string
	for _, x := range effects {
		if x.Kind != EffectTimer && x.Kind != EffectQuiet {
			name := names[x.Kind]
			if x.Cut {
				name = "cut"
			}
			what := strings.Join(x.Utterances, ",")
			switch x.Kind {
			case EffectAsk, EffectForward:
				what = x.Ask
			case EffectCancel:
				what = x.Response
			}
			all = append(all, strings.TrimSpace(name+" "+what))
		}
	}
	return strings.Join(all, "; ")
}

// line is an event and what must come of it.
type line struct {
	event Event
	want  string
}

func wants(id string) Uttered   { return Uttered{id, "", handoff.FloorAsk} }
func whole(r, tag string) Ended { return Ended{r, tag, events.StatusCompleted, true} }

// floorScripts are short worlds by name. Set once.
var floorScripts = map[string][]line{
	"at once when quiet": {{wants("n"), "ask a1"}, {Created{"r1", "a1"}, ""}, {whole("r1", "a1"), "given n"}},
	"the caller writes, and the client asks": {{Wrote{}, ""}, {wants("n"), ""}, {ClientAsked{Ask: "c1"}, "forward c1"},
		{Created{"r1", "c1"}, ""}, {whole("r1", "c1"), "ask a1"}},
	"the caller writes, and nobody asks": {{Wrote{}, ""}, {wants("n"), ""}, {Elapsed{TimerVAD, 1}, "ask a1"}},
	"nobody is there": {{Away{true}, ""}, {wants("n"), ""}, {ClientAsked{Ask: "c1"}, ""}, {Away{false}, "forward c1"},
		{Created{"r1", "c1"}, ""}, {whole("r1", "c1"), "ask a1"}},
	"gone while ours runs": {
		{wants("n"), "ask a1"}, {Created{"r1", "a1"}, ""}, {Away{true}, "cancel r1"}, {Away{true}, ""},
		{Ended{"r1", "a1", events.StatusCancelled, false}, ""},
		{Away{false}, "ask a2"}, {Created{"r2", "a2"}, ""}, {whole("r2", "a2"), "given n"},
	},
	"gone while ours is on its way": {
		{wants("n"), "ask a1"}, {Away{true}, ""}, {Created{"r1", "a1"}, "cancel r1"}, {whole("r1", "a1"), ""},
		{Away{false}, "ask a2"},
	},
	"gone while it sounds, again and again": {
		{wants("n"), "ask a1"}, {Created{"r1", "a1"}, ""}, {Sounded{"r1"}, ""}, {whole("r1", "a1"), ""}, {Away{true}, ""},
		{Played{"r1", HeardNothing}, ""}, {Away{false}, "ask a2"},
		{Created{"r2", "a2"}, ""}, {Sounded{"r2"}, ""}, {whole("r2", "a2"), ""}, {Away{true}, ""},
		{Played{"r2", HeardNothing}, ""}, {Away{false}, "ask a3"},
		{Created{"r3", "a3"}, ""}, {Sounded{"r3"}, ""}, {whole("r3", "a3"), ""}, {Away{true}, ""},
		{Played{"r3", HeardNothing}, ""}, {Away{false}, "ask a4"},
	},
	"gone while they speak":           {{Speech{true}, ""}, {wants("n"), ""}, {Away{true}, ""}, {Away{false}, "ask a1"}},
	"what answers the caller runs on": {{Created{"r1", ""}, ""}, {Away{true}, ""}, {whole("r1", ""), ""}},
	"several wants, one ask": {
		{Created{"r1", ""}, ""}, {wants("n"), ""}, {wants("m"), ""}, {whole("r1", ""), "ask a1"},
		{Created{"r2", "a1"}, ""}, {whole("r2", "a1"), "given n,m"},
	},
	"voice detection satisfies nobody": {
		{wants("n"), "ask a1"}, {Created{"vad", ""}, ""}, {Refused{"a1"}, ""}, {whole("vad", ""), "ask a2"},
	},
	"voice detection between ask and response": {
		{wants("n"), "ask a1"}, {Created{"vad", ""}, ""}, {whole("vad", ""), ""}, {Created{"r1", "a1"}, ""},
		{whole("r1", "a1"), "given n"},
	},
	"an older end clears nothing newer": {
		{Created{"r1", ""}, ""}, {Created{"r2", ""}, ""}, {wants("n"), ""}, {whole("r1", ""), ""},
		{whole("r2", ""), "ask a1"},
	},
	"refused by a response never seen": {
		{wants("n"), "ask a1"}, {Refused{"a1"}, ""}, {whole("ghost", ""), "ask a2"},
	},
	"refused, and nothing ever ends": {
		{wants("n"), "ask a1"}, {Refused{"a1"}, ""}, {Elapsed{timerUnknown, 1}, "ask a2"},
	},
	"done without created": {{wants("n"), "ask a1"}, {whole("r1", "a1"), "given n"}, {wants("m"), "ask a2"}},
	"the client goes first": {
		{Created{"r1", ""}, ""}, {wants("n"), ""}, {ClientAsked{Ask: "c1"}, ""}, {ClientAsked{Ask: "c2"}, ""},
		{whole("r1", ""), "forward c1"},
		{Created{"r2", "c1"}, ""}, {whole("r2", "c1"), "forward c2"}, {Created{"r3", "c2"}, ""},
		{whole("r3", "c2"), "ask a1"},
	},
	"the client may ask while it speaks": {{Speech{true}, ""}, {wants("n"), ""}, {ClientAsked{Ask: "c1"}, "forward c1"}},
	"failed, and again after a rest": {
		{wants("n"), "ask a1"}, {Created{"r1", "a1"}, ""}, {Ended{"r1", "a1", events.StatusFailed, false}, ""},
		{wants("m"), ""}, {Elapsed{TimerRest, 1}, "ask a2"},
		{Created{"r2", "a2"}, ""}, {Ended{"r2", "a2", events.StatusFailed, false}, ""}, {Elapsed{timerLongRest, 1}, "ask a3"},
		{Created{"r3", "a3"}, ""}, {Ended{"r3", "a3", events.StatusFailed, false}, "lost n"},
		{Elapsed{timerLongRest, 2}, "ask a4"},
	},
	"the client need not rest": {
		{wants("n"), "ask a1"}, {Rejected{"a1"}, ""}, {ClientAsked{Ask: "c1"}, "forward c1"}, {Rejected{"c1"}, ""},
		{Elapsed{TimerRest, 1}, "ask a2"},
	},
	"cut short after a word was read": {{wants("n"), "ask a1"}, {Created{"r1", "a1"}, ""},
		{Ended{"r1", "a1", events.StatusCancelled, true}, "cut n"}},
	"heard to its end": {
		{wants("n"), "ask a1"}, {Created{"r1", "a1"}, ""}, {Sounded{"r1"}, ""}, {Sounding{true}, ""}, {whole("r1", "a1"), ""},
		{wants("m"), ""}, {Played{"r1", HeardWhole}, "given n"}, {Played{"r1", HeardPart}, ""}, {Sounding{false}, "ask a2"},
	},
	"interrupted while it was made": {
		{wants("n"), "ask a1"}, {Created{"r1", "a1"}, ""}, {Sounded{"r1"}, ""}, {Speech{true}, ""},
		{Played{"r1", HeardPart}, ""},
		{Ended{"r1", "a1", events.StatusCancelled, false}, "cut n"},
	},
	"interrupted while it was heard": {
		{wants("n"), "ask a1"}, {Created{"r1", "a1"}, ""}, {Sounded{"r1"}, ""}, {whole("r1", "a1"), ""}, {Speech{true}, ""},
		{Played{"r1", HeardPart}, "cut n"},
	},
	"cancelled, and heard as far as it was made": {
		{wants("n"), "ask a1"}, {Created{"r1", "a1"}, ""}, {Sounded{"r1"}, ""},
		{Ended{"r1", "a1", events.StatusCancelled, true}, ""}, {Played{"r1", HeardWhole}, "cut n"},
	},
	"interrupted before a word was heard, for ever": {
		{wants("n"), "ask a1"}, {Created{"r1", "a1"}, ""}, {Sounded{"r1"}, ""}, {whole("r1", "a1"), ""},
		{Played{"r1", HeardNothing}, "ask a2"},
		{Created{"r2", "a2"}, ""}, {Sounded{"r2"}, ""}, {Played{"r2", HeardNothing}, ""},
		{Ended{"r2", "a2", events.StatusCancelled, true}, "ask a3"},
		{Created{"r3", "a3"}, ""}, {Ended{"r3", "a3", events.StatusCancelled, false}, "lost n"},
	},
	"failed in the middle of a word": {
		{wants("n"), "ask a1"}, {Created{"r1", "a1"}, ""}, {Sounded{"r1"}, ""},
		{Ended{"r1", "a1", events.StatusFailed, true}, ""}, {Played{"r1", HeardWhole}, ""}, {Elapsed{TimerRest, 1}, "ask a2"},
	},
	"the next one begins while it is heard": {
		{wants("n"), "ask a1"}, {Created{"r1", "a1"}, ""}, {Sounded{"r1"}, ""}, {whole("r1", "a1"), ""},
		{Created{"r2", ""}, ""},
		{Played{"r1", HeardWhole}, "given n"}, {whole("r2", ""), ""},
	},
	"a call of ours alone, until it is answered": {
		{wants("n"), "ask a1"}, {Created{"r1", "a1"}, ""}, {Called{"r1", "k1"}, ""},
		{Ended{"r1", "a1", events.StatusCompleted, false}, ""},
		{Uttered{"m", "k1", handoff.FloorUnlessSpoke}, "ask a2"}, {Created{"r2", "a2"}, ""}, {whole("r2", "a2"), "given n,m"},
	},
	"a call that nobody answers": {
		{wants("n"), "ask a1"}, {Created{"r1", "a1"}, ""}, {Called{"r1", "k1"}, ""},
		{Ended{"r1", "a1", events.StatusCompleted, false}, ""}, {Elapsed{timerSiblings, 1}, "ask a2"},
	},
	"cut short before a word, for ever": {
		{wants("n"), "ask a1"}, {Created{"r1", "a1"}, ""}, {Ended{"r1", "a1", events.StatusCancelled, false}, "ask a2"},
		{Created{"r2", "a2"}, ""}, {Ended{"r2", "a2", events.StatusCancelled, false}, "ask a3"},
		{Created{"r3", "a3"}, ""}, {Ended{"r3", "a3", events.StatusCancelled, false}, "lost n"},
	},
	"the caller begins before a word, again and again": {
		{wants("n"), "ask a1"}, {Created{"r1", "a1"}, ""}, {Speech{true}, ""},
		{Ended{"r1", "a1", events.StatusCancelled, false}, ""}, {Hushed{}, "ask a2"},
		{Created{"r2", "a2"}, ""}, {Speech{true}, ""}, {Ended{"r2", "a2", events.StatusCancelled, false}, ""}, {Hushed{}, "ask a3"},
		{Created{"r3", "a3"}, ""}, {Sounded{"r3"}, ""}, {Speech{true}, ""}, {Played{"r3", HeardNothing}, ""},
		{Ended{"r3", "a3", events.StatusCancelled, true}, ""}, {Hushed{}, "ask a4"},
		{Created{"r4", "a4"}, ""}, {whole("r4", "a4"), "given n"},
	},
	"the client cuts before it is known that the caller speaks, again and again": {
		{wants("n"), "ask a1"}, {Created{"r1", "a1"}, ""}, {Sounded{"r1"}, ""}, {whole("r1", "a1"), ""}, {Sounding{true}, ""},
		{Played{"r1", HeardNothing}, ""}, {Speech{true}, ""}, {Sounding{false}, ""}, {Hushed{}, "ask a2"},
		{Created{"r2", "a2"}, ""}, {Sounded{"r2"}, ""}, {whole("r2", "a2"), ""}, {Sounding{true}, ""},
		{Played{"r2", HeardNothing}, ""}, {Speech{true}, ""}, {Sounding{false}, ""}, {Hushed{}, "ask a3"},
		{Created{"r3", "a3"}, ""}, {Sounded{"r3"}, ""}, {whole("r3", "a3"), ""}, {Sounding{true}, ""},
		{Played{"r3", HeardNothing}, ""}, {Speech{true}, ""}, {Sounding{false}, ""}, {Hushed{}, "ask a4"},
	},
	"the caller spoke, and then the client cuts it for ever": {
		{wants("n"), "ask a1"}, {Created{"r1", "a1"}, ""}, {Speech{true}, ""},
		{Ended{"r1", "a1", events.StatusCancelled, false}, ""}, {Hushed{}, "ask a2"},
		{Created{"r2", "a2"}, ""}, {Ended{"r2", "a2", events.StatusCancelled, false}, "ask a3"},
		{Created{"r3", "a3"}, ""}, {Ended{"r3", "a3", events.StatusCancelled, false}, "lost n"},
	},
	"rejected again and again": {
		{wants("n"), "ask a1"}, {Rejected{"a1"}, ""}, {Elapsed{TimerRest, 1}, "ask a2"}, {Rejected{"a2"}, ""},
		{Elapsed{timerLongRest, 1}, "ask a3"}, {Rejected{"a3"}, "lost n"},
	},
	"cut off by a limit, and nothing came": {
		{wants("n"), "ask a1"}, {Created{"r1", "a1"}, ""}, {Ended{"r1", "a1", events.StatusIncomplete, false}, ""},
		{Elapsed{TimerRest, 1}, "ask a2"},
	},
	"cut off by a filter in the middle of a word": {
		{wants("n"), "ask a1"}, {Created{"r1", "a1"}, ""}, {Sounded{"r1"}, ""},
		{Ended{"r1", "a1", events.StatusIncomplete, true}, ""}, {Played{"r1", HeardWhole}, "cut n"},
	},
	"the caller begins while it is on the wire": {
		{wants("n"), "ask a1"}, {Speech{true}, ""}, {Created{"r1", "a1"}, "cancel r1"},
		{Ended{"r1", "a1", events.StatusCancelled, false}, ""},
		{Speech{false}, ""}, {Created{"r2", ""}, ""}, {whole("r2", ""), "ask a2"},
	},
	"it was made before it could be cancelled": {
		{wants("n"), "ask a1"}, {Speech{true}, ""}, {Created{"r1", "a1"}, "cancel r1"}, {whole("r1", "a1"), ""},
		{Hushed{}, "ask a2"},
	},
	"the caller begins while the client's is on the wire": {{ClientAsked{Ask: "c1"}, "forward c1"}, {Speech{true}, ""},
		{Created{"r1", "c1"}, ""}},
	"nothing is heard of the caller any more": {{Speech{true}, ""}, {wants("n"), ""},
		{Elapsed{TimerSpeech, 1}, "ask a1"}},
	"a response without an end": {{wants("n"), "ask a1"}, {Created{"r1", "a1"}, ""},
		{Elapsed{TimerRun, 1}, ""}, {Elapsed{TimerRest, 1}, "ask a2"}, {whole("r1", "a1"), ""}},
	"one of voice detection without an end": {{Created{"r1", ""}, ""}, {wants("n"), ""},
		{Elapsed{TimerRun, 1}, "ask a1"}},
	"one without an end that was heard": {
		{wants("n"), "ask a1"}, {Created{"r1", "a1"}, ""}, {Sounded{"r1"}, ""}, {Spoke{Response: "r1"}, ""},
		{Played{"r1", HeardWhole}, ""}, {Elapsed{TimerRun, 1}, "cut n"},
	},
	"its time is over when it is": {{Created{"r1", ""}, ""}, {whole("r1", ""), ""}, {wants("n"), "ask a1"},
		{Created{"r2", "a1"}, ""}, {Elapsed{TimerRun, 1}, ""}},
	"the model gets it after it was asked for": {
		{wants("n"), "ask a1"}, {Missed{"n"}, ""}, {Created{"r1", "a1"}, ""}, {whole("r1", "a1"), "ask a2"},
		{Created{"r2", "a2"}, ""}, {Missed{"n"}, ""}, {whole("r2", "a2"), "ask a3"},
	},
	"a lastUntagged where tags are kept": {
		{wants("n"), "ask a1"}, {Created{"r1", "a1"}, ""}, {whole("r1", "a1"), "given n"}, {wants("m"), "ask a2"},
		{Created{"vad", ""}, ""}, {whole("vad", ""), ""}, {Elapsed{timerEcho, 1}, ""}, {Elapsed{TimerRest, 1}, "ask a3"},
	},
	"the caller speaks": {
		{Speech{true}, ""}, {wants("n"), ""}, {Speech{false}, ""}, {Created{"r1", ""}, ""}, {whole("r1", ""), "ask a1"},
	},
	"voice detection stays silent": {{Speech{true}, ""}, {wants("n"), ""}, {Speech{false}, ""},
		{Elapsed{TimerVAD, 1}, "ask a1"}},
	"an old alarm means nothing": {
		{Speech{true}, ""}, {wants("n"), ""}, {Speech{false}, ""}, {Speech{true}, ""}, {Speech{false}, ""},
		{Elapsed{TimerVAD, 1}, ""},
	},
	"voice detection that does not answer": {{Listening{false, false}, ""}, {Speech{true}, ""}, {wants("n"), ""},
		{Speech{false}, "ask a1"}},
	"what the caller said was thrown away": {{Speech{true}, ""}, {wants("n"), ""}, {Hushed{}, "ask a1"}},
	"playback drains":                      {{Sounding{true}, ""}, {wants("n"), ""}, {Sounding{false}, "ask a1"}},
	"no turn detection": {{Listening{true, false}, ""}, {wants("n"), ""},
		{ClientAsked{Ask: "c1"}, "forward c1"}, {Created{"r1", "c1"}, ""}, {whole("r1", "c1"), "given n"}},
	"riding along with a failure": {{Listening{true, false}, ""}, {wants("n"), ""},
		{ClientAsked{Ask: "c1"}, "forward c1"}, {Created{"r1", "c1"}, ""},
		{Ended{"r1", "c1", events.StatusFailed, false}, ""}, {ClientAsked{Ask: "c2"}, "forward c2"}},
	"turn detection comes back": {{Listening{true, false}, ""}, {wants("n"), ""},
		{Listening{false, true}, "ask a1"}},
	"with turn detection nobody rides along": {{Created{"r0", ""}, ""}, {wants("n"), ""}, {ClientAsked{Ask: "c1"}, ""},
		{whole("r0", ""), "forward c1"}, {Created{"r1", "c1"}, ""}, {whole("r1", "c1"), "ask a1"}},
	"siblings": {
		{Created{"r1", ""}, ""}, {Called{"r1", "k1"}, ""}, {Called{"r1", "k2"}, ""}, {whole("r1", ""), ""},
		{Uttered{"n", "k1", handoff.FloorAsk}, ""}, {Uttered{"m", "k2", handoff.FloorAsk}, "ask a1"},
	},
	"siblings that take too long": {
		{Created{"r1", ""}, ""}, {Called{"r1", "k1"}, ""}, {Called{"r1", "k2"}, ""}, {whole("r1", ""), ""},
		{Uttered{"n", "k1", handoff.FloorAsk}, ""}, {Elapsed{timerSiblings, 1}, "ask a1"},
	},
	"a silent sibling frees the other": {
		{Created{"r1", ""}, ""}, {Called{"r1", "k1"}, ""}, {Called{"r1", "k2"}, ""}, {whole("r1", ""), ""},
		{Uttered{"n", "k1", handoff.FloorAsk}, ""}, {Uttered{"m", "k2", handoff.FloorNone}, "ask a1"},
	},
	"what answers no request waits for no siblings": {
		{Created{"r1", ""}, ""}, {Called{"r1", "k1"}, ""}, {whole("r1", ""), ""}, {wants("filler"), "ask a1"},
	},
	"siblings are of one response": {
		{Created{"r1", ""}, ""}, {Called{"r1", "k1"}, ""}, {whole("r1", ""), ""}, {Created{"r2", ""}, ""},
		{Called{"r2", "k2"}, ""}, {whole("r2", ""), ""},
		{Uttered{"n", "k2", handoff.FloorAsk}, "ask a1"},
	},
	"unless spoke: spoke later": {
		{Created{"r1", ""}, ""}, {Called{"r1", "k1"}, ""}, {Uttered{"n", "k1", handoff.FloorUnlessSpoke}, ""},
		{Spoke{Response: "r1"}, ""}, {whole("r1", ""), "silent n"},
	},
	"unless spoke: did not": {
		{Created{"r1", ""}, ""}, {Called{"r1", "k1"}, ""}, {Uttered{"n", "k1", handoff.FloorUnlessSpoke}, ""},
		{Ended{"r1", "", events.StatusCompleted, false}, "ask a1"},
	},
	"unless spoke: another wants to": {{Created{"r1", ""}, ""}, {Called{"r1", "k1"}, ""},
		{Uttered{"n", "k1", handoff.FloorUnlessSpoke}, ""}, {wants("m"), ""}, {whole("r1", ""), "silent n; ask a1"}},
	"the model did not take it": {{Created{"r1", ""}, ""}, {wants("n"), ""}, {Withdrawn{"n"}, ""},
		{whole("r1", ""), ""}},
	"an ask vanishes": {{wants("n"), "ask a1"}, {Elapsed{timerAsk, 1}, ""},
		{Elapsed{TimerRest, 1}, "ask a2"}, {Elapsed{timerAsk, 2}, ""}, {Elapsed{timerLongRest, 1}, "ask a3"},
		{Elapsed{timerAsk, 3}, "lost n"}},
	"no metadata, and it is still heard": {{wants("n"), "ask a1"}, {Created{"r1", ""}, ""}, {Sounded{"r1"}, ""},
		{whole("r1", ""), ""}, {Elapsed{timerEcho, 1}, ""}, {Played{"r1", HeardWhole}, "given n"}},
	"no metadata, and it was interrupted": {{wants("n"), "ask a1"}, {Created{"r1", ""}, ""}, {Sounded{"r1"}, ""},
		{whole("r1", ""), ""}, {Played{"r1", HeardPart}, ""}, {Elapsed{timerEcho, 1}, "cut n"}},
	"a model that keeps no metadata": {{wants("n"), "ask a1"}, {Created{"r1", ""}, ""}, {whole("r1", ""), ""},
		{Elapsed{timerEcho, 1}, "given n"}, {wants("m"), "ask a2"}, {Created{"r2", ""}, ""}, {whole("r2", ""), "given m"}},
	"an ask seemed lost, and is answered": {
		{wants("n"), "ask a1"}, {Elapsed{timerAsk, 1}, ""}, {wants("m"), ""}, {Created{"r1", "a1"}, ""},
		{Elapsed{TimerRest, 1}, ""}, {whole("r1", "a1"), "given n; ask a2"},
		{Created{"r2", "a2"}, ""}, {whole("r2", "a2"), "given m"},
	},
	"an ask seemed lost, and is answered when it was asked again": {
		{wants("n"), "ask a1"}, {Elapsed{timerAsk, 1}, ""}, {Elapsed{TimerRest, 1}, "ask a2"}, {Created{"r1", "a1"}, ""},
		{Refused{"a2"}, ""}, {whole("r1", "a1"), "given n"},
		{wants("m"), "ask a3"},
	},
	"an ask seemed lost, and both are answered": {
		{wants("n"), "ask a1"}, {Elapsed{timerAsk, 1}, ""}, {Elapsed{TimerRest, 1}, "ask a2"}, {Created{"r1", "a1"}, ""},
		{whole("r1", "a1"), "given n"},
		{Created{"r2", "a2"}, "cancel r2"}, {Ended{"r2", "a2", events.StatusCancelled, false}, ""}, {wants("m"), "ask a3"},
	},
	"a client's ask vanishes": {{ClientAsked{Ask: "c1"}, "forward c1"}, {ClientAsked{Ask: "c2"}, ""},
		{Elapsed{timerAsk, 1}, "forward c2"}},
	"answers to nothing ask all the same": {{Uttered{"n", "k9", handoff.FloorUnlessSpoke}, "ask a1"}},
}

func TestFloor(t *testing.T) {
	for name, script := range floorScripts {
		t.Run(name, func(t *testing.T) {
			f := New()
			f.Step(Configured{})
			for i, l := range script {
				if got := brief(f.Step(l.event)); got != l.want {
					t.Fatalf("line %d, %s: %q, want %q", i, fmt.Sprintf("%T%+v", l.event, l.event), got, l.want)
				}
			}
		})
	}
}

func TestFloorWaitsForTheClientsSettings(t *testing.T) {
	f := New()
	if got := brief(f.Step(Uttered{"n", "", handoff.FloorAsk})); got != "" {
		t.Error(got)
	}
	opening := f.Step(Opened{})
	if len(opening) != 1 || opening[0].Timer != TimerOpen {
		t.Fatalf("%+v", opening)
	}
	if got := brief(f.Step(Elapsed{TimerOpen, opening[0].Gen})); got != "ask a1" {
		t.Error(got)
	}
}
