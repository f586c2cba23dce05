package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"switchboard/handoff/call/calltest"
	"switchboard/handoff/speakable"
	"switchboard/realtime/ticks"
)

// A score is what conversations were like, in the terms of the interaction metrics of tau2-bench: how soon the caller
// is answered, whether the voice yields to who interrupts and goes on through who only listens, and how often it
// starts over the caller. Beside these stand what Switchboard is for: dead air while a request is open, and outcomes.
type score struct {
	turns           int             // of the caller, who then waited
	responses       []time.Duration // from the end of such a turn to the first sound, where one came before the next turn
	yields, barges  int             // within two seconds
	goesOn, murmurs int
	over            int // the voice began while the caller spoke, 400 ms after they had begun or later
	dead            int // more than two seconds of silence while a request was open
	told, outcomes  int // heard: their meaning was
	twice           int // told again after they had been heard
	talks           int
}

func (s *score) add(o score) {
	s.turns, s.responses = s.turns+o.turns, append(s.responses, o.responses...)
	s.yields, s.barges = s.yields+o.yields, s.barges+o.barges
	s.goesOn, s.murmurs = s.goesOn+o.goesOn, s.murmurs+o.murmurs
	s.over, s.dead, s.twice, s.talks = s.over+o.over, s.dead+o.dead, s.twice+o.twice, s.talks+o.talks
	s.told, s.outcomes = s.told+o.told, s.outcomes+o.outcomes
}

// percentile of the times to a response.
func (s *score) percentile(n int) time.Duration {
	if len(s.responses) == 0 {
		return 0
	}
	slices.Sort(s.responses)
	return s.responses[(len(s.responses)-1)*n/100]
}

func percent(n, of int) float64 {
	if of == 0 {
		return 100
	}
	return 100 * float64(n) / float64(of)
}

// String is the table.
func (s *score) String() string {
	var out strings.Builder
	row := func(what, got, aim string) { fmt.Fprintf(&out, "| %-42s | %-20s | %-7s |\n", what, got, aim) }
	row("conversations", fmt.Sprint(s.talks), "")
	row("response, p50 / p95", fmt.Sprintf("%.2f s / %.2f s", s.percentile(50).Seconds(), s.percentile(95).Seconds()), "")
	row("turns of the caller answered", fmt.Sprintf("%.1f %% of %d", percent(len(s.responses), s.turns), s.turns), "100 %")
	row("yields to an interruption within 2 s", fmt.Sprintf("%.1f %% of %d", percent(s.yields, s.barges), s.barges), "100 %")
	row("goes on through backchannels", fmt.Sprintf("%.1f %% of %d", percent(s.goesOn, s.murmurs), s.murmurs), "≥ 95 %")
	row("starts over the caller", fmt.Sprint(s.over), "0")
	row("dead air > 2 s while a request is open", fmt.Sprint(s.dead), "0")
	row("outcomes heard", fmt.Sprintf("%.1f %% of %d", percent(s.told, s.outcomes), s.outcomes), "100 %")
	row("outcomes told twice", fmt.Sprint(s.twice), "0")
	return out.String()
}

// understood reports whether the caller heard the meaning of a response that tells so many outcomes: of one its first
// sentence that says what came of it, or four fifths of its sound, and of several four fifths of the last. It goes by
// the frames that were played and by the length of the words; sound comes in pieces of five frames, so that of a whole
// response is a little longer than its words. Of a sentence in whose last word the sound ends nobody can be sure: it
// may be told again.
func (p *panelist) understood(response string, outcomes int) (heard, sure bool) {
	frames := 0
	for _, f := range p.frames {
		if f == response {
			frames++
		}
	}
	length := func(words string) float64 { return float64(len(strings.Fields(words))) / 2.7 / tick.Seconds() }
	words := strings.TrimSpace(p.words[response])
	whole := 5 * math.Ceil(length(words)/5)
	first := speakable.FirstSentence(words)
	if strings.Contains(first, " is done in the session ") { // that is no news yet
		next := speakable.FirstSentence(words[len(first):])
		if first += next; next == "" {
			first = ""
		}
	}
	most := p.made[response] && float64(frames) >= (1-0.2/float64(outcomes))*whole
	told := outcomes == 1 && first != ""
	return most || told && float64(frames)+length("word") >= length(first), most || told && float64(frames+5) >= length(first)
}

// telling returns the responses that told an outcome, in order. Where one follows another at once the log may be a few
// ticks late.
func (p *panelist) telling(all []ticks.Tick, work string) (responses []string) {
	told, lasted := map[string]int{}, map[string]int{}
	for at, response := range p.frames {
		if lasted[response]++; response == "" || at >= len(all) || !slices.Contains(strings.Split(all[at].Tells, ","), work) {
			continue
		}
		if told[response]++; told[response] == 1 {
			responses = append(responses, response)
		}
	}
	return slices.DeleteFunc(responses, func(r string) bool { return 2*told[r] < lasted[r] })
}

// answered reports whether an act is a turn that ended in quiet, and after how long the voice began, if it did before
// the caller took the next. Who takes that within 3 s without an answer did not wait for one.
func (p *panelist) answered(nth int) (after time.Duration, turn, answered bool) {
	takes := func(a act) bool { return a.verb == "says" || a.verb == "barges" }
	a, next := p.acts[nth], len(p.frames)
	if i := slices.IndexFunc(p.acts[nth+1:], takes); i >= 0 {
		next = p.acts[nth+1+i].from
	}
	if !takes(a) || a.to < len(p.frames) && p.frames[a.to] != "" {
		return 0, false, false
	}
	for at := a.to; at < min(next, len(p.frames)); at++ {
		if p.frames[at] != "" {
			return time.Duration(at-a.to) * tick, true, true
		}
	}
	return 0, next-a.to > int(3*time.Second/tick), false
}

