package wording

import (
	"slices"
	"strings"
	"testing"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/speakable"
)

// briefNow is when the news of these tests is told.
var briefNow = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func finished(server, asked, said string) handoff.Record {
	return handoff.Record{Server: server, Prompt: asked, Title: "Some session", Outcome: handoff.OutcomeResult, Text: said,
		Spoken: said, EndedAt: new(briefNow.Add(-5 * time.Minute))}
}

func failing(server, asked string, fault *handoff.Error) handoff.Record {
	return handoff.Record{Server: server, Prompt: asked, Outcome: handoff.OutcomeFailed, Fault: fault, Spoken: fault.Spoken(),
		EndedAt: new(briefNow.Add(-5 * time.Minute))}
}

func noMode(asked string) handoff.Record {
	fault := handoff.Fault(handoff.CodeRefused, "mini", "approval: the agent has no modes; set approval: never")
	fault.Why = handoff.WhyNoMode
	return failing("mini", asked, fault)
}

func gone(server, asked string) handoff.Record {
	return failing(server, asked, handoff.Fault(handoff.CodeUnreachable, server, ""))
}

// many returns n of the same.
func many[T any](n int, one T) []T { return slices.Repeat([]T{one}, n) }

// TestBrief holds what is said of one work, and of hundreds.
func TestBrief(t *testing.T) {
	docs := Open{Server: "studio", Asked: "build the docs", Age: 5 * time.Minute, Named: true}
	login := Open{Server: "tower", Asked: "fix the login", Age: 70 * time.Second, Named: true}
	waits := Open{Server: "studio", Asked: "rich report please", Age: time.Minute, Waits: true}
	stopped := handoff.Record{Server: "bigpc", Prompt: "push it", Outcome: handoff.OutcomeInterrupted, Spoken: "Stopped."}
	paused := handoff.Record{ID: "h-2", Server: "bigpc", Prompt: "then push", Outcome: handoff.OutcomeCancelled, Paused: true,
		Fault: handoff.Fault(handoff.CodePaused, "bigpc", ""), Spoken: "It is paused."}
	red := finished("bigpc", "run the tests", "One fails. It is slow.")
	red.Tested = handoff.TestsFailed
	green, notes := finished("bigpc", "run the tests", "All pass."), finished("laptop", "write the notes", "Notes are done.")
	long := strings.Repeat("words of a request that does not end ", 20)
	for name, tt := range map[string]struct {
		news News
		want string
	}{
		"nothing":      {News{}, ""},
		"nothing open": {News{When: WhenLately}, "Nothing is running."},
		"one runs":     {News{Open: []Open{docs}}, "studio is working on build the docs, for five minutes."},
		"one runs, four wait": {News{Open: append(many(4, waits), docs)},
			"studio is working on build the docs, for five minutes; four more wait."},
		"one waits": {News{Open: []Open{waits}}, "Rich report please has not begun on studio yet, asked for 1 minute ago."},
		"five wait": {News{Open: many(5, waits)}, "Five things wait."},
		"45 run, 4 wait": {News{Open: slices.Concat([]Open{docs, login}, many(43, docs), many(4, waits))},
			"45 things are running, among them build the docs on studio and fix the login on tower; four more wait; the rest is on the page."},
		"45 beats": {News{Open: many(45, Open{Server: "studio", Asked: "build the docs", Beats: true})},
			"45 things are running, among them build the docs on studio and build the docs on studio; the rest is on the page."},
		"asks": {News{When: WhenLately, Asking: []string{"bigpc"}, Open: []Open{docs}},
			"bigpc waits for your answer; studio is working on build the docs, for five minutes."},
		"many ask": {News{When: WhenLately, Asking: []string{"a1", "b1", "c1", "d1"}}, "a1, b1 and two more wait for your answer."},
		"paused": {News{When: WhenLately, Paused: []handoff.Record{paused}},
			"On bigpc, then push is paused until you say go on or drop it."},
		"many paused": {News{When: WhenLately, Paused: many(3, paused)},
			"Three things are paused."},
		"two ended lately": {News{When: WhenLately, Now: briefNow, Ended: []handoff.Record{green, gone("attic", "look")}},
			"Nothing is running. Lately two things ended: run the tests on bigpc, done 5 minutes ago; look on attic, failed 5 minutes ago."},
		"many ended lately": {News{When: WhenLately, Now: briefNow, Open: []Open{docs}, Ended: slices.Concat(many(9, green), many(4, noMode("x")))},
			"studio is working on build the docs, for five minutes. Lately, nine things finished, four failed; the rest is on the page."},
		"one away": {News{When: WhenAway, Ended: []handoff.Record{green}},
			"While you were away, one thing finished. bigpc, done: All pass."},
		"one away, without its words": {News{When: WhenAway, Ended: []handoff.Record{finished("bigpc", "run the tests", "")}},
			"While you were away, one thing finished. run the tests on bigpc."},
		"one failed": {News{When: WhenMeanwhile, Ended: []handoff.Record{gone("attic", "look")}},
			"Meanwhile, one thing failed: attic is not answering."},
		"two at once": {News{Ended: []handoff.Record{green, notes}},
			"Two things finished. bigpc, done: All pass; laptop, done: Notes are done."},
		"tests fail": {News{Ended: []handoff.Record{red, notes}},
			"One thing finished, one failed. bigpc, tests failed: One fails, It is slow; laptop, done: Notes are done."},
		"one of two failed": {News{Ended: []handoff.Record{notes, gone("attic", "look")}},
			"One thing finished, one failed: attic is not answering. laptop, done: Notes are done."},
		"not begun": {News{Ended: []handoff.Record{stopped, paused}},
			"One thing was stopped, one was not begun. bigpc, not begun: then push; bigpc, stopped: push it."},
		"three": {News{Ended: []handoff.Record{green, notes, green}},
			"Three things finished. Among them run the tests on bigpc and write the notes on laptop; the rest is on the page."},
		"a long report": {News{When: WhenAway, Ended: []handoff.Record{finished("bigpc", "run the tests", long)}},
			"While you were away, one thing finished. run the tests on bigpc; the rest is on the page."},
		"long requests": {News{Ended: many(3, finished("bigpc", long, "Done with it."))},
			"Three things finished. Among them words of a request that does not end words of a… on bigpc; the rest is on the page."},
		"failures of several causes": {News{Ended: []handoff.Record{gone("attic", "a1"), gone("shed", "b1"), gone("barn", "c1")}},
			"Three things failed. Among them a1 on attic and b1 on shed; the rest is on the page."},
		"a busy night": {News{When: WhenAway, Ended: slices.Concat(many(334, green), many(22, gone("attic", "look")), many(166, noMode("x")))},
			"While you were away, 334 things finished, 22 failed, 166 failed on mini: its agent has no mode that asks; the rest is on the page."},
		"all for one cause": {News{When: WhenAway, Ended: many(180, noMode("x"))},
			"While you were away, 180 things failed on mini: its agent has no mode that asks."},
	} {
		if got := English.Brief(tt.news); got != tt.want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, tt.want)
		}
	}
}

