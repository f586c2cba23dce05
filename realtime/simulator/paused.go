package simulator

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"switchboard/handoff"
	"switchboard/handoff/tools"
	"switchboard/handoff/wording"
)

// pausedWork is work that was not begun, and is when the caller says so.
type pausedWork struct {
	name   string // by which it is begun or dropped
	server string
	words  string // what the caller wanted
}

// How messages tell of paused work, and what callers say to it.
var (
	rePaused     = regexp.MustCompile(`To begin it: begin "([^"\s]+)"\. It was: (.+)`)
	rePausedOn   = regexp.MustCompile(`(?:waited|asked for) on (\S+) (?:is paused|was not begun)`)
	rePausedLine = regexp.MustCompile(`^(\S+), not begun: `)

	goOnPaused = pattern(`(?:yes,? |ok(?:ay)?,? )?(?:continue|go on|go ahead|resume|carry on|keep going|proceed|start|begin|do)(?: with)?(?: (?:the )?(.+?))??(?: now| then)?` + reOn + `$`)
	dropPaused = pattern(`(?:no,? |ok(?:ay)?,? )?(?:just )?(?:drop|discard|forget|skip|remove|scrap|throw away|leave out|abandon|cancel|delete)(?: (?:about )?(?:the )?(.+?))??` + reOn + `$`)
	pausedIt   = pattern(`(?:it|that|this|that one|one|work|paused (?:work|one|thing|task)|(?:what|whatever) (?:was|is) (?:paused|waiting|not begun)|what waits|what waited)$`)
	pausedAll  = pattern(`(?:both|all|them|both of them|all of (?:it|them)|everything|rest|paused ones)$`)
)

// sayPaused asks about paused work.
const sayPaused = "Shall I go on with it, or drop it?"

// readPaused finds the paused work that a system message tells of.
func readPaused(message string) []pausedWork {
	lead, quote := wording.SplitMessage(message)
	server := ""
	if m := rePausedOn.FindStringSubmatch(lead); m != nil {
		server = m[1]
	}
	var found []pausedWork
	for line := range strings.SplitSeq(quote, "\n") {
		m := rePaused.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		at := server
		if on := rePausedLine.FindStringSubmatch(line); on != nil {
			at = on[1]
		}
		found = append(found, pausedWork{m[1], at, m[2]})
	}
	return found
}

// spokenPaused says a message that tells of paused work: without the names, which are not for the caller.
func spokenPaused(message string) string {
	lead, quote := wording.SplitMessage(message)
	var said []string
	for line := range strings.SplitSeq(quote, "\n") {
		said = append(said, finished(sentences(rePaused.ReplaceAllString(line, "It was: $2"), 2)))
	}
	return strings.Join([]string{sentences(lead, 1), strings.Join(said, " "), sayPaused}, " ")
}

// finished ends a text as a sentence.
func finished(text string) string {
	if text = strings.TrimSpace(text); text != "" && strings.IndexByte(".!?", text[len(text)-1]) < 0 {
		text += "."
	}
	return text
}

// notePaused remembers work that was not begun. What is begun or dropped is forgotten when that is asked for.
func (b *brain) notePaused(found []pausedWork) {
	for _, p := range found {
		b.forgetPaused(p.name)
		b.paused = append(b.paused, p)
	}
	b.paused = b.paused[max(0, len(b.paused)-maxOpen):]
}

func (b *brain) forgetPaused(name string) {
	b.paused = slices.DeleteFunc(b.paused, func(p pausedWork) bool { return p.name == name })
}

// learnPaused takes from an answer of the status tool what is paused.
func (b *brain) learnPaused(out gjson.Result) {
	var found []pausedWork
	out.Get("paused").ForEach(func(_, p gjson.Result) bool {
		found = append(found, pausedWork{p.Get("begin").String(), p.Get("server").String(), p.Get("said").String()})
		return true
	})
	b.notePaused(found)
}

// resumed takes a sentence that begins or drops paused work.
func (b *brain) resumed(h Heard, text string) ([]Move, bool) {
	if len(b.paused) == 0 {
		return nil, false
	}
	s := plain(text, b.machines)
	drop := false
	m := goOnPaused.FindStringSubmatch(s)
	if m == nil {
		m, drop = dropPaused.FindStringSubmatch(s), true
	}
	if m == nil {
		return nil, false
	}
	which := b.pausedThat(m[1], canonical(m[2], b.machines))
	if len(which) == 0 {
		return nil, false
	}
	return b.resume(h, which, drop, pausedAll.MatchString(m[1])), true
}

// pausedThat returns the paused work that is meant.
func (b *brain) pausedThat(what, server string) []pausedWork {
	var found []pausedWork
	for _, p := range b.paused {
		if (server == "" || server == p.server) && (what == "" || pausedIt.MatchString(what) || pausedAll.MatchString(what) || hasWords(p.words+" "+p.server, what)) {
			found = append(found, p)
		}
	}
	return found
}

// resume begins or drops paused work, or asks which.
func (b *brain) resume(h Heard, which []pausedWork, drop, all bool) []Move {
	if len(which) > 1 && !all {
		b.asking = &errand{intent: intent{wish: wishPaused}, paused: which, drop: drop}
		var names []string
		for _, p := range which {
			names = append(names, strings.TrimRight(p.words, ".!? ")+" on "+p.server)
		}
		return says(fmt.Sprintf("There are %d: %s. Which one do you mean?", len(which), handoff.ListWords(names)))
	}
	var moves []Move
	for _, p := range which {
		b.forgetPaused(p.name)
		if drop {
			moves = append(moves, call(h, tools.StopWork, tools.StopArguments{Drop: p.name}, nil)...)
			continue
		}
		moves = append(moves, call(h, tools.Codex, tools.CodexArguments{Server: p.server, Prompt: p.words, Begin: p.name}, nil)...)
	}
	return moves
}

// pausedChosen takes the answer to which paused work is meant.
func (b *brain) pausedChosen(h Heard, e errand, text string) ([]Move, bool) {
	if pausedAll.MatchString(plain(text, b.machines)) {
		return b.resume(h, e.paused, e.drop, true), true
	}
	for i, p := range e.paused {
		if ordinal(text) == i+1 || hasWords(p.words+" "+p.server, text) {
			return b.resume(h, []pausedWork{p}, e.drop, true), true
		}
	}
	return nil, false
}

// pausedReply takes a plain yes or no to what was asked last, when that was about paused work. A no leaves it: dropping
// is for who says so.
func (b *brain) pausedReply(h Heard, text string) ([]Move, bool) {
	if len(b.paused) == 0 || !strings.HasSuffix(b.said, sayPaused) {
		return nil, false
	}
	switch decisionIn(text) {
	case handoff.DecisionAccept:
		return b.resume(h, b.paused, false, false), true
	case handoff.DecisionDecline:
		return says(sayStaysPaused), true
	}
	return nil, false
}

const sayStaysPaused = "All right, it stays paused. Say go on, or drop it, when you know."
