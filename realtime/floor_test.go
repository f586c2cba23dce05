package realtime

import (
	"fmt"
	"strings"
	"testing"

	"switchboard/handoff"
)

// brief writes effects as one line: ask a1, forward c1, given n, cut n, silent n, lost n, cancel r1; what is
// asked for, timers and quiet are left out.
func brief(effects []effect) string {
	names := map[effectKind]string{effectAsk: "ask", effectForward: "forward", effectGiven: "given", effectSilent: "silent", effectLost: "lost", effectCancel: "cancel"}
	var all []string
	for _, x := range effects {
		if x.kind != effectTimer && x.kind != effectQuiet {
			name := names[x.kind]
			if x.cut {
				name = "cut"
			}
			what := strings.Join(x.wants, ",")
			switch x.kind {
			case effectAsk, effectForward:
				what = x.ask
			case effectCancel:
				what = x.response
			}
			all = append(all, strings.TrimSpace(name+" "+what))
		}
	}
	return strings.Join(all, "; ")
}

// line is an event and what must come of it.
type line struct {
	event floorEvent
	want  string
}

func wants(id string) uttered   { return uttered{id, "", handoff.FloorAsk} }
func whole(r, tag string) ended { return ended{r, tag, statusCompleted, true} }

// floorScripts are short worlds by name. Set once.
var floorScripts = map[string][]line{
	"at once when quiet": {{wants("n"), "ask a1"}, {created{"r1", "a1"}, ""}, {whole("r1", "a1"), "given n"}},
	"several wants, one ask": {
		{created{"r1", ""}, ""}, {wants("n"), ""}, {wants("m"), ""}, {whole("r1", ""), "ask a1"},
		{created{"r2", "a1"}, ""}, {whole("r2", "a1"), "given n,m"},
	},
	"voice detection satisfies nobody": {
		{wants("n"), "ask a1"}, {created{"vad", ""}, ""}, {refused{"a1"}, ""}, {whole("vad", ""), "ask a2"},
	},
	"voice detection between ask and response": {
		{wants("n"), "ask a1"}, {created{"vad", ""}, ""}, {whole("vad", ""), ""}, {created{"r1", "a1"}, ""}, {whole("r1", "a1"), "given n"},
	},
	"an older end clears nothing newer": {
		{created{"r1", ""}, ""}, {created{"r2", ""}, ""}, {wants("n"), ""}, {whole("r1", ""), ""}, {whole("r2", ""), "ask a1"},
	},
	"refused by a response never seen": {
		{wants("n"), "ask a1"}, {refused{"a1"}, ""}, {whole("ghost", ""), "ask a2"},
	},
	"refused, and nothing ever ends": {
		{wants("n"), "ask a1"}, {refused{"a1"}, ""}, {elapsed{timerUnknown, 1}, "ask a2"},
	},
	"done without created": {{wants("n"), "ask a1"}, {whole("r1", "a1"), "given n"}, {wants("m"), "ask a2"}},
	"the client goes first": {
		{created{"r1", ""}, ""}, {wants("n"), ""}, {clientAsked{ask: "c1"}, ""}, {clientAsked{ask: "c2"}, ""}, {whole("r1", ""), "forward c1"},
		{created{"r2", "c1"}, ""}, {whole("r2", "c1"), "forward c2"}, {created{"r3", "c2"}, ""}, {whole("r3", "c2"), "ask a1"},
	},
	"the client may ask while it speaks": {{speech{true}, ""}, {wants("n"), ""}, {clientAsked{ask: "c1"}, "forward c1"}},
	"failed, and again after a rest": {
		{wants("n"), "ask a1"}, {created{"r1", "a1"}, ""}, {ended{"r1", "a1", statusFailed, false}, ""}, {wants("m"), ""}, {elapsed{timerRest, 1}, "ask a2"},
		{created{"r2", "a2"}, ""}, {ended{"r2", "a2", statusFailed, false}, ""}, {elapsed{timerLongRest, 1}, "ask a3"},
		{created{"r3", "a3"}, ""}, {ended{"r3", "a3", statusFailed, false}, "lost n"}, {elapsed{timerLongRest, 2}, "ask a4"},
	},
	"the client need not rest": {
		{wants("n"), "ask a1"}, {rejected{"a1"}, ""}, {clientAsked{ask: "c1"}, "forward c1"}, {rejected{"c1"}, ""}, {elapsed{timerRest, 1}, "ask a2"},
	},
	"cut short after a word was read": {{wants("n"), "ask a1"}, {created{"r1", "a1"}, ""}, {ended{"r1", "a1", statusCancelled, true}, "cut n"}},
	"heard to its end": {
		{wants("n"), "ask a1"}, {created{"r1", "a1"}, ""}, {sounded{"r1"}, ""}, {sounding{true}, ""}, {whole("r1", "a1"), ""},
		{wants("m"), ""}, {played{"r1", heardWhole}, "given n"}, {played{"r1", heardPart}, ""}, {sounding{false}, "ask a2"},
	},
	"interrupted while it was made": {
		{wants("n"), "ask a1"}, {created{"r1", "a1"}, ""}, {sounded{"r1"}, ""}, {speech{true}, ""}, {played{"r1", heardPart}, ""},
		{ended{"r1", "a1", statusCancelled, false}, "cut n"},
	},
	"interrupted while it was heard": {
		{wants("n"), "ask a1"}, {created{"r1", "a1"}, ""}, {sounded{"r1"}, ""}, {whole("r1", "a1"), ""}, {speech{true}, ""}, {played{"r1", heardPart}, "cut n"},
	},
	"cancelled, and heard as far as it was made": {
		{wants("n"), "ask a1"}, {created{"r1", "a1"}, ""}, {sounded{"r1"}, ""}, {ended{"r1", "a1", statusCancelled, true}, ""}, {played{"r1", heardWhole}, "cut n"},
	},
	"interrupted before a word was heard, for ever": {
		{wants("n"), "ask a1"}, {created{"r1", "a1"}, ""}, {sounded{"r1"}, ""}, {whole("r1", "a1"), ""}, {played{"r1", heardNothing}, "ask a2"},
		{created{"r2", "a2"}, ""}, {sounded{"r2"}, ""}, {played{"r2", heardNothing}, ""}, {ended{"r2", "a2", statusCancelled, true}, "ask a3"},
		{created{"r3", "a3"}, ""}, {ended{"r3", "a3", statusCancelled, false}, "lost n"},
	},
	"failed in the middle of a word": {
		{wants("n"), "ask a1"}, {created{"r1", "a1"}, ""}, {sounded{"r1"}, ""}, {ended{"r1", "a1", statusFailed, true}, ""}, {played{"r1", heardWhole}, ""}, {elapsed{timerRest, 1}, "ask a2"},
	},
	"the next one begins while it is heard": {
		{wants("n"), "ask a1"}, {created{"r1", "a1"}, ""}, {sounded{"r1"}, ""}, {whole("r1", "a1"), ""}, {created{"r2", ""}, ""},
		{played{"r1", heardWhole}, "given n"}, {whole("r2", ""), ""},
	},
	"a call of ours alone, until it is answered": {
		{wants("n"), "ask a1"}, {created{"r1", "a1"}, ""}, {called{"r1", "k1"}, ""}, {ended{"r1", "a1", statusCompleted, false}, ""},
		{uttered{"m", "k1", handoff.FloorUnlessSpoke}, "ask a2"}, {created{"r2", "a2"}, ""}, {whole("r2", "a2"), "given n,m"},
	},
	"a call that nobody answers": {
		{wants("n"), "ask a1"}, {created{"r1", "a1"}, ""}, {called{"r1", "k1"}, ""}, {ended{"r1", "a1", statusCompleted, false}, ""}, {elapsed{timerSiblings, 1}, "ask a2"},
	},
	"cut short before a word, for ever": {
		{wants("n"), "ask a1"}, {created{"r1", "a1"}, ""}, {ended{"r1", "a1", statusCancelled, false}, "ask a2"},
		{created{"r2", "a2"}, ""}, {ended{"r2", "a2", statusCancelled, false}, "ask a3"},
		{created{"r3", "a3"}, ""}, {ended{"r3", "a3", statusCancelled, false}, "lost n"},
	},
	"rejected again and again": {
		{wants("n"), "ask a1"}, {rejected{"a1"}, ""}, {elapsed{timerRest, 1}, "ask a2"}, {rejected{"a2"}, ""}, {elapsed{timerLongRest, 1}, "ask a3"}, {rejected{"a3"}, "lost n"},
	},
	"cut off by a limit, and nothing came": {
		{wants("n"), "ask a1"}, {created{"r1", "a1"}, ""}, {ended{"r1", "a1", statusIncomplete, false}, ""}, {elapsed{timerRest, 1}, "ask a2"},
	},
	"cut off by a filter in the middle of a word": {
		{wants("n"), "ask a1"}, {created{"r1", "a1"}, ""}, {sounded{"r1"}, ""}, {ended{"r1", "a1", statusIncomplete, true}, ""}, {played{"r1", heardWhole}, "cut n"},
	},
	"the caller begins while it is on the wire": {
		{wants("n"), "ask a1"}, {speech{true}, ""}, {created{"r1", "a1"}, "cancel r1"}, {ended{"r1", "a1", statusCancelled, false}, ""},
		{speech{false}, ""}, {created{"r2", ""}, ""}, {whole("r2", ""), "ask a2"},
	},
	"it was made before it could be cancelled": {
		{wants("n"), "ask a1"}, {speech{true}, ""}, {created{"r1", "a1"}, "cancel r1"}, {whole("r1", "a1"), ""}, {hushed{}, "ask a2"},
	},
	"the caller begins while the client's is on the wire": {{clientAsked{ask: "c1"}, "forward c1"}, {speech{true}, ""}, {created{"r1", "c1"}, ""}},
	"nothing is heard of the caller any more":             {{speech{true}, ""}, {wants("n"), ""}, {elapsed{timerSpeech, 1}, "ask a1"}},
	"a response without an end":                           {{wants("n"), "ask a1"}, {created{"r1", "a1"}, ""}, {elapsed{timerRun, 1}, ""}, {elapsed{timerRest, 1}, "ask a2"}, {whole("r1", "a1"), ""}},
	"one of voice detection without an end":               {{created{"r1", ""}, ""}, {wants("n"), ""}, {elapsed{timerRun, 1}, "ask a1"}},
	"one without an end that was heard": {
		{wants("n"), "ask a1"}, {created{"r1", "a1"}, ""}, {sounded{"r1"}, ""}, {spoke{"r1"}, ""}, {played{"r1", heardWhole}, ""}, {elapsed{timerRun, 1}, "cut n"},
	},
	"its time is over when it is": {{created{"r1", ""}, ""}, {whole("r1", ""), ""}, {wants("n"), "ask a1"}, {created{"r2", "a1"}, ""}, {elapsed{timerRun, 1}, ""}},
	"the model gets it after it was asked for": {
		{wants("n"), "ask a1"}, {missed{"n"}, ""}, {created{"r1", "a1"}, ""}, {whole("r1", "a1"), "ask a2"}, {created{"r2", "a2"}, ""}, {missed{"n"}, ""}, {whole("r2", "a2"), "ask a3"},
	},
	"a stranger where tags are kept": {
		{wants("n"), "ask a1"}, {created{"r1", "a1"}, ""}, {whole("r1", "a1"), "given n"}, {wants("m"), "ask a2"},
		{created{"vad", ""}, ""}, {whole("vad", ""), ""}, {elapsed{timerEcho, 1}, ""}, {elapsed{timerRest, 1}, "ask a3"},
	},
	"the caller speaks": {
		{speech{true}, ""}, {wants("n"), ""}, {speech{false}, ""}, {created{"r1", ""}, ""}, {whole("r1", ""), "ask a1"},
	},
	"voice detection stays silent": {{speech{true}, ""}, {wants("n"), ""}, {speech{false}, ""}, {elapsed{timerVAD, 1}, "ask a1"}},
	"an old alarm means nothing": {
		{speech{true}, ""}, {wants("n"), ""}, {speech{false}, ""}, {speech{true}, ""}, {speech{false}, ""}, {elapsed{timerVAD, 1}, ""},
	},
	"voice detection that does not answer":   {{listening{false, false}, ""}, {speech{true}, ""}, {wants("n"), ""}, {speech{false}, "ask a1"}},
	"what the caller said was thrown away":   {{speech{true}, ""}, {wants("n"), ""}, {hushed{}, "ask a1"}},
	"playback drains":                        {{sounding{true}, ""}, {wants("n"), ""}, {sounding{false}, "ask a1"}},
	"no turn detection":                      {{listening{true, false}, ""}, {wants("n"), ""}, {clientAsked{ask: "c1"}, "forward c1"}, {created{"r1", "c1"}, ""}, {whole("r1", "c1"), "given n"}},
	"riding along with a failure":            {{listening{true, false}, ""}, {wants("n"), ""}, {clientAsked{ask: "c1"}, "forward c1"}, {created{"r1", "c1"}, ""}, {ended{"r1", "c1", statusFailed, false}, ""}, {clientAsked{ask: "c2"}, "forward c2"}},
	"turn detection comes back":              {{listening{true, false}, ""}, {wants("n"), ""}, {listening{false, true}, "ask a1"}},
	"with turn detection nobody rides along": {{created{"r0", ""}, ""}, {wants("n"), ""}, {clientAsked{ask: "c1"}, ""}, {whole("r0", ""), "forward c1"}, {created{"r1", "c1"}, ""}, {whole("r1", "c1"), "ask a1"}},
	"siblings": {
		{created{"r1", ""}, ""}, {called{"r1", "k1"}, ""}, {called{"r1", "k2"}, ""}, {whole("r1", ""), ""},
		{uttered{"n", "k1", handoff.FloorAsk}, ""}, {uttered{"m", "k2", handoff.FloorAsk}, "ask a1"},
	},
	"siblings that take too long": {
		{created{"r1", ""}, ""}, {called{"r1", "k1"}, ""}, {called{"r1", "k2"}, ""}, {whole("r1", ""), ""},
		{uttered{"n", "k1", handoff.FloorAsk}, ""}, {elapsed{timerSiblings, 1}, "ask a1"},
	},
	"a silent sibling frees the other": {
		{created{"r1", ""}, ""}, {called{"r1", "k1"}, ""}, {called{"r1", "k2"}, ""}, {whole("r1", ""), ""},
		{uttered{"n", "k1", handoff.FloorAsk}, ""}, {uttered{"m", "k2", handoff.FloorNone}, "ask a1"},
	},
	"what answers no request waits for no siblings": {
		{created{"r1", ""}, ""}, {called{"r1", "k1"}, ""}, {whole("r1", ""), ""}, {wants("filler"), "ask a1"},
	},
	"siblings are of one response": {
		{created{"r1", ""}, ""}, {called{"r1", "k1"}, ""}, {whole("r1", ""), ""}, {created{"r2", ""}, ""}, {called{"r2", "k2"}, ""}, {whole("r2", ""), ""},
		{uttered{"n", "k2", handoff.FloorAsk}, "ask a1"},
	},
	"unless spoke: spoke later": {
		{created{"r1", ""}, ""}, {called{"r1", "k1"}, ""}, {uttered{"n", "k1", handoff.FloorUnlessSpoke}, ""}, {spoke{"r1"}, ""}, {whole("r1", ""), "silent n"},
	},
	"unless spoke: did not": {
		{created{"r1", ""}, ""}, {called{"r1", "k1"}, ""}, {uttered{"n", "k1", handoff.FloorUnlessSpoke}, ""}, {ended{"r1", "", statusCompleted, false}, "ask a1"},
	},
	"unless spoke: another wants to":      {{created{"r1", ""}, ""}, {called{"r1", "k1"}, ""}, {uttered{"n", "k1", handoff.FloorUnlessSpoke}, ""}, {wants("m"), ""}, {whole("r1", ""), "silent n; ask a1"}},
	"the model did not take it":           {{created{"r1", ""}, ""}, {wants("n"), ""}, {withdrawn{"n"}, ""}, {whole("r1", ""), ""}},
	"an ask vanishes":                     {{wants("n"), "ask a1"}, {elapsed{timerAsk, 1}, ""}, {elapsed{timerRest, 1}, "ask a2"}, {elapsed{timerAsk, 2}, ""}, {elapsed{timerLongRest, 1}, "ask a3"}, {elapsed{timerAsk, 3}, "lost n"}},
	"no metadata, and it is still heard":  {{wants("n"), "ask a1"}, {created{"r1", ""}, ""}, {sounded{"r1"}, ""}, {whole("r1", ""), ""}, {elapsed{timerEcho, 1}, ""}, {played{"r1", heardWhole}, "given n"}},
	"no metadata, and it was interrupted": {{wants("n"), "ask a1"}, {created{"r1", ""}, ""}, {sounded{"r1"}, ""}, {whole("r1", ""), ""}, {played{"r1", heardPart}, ""}, {elapsed{timerEcho, 1}, "cut n"}},
	"a model that keeps no metadata":      {{wants("n"), "ask a1"}, {created{"r1", ""}, ""}, {whole("r1", ""), ""}, {elapsed{timerEcho, 1}, "given n"}, {wants("m"), "ask a2"}, {created{"r2", ""}, ""}, {whole("r2", ""), "given m"}},
	"an ask seemed lost, and is answered": {
		{wants("n"), "ask a1"}, {elapsed{timerAsk, 1}, ""}, {wants("m"), ""}, {created{"r1", "a1"}, ""}, {elapsed{timerRest, 1}, ""}, {whole("r1", "a1"), "given n; ask a2"},
		{created{"r2", "a2"}, ""}, {whole("r2", "a2"), "given m"},
	},
	"an ask seemed lost, and is answered when it was asked again": {
		{wants("n"), "ask a1"}, {elapsed{timerAsk, 1}, ""}, {elapsed{timerRest, 1}, "ask a2"}, {created{"r1", "a1"}, ""}, {refused{"a2"}, ""}, {whole("r1", "a1"), "given n"},
		{wants("m"), "ask a3"},
	},
	"an ask seemed lost, and both are answered": {
		{wants("n"), "ask a1"}, {elapsed{timerAsk, 1}, ""}, {elapsed{timerRest, 1}, "ask a2"}, {created{"r1", "a1"}, ""}, {whole("r1", "a1"), "given n"},
		{created{"r2", "a2"}, "cancel r2"}, {ended{"r2", "a2", statusCancelled, false}, ""}, {wants("m"), "ask a3"},
	},
	"a client's ask vanishes":             {{clientAsked{ask: "c1"}, "forward c1"}, {clientAsked{ask: "c2"}, ""}, {elapsed{timerAsk, 1}, "forward c2"}},
	"answers to nothing ask all the same": {{uttered{"n", "k9", handoff.FloorUnlessSpoke}, "ask a1"}},
}

func TestFloor(t *testing.T) {
	for name, script := range floorScripts {
		t.Run(name, func(t *testing.T) {
			f := newFloor()
			f.step(configured{})
			for i, l := range script {
				if got := brief(f.step(l.event)); got != l.want {
					t.Fatalf("line %d, %s: %q, want %q", i, fmt.Sprintf("%T%+v", l.event, l.event), got, l.want)
				}
			}
		})
	}
}

func TestFloorWaitsForTheClientsSettings(t *testing.T) {
	f := newFloor()
	if got := brief(f.step(uttered{"n", "", handoff.FloorAsk})); got != "" {
		t.Error(got)
	}
	opening := f.step(opened{})
	if len(opening) != 1 || opening[0].timer != timerOpen {
		t.Fatalf("%+v", opening)
	}
	if got := brief(f.step(elapsed{timerOpen, opening[0].gen})); got != "ask a1" {
		t.Error(got)
	}
}
