package rtc

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"switchboard/realtime/events"
	"switchboard/realtime/rtc/rtctest"
)

// A deck drives a player and records what follows, in short lines.
type deck struct {
	p     player
	log   []string
	heard []string // what the call was told of the sound: response, milliseconds, cut
	bits  []byte   // all frames that were played
}

// shortTail is how many frames of silence follow speech here.
const shortTail = 5

func newDeck() *deck {
	d := &deck{p: newPlayer(narrow)}
	d.p.tails = shortTail
	return d
}

func (d *deck) note(to string, all [][]byte) {
	for _, e := range all {
		r := gjson.ParseBytes(e)
		if r.Get("type").String() == events.TypePlayed {
			d.heard = append(d.heard,
				fmt.Sprintf("%s %d %t", r.Get("response_id"), r.Get("audio_ms").Int(), r.Get("cut").Bool()))
			continue
		}
		var line strings.Builder
		line.WriteString(to + " " + r.Get("type").String())
		for _, field := range []string{"response_id", "item_id", "audio_end_ms", "error.event_id"} {
			if f := r.Get(field); f.Exists() {
				line.WriteString(" " + f.String())
			}
		}
		d.log = append(d.log, line.String())
	}
}

func (d *deck) told(t effects) {
	d.note("down", t.down)
	d.note("up", t.up)
}

// do takes a line of a script: the model's event, the client's (after "<") or a number of frames.
func (d *deck) do(line string) {
	if rest, ok := strings.CutPrefix(line, "<"); ok {
		d.told(d.p.fromClient([]byte(rest)))
		return
	}
	var frames int
	if n, _ := fmt.Sscanf(line, "play %d", &frames); n == 1 {
		for range frames {
			frame, events := d.p.next()
			d.note("down", events.down)
			d.note("up", events.up)
			d.bits = append(d.bits, frame...)
		}
		return
	}
	d.told(d.p.fromModel([]byte(line)))
}

// sounds is a delta with audio of a length in milliseconds, all of one byte.
func sounds(response, item string, ms int, value byte) string {
	return rtctest.Sound(response, item, ms, value)
}

func made(response string) string {
	return `{"type":"response.done","response":{"id":"` + response + `"}}`
}

func making(response string) string {
	return `{"type":"response.created","response":{"id":"` + response + `","conversation_id":"c"}}`
}

const (
	spokenTo = `{"type":"input_audio_buffer.speech_started"}`
	callCuts = `{"type":"handoff.cut","response_ids":["r"]}`
)

// patient is a session that speech does not interrupt.
const patient = `{"type":"switchboard.session.updated",` +
	`"session":{"audio":{"input":{"turn_detection":{"type":"server_vad","interrupt_response":false}}}}}`

