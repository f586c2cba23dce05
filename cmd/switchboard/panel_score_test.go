package main

import (
	"fmt"
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
//	 600-700   they speak; r3 begins at 650, over them, and so they are answered as they end
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
	want := score{responses: []time.Duration{time.Second, 0}, yields: 1, barges: 2, goesOn: 1, murmurs: 2, over: 1, dead: 1,
		told: 1, outcomes: 2, twice: 1, talks: 1}
	if fmt.Sprint(got) != fmt.Sprint(want) || got.faults() != 5 {
		t.Errorf("%+v\nnot %+v; %d faults", got, want, got.faults())
	}
	if p50, p95 := got.percentile(50), got.percentile(95); p50 != 0 || p95 != 0 {
		t.Errorf("of two responses the percentiles are %v and %v", p50, p95)
	}
}