// TestBriefIsBrief: in every language, of 1 to 500 works, with long names, at most two sentences are said, in ten
// seconds, and no name or text is cut within a word.
func TestBriefIsBrief(t *testing.T) {
	const server = "workstation-of-the-second-floor"
	asked := "Please rewrite the authentication middleware, including everything around sessions. Then run all of it."
	said := "The middleware is rewritten and each of the four hundred and twelve tests passes on the first attempt. More."
	fault := handoff.Fault(handoff.CodeRefused, server, "")
	fault.Why = handoff.WhyNoMode
	paused := failing(server, asked, handoff.Fault(handoff.CodePaused, server, ""))
	paused.Outcome, paused.Paused = handoff.OutcomeCancelled, true
	stopped := failing(server, asked, handoff.Fault(handoff.CodeShutdown, server, ""))
	stopped.Outcome, stopped.Fault = handoff.OutcomeInterrupted, nil
	open := Open{Server: server, Asked: asked, Age: 5 * time.Minute, Named: true}
	beats, waits, speaks := open, open, open
	beats.Beats, waits.Waits, speaks.Remark = true, true, said
	words := strings.Fields(strings.NewReplacer(".", "", ",", "").Replace(asked + " " + said))
	for _, code := range Languages() {
		l, longest := Language(code), time.Duration(0)
		for _, n := range []int{1, 2, 3, 500} {
			all := slices.Concat(many(n, finished(server, asked, said)), many(n, gone(server, asked)),
				many(n+1, failing(server, asked, fault)), many(n, paused), many(n, stopped))
			var news []News
			for _, ended := range [][]handoff.Record{many(n, finished(server, asked, said)), many(n, failing(server, asked,
				fault)), many(n, gone(server, asked)), many(n, paused), all} {
				for when := WhenNow; when <= WhenLately; when++ {
					news = append(news, News{Ended: ended, When: when, Now: briefNow})
				}
			}
			for _, o := range []Open{open, beats, waits, speaks} {
				news = append(news, News{Open: many(n, o)}, News{Open: many(n, o), When: WhenLately, Unread: true},
					News{Open: many(n, o), Ended: all, When: WhenLately, Now: briefNow})
			}
			news = append(news, News{When: WhenLately, Now: briefNow, Asking: many(n, server), Open: slices.Concat(many(n,
				open), many(n, waits)), Paused: many(n, paused), Ended: all})
			for i, news := range news {
				got := l.Brief(news)
				longest = max(longest, SayTime(got))
				if s := sentences(got); got == "" || s > 2 || SayTime(got) > mostSaid {
					t.Errorf("%s, %d of %d: %d sentences in %v: %s", l, i, n, s, SayTime(got), got)
				}
				for word := range strings.FieldsSeq(got) {
					whole, cut := strings.CutSuffix(strings.TrimRight(word, ";؛.,:"), "…")
					if cut && !slices.Contains(words, strings.TrimLeft(whole, "「“")) {
						t.Errorf("%s, %d of %d: %q is cut in %s", l, i, n, word, got)
					}
				}
			}
		}
		t.Logf("%s: at most %v", l, longest)
	}
}

// sentences counts the sentences of a text.
func sentences(text string) int {
	n := 0
	for text != "" {
		s := speakable.FirstSentence(text)
		if s == "" {
			return n + 1
		}
		text = strings.TrimSpace(text[len(s):])
		n++
	}
	return n
}