// playerCases are scripts, what comes of them, and how much is played.
var playerCases = []struct {
	name   string
	script []string
	want   []string
	frames int // that were played, tail included
}{
	{"a response", []string{making("r"), sounds("r", "i", 50, 1), made("r"), "play 20"},
		[]string{"down response.created", "down response.done", "down output_audio_buffer.started r",
			"down output_audio_buffer.stopped r"}, 3 + shortTail},
	{"the model is slow", []string{sounds("r", "i", 99, 1), "play 1", sounds("r", "i", 11, 1), "play 7",
		sounds("r", "i", 80, 1), "play 3", sounds("r", "i", 10, 1), "play 9", made("r"), "play 1"},
		[]string{"down output_audio_buffer.started r", "down response.done", "down output_audio_buffer.stopped r"}, 5 + 5 +
			1},
	{"it stops before it is made", []string{sounds("r", "i", 100, 1), "play 9", made("r"), "play 9"},
		[]string{"down output_audio_buffer.started r", "down response.done", "down output_audio_buffer.stopped r"}, 5 +
			shortTail},
	{"a short one", []string{sounds("r", "i", 1, 1), "play 1", made("r"), "play 9"},
		[]string{"down response.done", "down output_audio_buffer.started r", "down output_audio_buffer.stopped r"}, 1 +
			shortTail},
	{"two responses in a row", []string{sounds("r", "i", 20, 1), made("r"), sounds("s", "j", 20, 2), made("s"), "play 9"},
		[]string{"down response.done", "down response.done", "down output_audio_buffer.started r",
			"down output_audio_buffer.stopped r",
			"down output_audio_buffer.started s", "down output_audio_buffer.stopped s"}, 2 + shortTail},
	{"a response without an end", []string{sounds("r", "i", 30, 1), sounds("s", "j", 100, 2), "play 4"},
		[]string{"down output_audio_buffer.started r", "down output_audio_buffer.stopped r",
			"down output_audio_buffer.started s"}, 4},
	{"a response without sound", []string{making("r"), made("r"), "play 3"},
		[]string{"down response.created", "down response.done"}, 0},
	{"barge-in", []string{making("r"), sounds("r", "i", 1000, 1), "play 7", spokenTo, "play 9"},
		[]string{"down response.created", "down output_audio_buffer.started r", "down input_audio_buffer.speech_started",
			"down output_audio_buffer.cleared r", "up conversation.item.truncate i 140"}, 7 + shortTail},
	{"barge-in before the first frame", []string{sounds("r", "i", 1000, 1), spokenTo, "play 9"},
		[]string{"down input_audio_buffer.speech_started", "up conversation.item.truncate i 0"}, 0},
	{"barge-in in the second item",
		[]string{sounds("r", "i", 30, 1), sounds("r", "j", 100, 2), made("r"), "play 2", spokenTo},
		[]string{"down response.done", "down output_audio_buffer.started r", "down input_audio_buffer.speech_started",
			"down output_audio_buffer.cleared r", "up conversation.item.truncate j 10"}, 2},
	{"barge-in with more in the queue",
		[]string{sounds("r", "i", 40, 1), sounds("r", "j", 40, 1), made("r"), sounds("s", "k", 40, 1), "play 1", spokenTo},
		[]string{"down response.done", "down output_audio_buffer.started r", "down input_audio_buffer.speech_started",
			"down output_audio_buffer.cleared r",
			"up conversation.item.truncate i 20", "up conversation.item.truncate j 0", "up conversation.item.truncate k 0"}, 1},
	{"barge-in when all that came was heard", []string{sounds("r", "i", 100, 1), "play 6", spokenTo},
		[]string{"down output_audio_buffer.started r", "down input_audio_buffer.speech_started",
			"down output_audio_buffer.cleared r",
			"up conversation.item.truncate i 100"}, 5},
	{"barge-in into silence", []string{sounds("r", "i", 20, 1), made("r"), "play 2", spokenTo},
		[]string{"down response.done", "down output_audio_buffer.started r", "down output_audio_buffer.stopped r",
			"down input_audio_buffer.speech_started"}, 2},
	{"what still comes of it is dropped",
		[]string{making("r"), sounds("r", "i", 120, 1), "play 1", spokenTo, sounds("r", "i", 120, 1), "play 1", made("r"),
			making("s"), sounds("s", "j", 100, 1), "play 1"},
		[]string{"down response.created", "down output_audio_buffer.started r", "down input_audio_buffer.speech_started",
			"down output_audio_buffer.cleared r",
			"up conversation.item.truncate i 20", "down response.done", "down response.created",
			"down output_audio_buffer.started s"}, 3},
	{"also when none had come yet", []string{making("r"), spokenTo, sounds("r", "i", 120, 1), "play 2"},
		[]string{"down response.created", "down input_audio_buffer.speech_started"}, 0},
	{"out of band is not dropped", []string{`{"type":"response.created","response":{"id":"r","conversation_id":null}}`,
		spokenTo, sounds("r", "i", 100, 1), "play 1"},
		[]string{"down response.created", "down input_audio_buffer.speech_started", "down output_audio_buffer.started r"}, 1},
	{"somebody beside the client clears",
		[]string{making("r"), sounds("r", "i", 1000, 1), "play 7", `{"type":"output_audio_buffer.clear"}`},
		[]string{"down response.created", "down output_audio_buffer.started r", "down output_audio_buffer.cleared r",
			"up conversation.item.truncate i 140"}, 7},
	{"speech does not interrupt", []string{patient, sounds("r", "i", 100, 1), "play 1", spokenTo, "play 1"},
		[]string{"down output_audio_buffer.started r", "down input_audio_buffer.speech_started"}, 2},
	{"the call cuts a response, whose answer is heard", []string{patient, making("r"), sounds("r", "i", 4000, 1), made("r"),
		"play 10", spokenTo, "play 20", making("s"), sounds("s", "j", 200, 2), "play 10", callCuts, made("s"), "play 20"},
		[]string{"down response.created", "down response.done", "down output_audio_buffer.started r",
			"down input_audio_buffer.speech_started", "down response.created", "down output_audio_buffer.cleared r",
			"up conversation.item.truncate i 800", "down response.done", "down output_audio_buffer.started s",
			"down output_audio_buffer.stopped s"}, 40 + 10 + shortTail},
	{"the call cuts a response that is being made", []string{patient, making("r"), sounds("r", "i", 1000, 1), "play 10",
		callCuts, sounds("r", "i", 1000, 1), "play 9", made("r"), "play 9"},
		[]string{"down response.created", "down output_audio_buffer.started r", "down output_audio_buffer.cleared r",
			"up conversation.item.truncate i 200", "down response.done"}, 10 + shortTail},
	{"the client clears",
		[]string{sounds("r", "i", 100, 1), "play 1", `<{"type":"output_audio_buffer.clear"}`, sounds("r", "i", 100, 1)},
		[]string{"down output_audio_buffer.started r", "down output_audio_buffer.cleared r",
			"up conversation.item.truncate i 20"}, 1},
	{"the client clears nothing", []string{`<{"type":"output_audio_buffer.clear"}`},
		[]string{"down output_audio_buffer.cleared "}, 0},
	{"the client appends", []string{`<{"event_id":"mine","type":"input_audio_buffer.append","audio":"AAAA"}`},
		[]string{"down error mine"}, 0},
	{"sound that is not ours",
		[]string{`{"type":"switchboard.session.updated","session":{"audio":{"output":{"format":{"type":"audio/opus"}}}}}`,
			sounds("r", "i", 100, 1), "play 1"},
		[]string{"down error "}, 0},
	{"sound that cannot be read", []string{`{"type":"response.output_audio.delta","response_id":"r","delta":"?"}`,
		made("r"), "play 1"}, []string{"down response.done"}, 0},
	{"what the client sends passes", []string{`<{"type":"response.cancel"}`, `<no JSON`},
		[]string{"up response.cancel", "up "}, 0},
}