// readTicks returns the ticks of a log, one for each 20 ms from the beginning of the call. A gap repeats the tick
// before it.
func readTicks(log []byte) (all []ticks.Tick) {
	for line := range strings.Lines(string(log)) {
		var t, before ticks.Tick
		var ms, n int
		var caller, voice string
		if _, err := fmt.Sscanf(line, "%d x%d %s %s %d %s", &ms, &n, &caller, &voice, &t.Open, &t.Tells); err != nil {
			continue // a note
		}
		t.Caller, t.Voice, t.Tells = caller != "-", voice != "-", strings.TrimPrefix(t.Tells, "-")
		if len(all) > 0 {
			before = all[len(all)-1]
		}
		all = append(all, slices.Repeat([]ticks.Tick{before}, ms/int(ticks.Every.Milliseconds())-len(all))...)
		all = append(all, slices.Repeat([]ticks.Tick{t}, n)...)
	}
	return all
}

// judge scores a conversation that is over.
func (p *panelist) judge(t *testing.T) score {
	all := readTicks(p.log)
	s := score{talks: 1}
	voice := func(at int) string {
		if at < 0 || at >= len(p.frames) {
			return ""
		}
		return p.frames[at]
	}
	for i, a := range p.acts {
		next := len(p.frames)
		if i+1 < len(p.acts) {
			next = p.acts[i+1].from
		}
		if after, turn, answered := p.answered(i); turn {
			if s.turns++; answered {
				s.responses = append(s.responses, after)
			}
		}
		switch {
		case a.verb == "barges" && a.into != "":
			s.barges++
			if yields := a.from + int(2*time.Second/tick); voice(yields) != a.into && voice(yields+1) != a.into {
				s.yields++
			}
		case (a.verb == "murmurs" || a.verb == "coughs") && a.into != "":
			s.murmurs++
			if cut, was := p.cleared[a.into]; !was || cut >= next {
				s.goesOn++
			}
		}
		for at := a.from + int(400*time.Millisecond/tick); at < a.to; at++ {
			if voice(at) != "" && voice(at) != a.into && voice(at) != voice(at-1) {
				s.over++
			}
		}
	}
	silent := 0
	for at, now := range all {
		speaks := slices.ContainsFunc(p.acts, func(a act) bool { return a.from <= at && at <= a.to })
		if silent++; now.Open == 0 || speaks || now.Voice || voice(at) != "" {
			silent = 0
		}
		if silent == int(2*time.Second/tick)+1 {
			s.dead++
		}
	}
	tells := map[string]int{} // outcomes that a response tells
	for at, response := range p.frames[:min(len(p.frames), len(all))] {
		tells[response] = max(tells[response], 1+strings.Count(all[at].Tells, ","))
	}
	for _, o := range p.outcomes {
		s.outcomes++
		known, again := false, false
		for _, response := range p.telling(all, o.work) {
			if again {
				s.twice++
			}
			heard, sure := p.understood(response, tells[response])
			known, again = known || heard, again || sure
		}
		if known && o.told {
			s.told++
		}
	}
	return s
}

// TestProofPanel plays the conversations of testdata/panel and scores them: each once, or with 20 seeds, which take
// two minutes of one core. The race detector would make that a quarter of an hour: .ci/test runs it without. To play
// again what a run logged, name its seed: SWITCHBOARD_PANEL_SEED=277 go test -v -run TestProofPanel//failed-murmur.
func TestProofPanel(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/panel/*.txtar")
	if err != nil || len(files) < 40 {
		t.Errorf("found %d conversations, %v", len(files), err)
	}
	seeds, only := 1, os.Getenv("SWITCHBOARD_PANEL_SEED")
	if soak() || only != "" {
		seeds = 20
	}
	var mu sync.Mutex
	var scores [3]score // guarded by mu: by panelClient
	t.Run("conversations", func(t *testing.T) {
		for i, file := range files {
			t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
				t.Parallel()
				archive, err := txtar.ParseFile(file)
				must(t, err)
				parts := calltest.Parts(archive)
				// With its only connection a call of the voice model's server is over.
				ends := slices.ContainsFunc(parts["caller"], func(line string) bool { return strings.Contains(line, " closes") })
				for nth := range len(scores) * seeds {
					client, seed := panelClient(nth%len(scores)), nth/len(scores)*len(files)+i
					if only != "" && only != strconv.Itoa(seed) || ends && client == lowersFar {
						continue
					}
					synctest.Test(t, func(t *testing.T) {
						p := converse(t, parts["world"], parts["caller"], uint64(seed), client)
						s := p.judge(t)
						if s.faults() > 0 || client != cutsIt && s.goesOn < s.murmurs {
							t.Logf("seed %d, client %d:\n%s%+v\n%q %v\n%s", seed, client, &s, p.acts, p.words, p.made, p.log)
						}
						mu.Lock()
						scores[client].add(s)
						mu.Unlock()
					})
				}
			})
		}
	})
	for client, who := range []string{
		"a page, which lowers the sound", "a page whose sound goes to the voice model's server", "other clients, which cut it at once",
	} {
		s := &scores[client]
		t.Logf("%s\n%s", who, s)
		lowers := panelClient(client) != cutsIt
		if s.faults() > 0 || lowers && (percent(s.goesOn, s.murmurs) < 95 || s.percentile(95) > 3*time.Second) {
			t.Errorf("%s: the conversations are not as they should be", who)
		}
	}
}

// faults counts what must never be.
func (s *score) faults() int {
	return s.turns - len(s.responses) + s.barges - s.yields + s.over + s.dead + s.twice + s.outcomes - s.told
}
