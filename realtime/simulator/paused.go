package simulator

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/tidwall/gjson"

	"switchboard/handoff"
	"switchboard/handoff/wording"
)

// How messages describe paused work.
var (
	rePaused     = regexp.MustCompile(`To begin it: begin "([^"\s]+)"\. It was: (.+)`)
	rePausedOn   = regexp.MustCompile(`(?:waited|asked for) on (\S+) (?:is paused|was not begun)`)
	rePausedLine = regexp.MustCompile(`^(\S+), not begun: `)
)

// pausedPhrases are sentences about paused work. If there is none, they mean something else.
var pausedPhrases = sync.OnceValue(func() []phrase {
	const which = `(?: (?:it|that))?` + formOn + `(?: now)?`
	return []phrase{
		{intent{wish: wishBegin}, whole(`(?:yes,? )?(?:continue|go on|go ahead|resume|do)(?: with)?` + which)},
		{intent{wish: wishDrop}, whole(`(?:drop|discard|forget)(?: about)?` + which)},
	}
})

// sayPaused asks about paused work.
const sayPaused = "Shall I go on with it, or drop it?"

// readPaused returns the paused work that a system message describes.
func readPaused(message string) []option {
	lead, quote := wording.SplitMessage(message)
	server := ""
	if m := rePausedOn.FindStringSubmatch(lead); m != nil {
		server = m[1]
	}
	var found []option
	for line := range strings.SplitSeq(quote, "\n") {
		m := rePaused.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		at := server
		if on := rePausedLine.FindStringSubmatch(line); on != nil {
			at = on[1]
		}
		found = append(found, option{id: m[1], title: m[2], server: at})
	}
	return found
}

// spokenPaused returns the spoken form of a message about paused work, without the ids.
func spokenPaused(message string) string {
	lead, quote := wording.SplitMessage(message)
	var said []string
	for line := range strings.SplitSeq(quote, "\n") {
		said = append(said, finished(sentences(rePaused.ReplaceAllString(line, "It was: $2"), 2)))
	}
	return strings.Join([]string{sentences(lead, 1), strings.Join(said, " "), sayPaused}, " ")
}

// finished adds a full stop to a text without final punctuation.
func finished(text string) string {
	if text = strings.TrimSpace(text); text != "" && strings.IndexByte(".!?", text[len(text)-1]) < 0 {
		text += "."
	}
	return text
}

// notePaused remembers paused work, until the caller begins or drops it.
func (b *brain) notePaused(found []option) {
	for _, p := range found {
		b.forgetPaused(p.id)
		b.paused = append(b.paused, p)
	}
	b.paused = b.paused[max(0, len(b.paused)-maxOpen):]
}

func (b *brain) forgetPaused(id string) {
	b.paused = slices.DeleteFunc(b.paused, func(p option) bool { return p.id == id })
}

// learnPaused notes the paused work in an answer of the status tool.
func (b *brain) learnPaused(out gjson.Result) {
	var found []option
	out.Get("paused").ForEach(func(_, p gjson.Result) bool {
		found = append(found, option{id: p.Get("begin").String(), title: p.Get("said").String(),
			server: p.Get("server").String()})
		return true
	})
	b.notePaused(found)
}

// resumePaused handles a sentence that begins or drops paused work, and asks if it is unclear which; false: the
// sentence is none.
func (b *brain) resumePaused(h Heard, text string) ([]Move, bool) {
	for _, p := range pausedPhrases() {
		m := p.form.FindStringSubmatch(plain(text, b.machines))
		if m == nil || p.wish == wishBegin && decisionIn(text) == handoff.DecisionDecline {
			continue
		}
		server := canonical(m[p.form.SubexpIndex("on")], b.machines)
		which := slices.DeleteFunc(slices.Clone(b.paused), func(o option) bool {
			return server != "" && server != o.server
		})
		e := pendingIntent{intent: p.intent}
		switch {
		case len(which) == 0:
			return nil, false
		case len(which) == 1:
			return b.use(h, e, which[0]), true
		}
		return b.ask(e, which), true
	}
	return nil, false
}

// pausedReply handles a plain yes or no to sayPaused; false: the sentence is none. A no leaves the work paused; only
// "drop it" drops it.
func (b *brain) pausedReply(h Heard, text string) ([]Move, bool) {
	if len(b.paused) == 0 || !strings.HasSuffix(b.lastSaid, sayPaused) {
		return nil, false
	}
	switch decisionIn(text) {
	case handoff.DecisionAccept:
		return b.resumePaused(h, "go on")
	case handoff.DecisionDecline:
		return says(sayStaysPaused), true
	}
	return nil, false
}

const sayStaysPaused = "All right, it stays paused. Say go on, or drop it, when you know."