func TestPlayer(t *testing.T) {
	for _, tc := range playerCases {
		t.Run(tc.name, func(t *testing.T) {
			d := newDeck()
			for _, line := range tc.script {
				d.do(line)
			}
			if diff := cmp.Diff(tc.want, d.log); diff != "" {
				t.Error(diff)
			}
			if len(d.bits) != tc.frames*frameBytes {
				t.Errorf("%d bytes of %d frames", len(d.bits), tc.frames)
			}
		})
	}
}

// playerReports are scripts and what the call is told of the sound: response, milliseconds, cut.
var playerReports = []struct {
	name   string
	script []string
	want   string
}{
	{"a response", []string{making("r"), sounds("r", "i", 50, 1), made("r"), "play 3"}, ""},
	{"a response to its end", []string{making("r"), sounds("r", "i", 50, 1), made("r"), "play 4", "play 9"}, "r 50 false"},
	{"made after it was heard", []string{making("r"), sounds("r", "i", 100, 1), "play 9", made("r"), "play 1"},
		"r 100 false"},
	{"two items", []string{making("r"), sounds("r", "i", 30, 1), sounds("r", "j", 30, 1), made("r"), "play 9"},
		"r 60 false"},
	{"two responses", []string{making("r"), sounds("r", "i", 20, 1), made("r"), making("s"), sounds("s", "j", 40, 2),
		made("s"), "play 9"}, "r 20 false; s 40 false"},
	{"a response whose end is never told",
		[]string{making("r"), sounds("r", "i", 100, 1), "play 9", making("s"), "play 1"}, "r 100 false"},
	{"a response without sound", []string{making("r"), made("r"), "play 3"}, ""},
	{"sound that cannot be played", []string{making("r"), sounds("r", "", 0, 1), made("r")}, "r 0 false"},
	{"barge-in", []string{making("r"), sounds("r", "i", 1000, 1), "play 7", spokenTo, sounds("r", "i", 1000, 1), made("r"),
		"play 9"}, "r 140 true"},
	{"barge-in before the first frame", []string{making("r"), sounds("r", "i", 1000, 1), spokenTo, made("r")}, "r 0 true"},
	{"barge-in before the first sound", []string{making("r"), spokenTo, sounds("r", "i", 1000, 1), made("r")}, "r 0 true"},
	{"barge-in with more in the queue", []string{making("r"), sounds("r", "i", 40, 1), made("r"), making("s"),
		sounds("s", "k", 40, 1), "play 1", spokenTo, made("s")}, "s 0 true; r 20 true"},
	{"barge-in into the last frame", []string{making("r"), sounds("r", "i", 20, 1), made("r"), "play 1", spokenTo},
		"r 20 false"},
	{"barge-in into silence", []string{making("r"), sounds("r", "i", 20, 1), made("r"), "play 3", spokenTo}, "r 20 false"},
	{"speech does not interrupt",
		[]string{patient, making("r"), sounds("r", "i", 100, 1), made("r"), "play 1", spokenTo, "play 9"}, "r 100 false"},
	{"the client clears", []string{making("r"), sounds("r", "i", 100, 1), "play 1",
		`<{"type":"output_audio_buffer.clear"}`, made("r")}, "r 20 true"},
	{"the client clears before a sound",
		[]string{making("r"), `<{"type":"output_audio_buffer.clear"}`, sounds("r", "i", 100, 1), made("r")}, "r 0 true"},
}

