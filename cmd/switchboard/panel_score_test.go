package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"switchboard/realtime/ticks"
)

// TestPanelScores holds what the panel's scores mean, by a conversation of 28 s whose scores are worked out by hand. By
// tick of 20 ms:
//
//	   0-50    the caller speaks; r1 answers at 100: 1 s
//	 150-200   they barge into r1, which stops at 220: it yields
//	 300-320   they murmur into r2, which goes on
//	 400-560   they barge into r2, which goes on until 520: more than two seconds
//	 600-700   they speak; r3 begins at 650, over them, which is no response
//	 800-950   a request is open, and nothing is heard: dead air, once
//	1000-1100  r4 tells h-1 whole
//	1200-1240  r5 begins to tell it again; they cough at 1220, and it is cut
//
// h-2 is told by nobody.
func TestPanelScores(t *testing.T) {
	p := &panelist{
		acts: []act{
			{verb: "says", from: 0, to: 50}, {verb: "barges", from: 150, to: 200, into: "r1"},
			{verb: "murmurs", from: 300, to: 320, into: "r2"}, {verb: "barges", from: 400, to: 560, into: "r2"},
			{verb: "says", from: 600, to: 700}, {verb: "coughs", from: 1220, to: 1230, into: "r5"},
		},
		frames:   make([]string, 1400),
		cleared:  map[string]int{"r1": 220, "r2": 520, "r5": 1240},
		words:    map[string]string{"r4": "All tests pass now.", "r5": "All tests pass now."},
		made:     map[string]bool{"r4": true, "r5": true},
		outcomes: []outcomeOf{{"h-1", true}, {"h-2", false}},
	}
	for _, v := range []struct {
		response string
		from, to int
	}{{"r1", 100, 220}, {"r2", 260, 520}, {"r3", 650, 760}, {"r4", 1000, 1100}, {"r5", 1200, 1240}} {
		for at := v.from; at < v.to; at++ {
			p.frames[at] = v.response
		}
	}
	began := time.Unix(0, 0)
	log := ticks.New(began)
	for at, response := range p.frames {
		now := ticks.Tick{Voice: response != ""}
		if at >= 800 && at < 950 {
			now.Open = 1
		}
		if response == "r4" || response == "r5" {
			now.Tells = "h-1"
		}
		log.Add(began.Add(time.Duration(at)*ticks.Every), now)
	}
	p.log = log.Text()
	got := p.judge(t)
	want := score{turns: 1, responses: []time.Duration{time.Second}, yields: 1, barges: 2, goesOn: 1, murmurs: 2, over: 1, dead: 1,
		told: 1, outcomes: 2, twice: 1, talks: 1}
	if fmt.Sprint(got) != fmt.Sprint(want) || got.faults() != 5 {
		t.Errorf("%+v\nnot %+v; %d faults", got, want, got.faults())
	}
	got.responses = []time.Duration{3, 1, 2}
	if p50, p95 := got.percentile(50), got.percentile(95); p50 != 2 || p95 != 2 {
		t.Errorf("of three responses the percentiles are %v and %v", p50, p95)
	}
}

// drawn returns a conversation that is drawn as two lines, a character for each 200 ms. In that of the caller s, b, m,
// c and a begin and go on with what they say, barge in with, murmur, cough and say to others; in that of the voice a
// digit is a response. What is cut was cut where it ends.
func drawn(caller, voice, cut string) *panelist {
	const each = int(200 * time.Millisecond / tick)
	p := &panelist{cleared: map[string]int{}}
	for _, c := range voice {
		p.frames = append(p.frames, slices.Repeat([]string{strings.Trim(string(c), ".")}, each)...)
	}
	verbs := map[byte]string{'s': "says", 'b': "barges", 'm': "murmurs", 'c': "coughs", 'a': "aside"}
	for i := range caller {
		switch verb := verbs[caller[i]]; {
		case verb == "":
		case i > 0 && caller[i] == caller[i-1]:
			p.acts[len(p.acts)-1].to += each
		default:
			p.acts = append(p.acts, act{verb: verb, from: i * each, to: (i + 1) * each, into: p.frames[i*each]})
		}
	}
	for _, r := range cut {
		p.cleared[string(r)] = (strings.LastIndexByte(voice, byte(r)) + 1) * each
	}
	return p
}

// TestPanelTurns holds the definitions of the interaction metrics of tau2-bench that the panel has.
func TestPanelTurns(t *testing.T) {
	for name, c := range map[string]struct {
		caller, voice, cut string
		want               score
	}{
		"a response a second after the turn": {
			"sssss...............",
			"..........11111.....", "", score{turns: 1, responses: []time.Duration{time.Second}}},
		"no response before the caller has to speak again": {
			"sss................sss........",
			"........................111...", "", score{turns: 2, responses: []time.Duration{400 * time.Millisecond}}},
		"a caller who does not wait": {
			"sss.........sss......",
			"................11...", "", score{turns: 1, responses: []time.Duration{200 * time.Millisecond}}},
		"a murmur before the response": {
			"sss..m..............",
			"........111.........", "", score{turns: 1, responses: []time.Duration{time.Second}}},
		"an interruption takes the turn": {
			"....bbbbbb..........",
			"1111111.......222...", "1", score{yields: 1, barges: 1, turns: 1, responses: []time.Duration{800 * time.Millisecond}}},
		"an interruption in vain": {
			"..bbbb..............",
			"1111111111111111....", "", score{barges: 1}},
		"the voice stops just in time": {
			"..bbbbbbbbbbbb......",
			"11111111111.........", "1", score{yields: 1, barges: 1}},
		"it stops too late": {
			"..bbbbbbbbbbbbb.....",
			"1111111111111.......", "1", score{barges: 1}},
		"it goes on through a murmur": {
			"...mm...............",
			"1111111111111.......", "", score{goesOn: 1, murmurs: 1}},
		"a murmur into its last words": {
			"...mm...............",
			"11111...............", "", score{goesOn: 1, murmurs: 1}},
		"a murmur cuts it": {
			"...mm...............",
			"11111...............", "1", score{murmurs: 1}},
		"a cough cuts it, and it begins again": {
			"...cc...............",
			"11111...2222222.....", "1", score{murmurs: 1}},
		"it begins over the caller": {
			"ssssssss............",
			"....1111............", "", score{over: 1}},
		"it begins with the caller, who cannot have been noticed": {
			"..ssssss............",
			"...1111.............", "", score{}},
		"it begins over what is said to others": {
			"aaaaaa..............",
			"....11..............", "", score{over: 1}},
		"what is said to others wants no answer": {
			"aaaaa...............",
			"....................", "", score{}},
	} {
		c.want.talks = 1
		if got := drawn(c.caller, c.voice, c.cut).judge(t); fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%s: %+v, not %+v", name, got, c.want)
		}
	}
}