func TestPlayerTellsTheCall(t *testing.T) {
	for _, tc := range playerReports {
		t.Run(tc.name, func(t *testing.T) {
			d := newDeck()
			for _, line := range tc.script {
				d.do(line)
			}
			if got := strings.Join(d.heard, "; "); got != tc.want {
				t.Errorf("told %s, want %s", got, tc.want)
			}
		})
	}
}

// TestPlayerTellsOnce plays many random scripts: every response that sounded is reported once, and nothing is left in
// memory.
func TestPlayerTellsOnce(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 5))
		d := newDeck()
		sounded := map[string]bool{}
		now := ""
		for n := range 60 {
			switch random.IntN(6) {
			case 0:
				if now == "" {
					now = fmt.Sprint("r", n)
					d.do(making(now))
				}
			case 1, 2:
				if now != "" {
					sounded[now] = true
					d.do(sounds(now, "i", 10*random.IntN(30), 1))
				}
			case 3:
				d.do(fmt.Sprint("play ", random.IntN(20)))
			case 4:
				if now != "" {
					d.do(made(now))
					now = ""
				}
			case 5:
				if random.IntN(2) == 0 {
					d.do(spokenTo)
				}
			}
		}
		if now != "" {
			d.do(made(now))
		}
		d.do("play 1000")
		told := map[string]int{}
		for _, line := range d.heard {
			response, rest, _ := strings.Cut(line, " ")
			if told[response]++; told[response] > 1 || !sounded[response] && rest != "0 true" {
				t.Fatalf("seed %d: told %q", seed, d.heard)
			}
		}
		for response := range sounded {
			if told[response] != 1 {
				t.Fatalf("seed %d: not told of %s: %q", seed, response, d.heard)
			}
		}
		if len(d.p.responses) != 0 {
			t.Fatalf("seed %d: it keeps %v", seed, d.p.responses)
		}
	}
}

// A client cannot report to the call what was heard.
func TestClientCannotTellWhatItHeard(t *testing.T) {
	for _, forged := range []string{`{"type":"switchboard.played","response_id":"r","audio_ms":9}`,
		`{"type":"switchboard.opened"}`, `{"type":"switchboard.formats","session":{}}`, ` {"response_id":"r","type" : ` +
			`"switchboard\u002eplayed"}`} {
		p := newPlayer(narrow)
		if got := p.fromClient([]byte(forged)); len(got.up) != 0 || len(got.down) != 1 {
			t.Errorf("%s: up %s, down %s", forged, got.up, got.down)
		}
	}
}
