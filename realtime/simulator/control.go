package simulator

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"switchboard/handoff"
	"switchboard/handoff/tools"
)

// controlPatterns are those of sentences about work that was given already, and about the call itself.
type controlPatterns struct {
	queueFirst, queueLast, queueVerb *regexp.Regexp
	stopWork, stopName, stopThere    *regexp.Regexp
	status, less, more, usual        *regexp.Regexp
	aside, askAside                  *regexp.Regexp
}

// controls are compiled when the first sentence is read, and never changed.
var controls = sync.OnceValue(func() *controlPatterns {
	return &controlPatterns{
		queueFirst: pattern(`(?:(?:then|after (?:that|this|it)|afterwards|next,|` + reWhenDone + `)\s*[,:]?\s+)+(?:please )?(.+)$`),
		queueLast:  pattern(`(.+?),? (?:after (?:that|this|it)|afterwards|` + reWhenDone + `)(` + reOn + `)$`),
		queueVerb:  pattern(`(?:queue|enqueue|line up)(?: up)?(?: next)?\s*[:,]?\s+(.+)$`),

		stopWork: pattern(`(?:stop|cancel|abort|halt|kill|interrupt)((?: (?:all|of|the|my|this|your|its|running|current))*) ` +
			`(work|working|jobs?|tasks?|ones?|everything|all|both|it|that|this|them|tests?|benchmarks?|build|push|run)` + reOn + `(?: now| right now)?$`),
		stopName:  pattern(`(?:stop|cancel|abort|halt|interrupt) ` + reName + `$`),
		stopThere: pattern(`(?:stop|cancel|abort|halt)(?: (?:it|that|this|working))?(?: now)?$`),

		status: pattern(`(?:(?:what(?:'s| is| are)|is|are)(?: (?:the )?[^\s,]+)? (?:still )?(?:running|paused|going on|in progress|happening|done|finished|ready|waiting|working|busy|idle|free|doing|up to|doing anything|working on)(?: now| yet| already| right now| at the moment| for me)*` +
			`|what(?:'s| is| are) (?:they|it|everything|all of them|my machines|the machines)(?: all)? (?:doing|working on|up to)(?: now| right now)?` +
			`|how far (?:along )?(?:are|is|along|did) .+|how(?:'s| is| are) (?:it|that|they|things|the work|everything)(?: going| coming along| doing)?` +
			`|(?:what(?:'s| is) the |the |give me (?:a|the) |any )?(?:status|progress|news)(?: update| report)?` +
			`|what(?:'s| is| are)? (?:new|up|the latest)|any(?:thing new|thing running| updates?)|what happened|what (?:happened|did i miss|have i missed)(?: while i was (?:away|gone|out))?|what(?:'s| is| has| have)? (?:failed|finished|ended|gone wrong|went wrong|happened)(?: lately| so far| since)?|(?:is|are) (?:everything|all|you|they|it) (?:all )?(?:ok|okay|fine|good|alright|well)|(?:what(?:'s| is) )?(?:the |a )?(?:status|progress|state)(?: update)? (?:of|on|from|with) [^\s,]+(?: [^\s,]+)?|how(?:'s| is) (?:the |my )?[^\s,]+ (?:doing|going|getting on|coming along)|what about [^\s,]+|what waits(?: for me)?)$`),
		less: pattern(`(?:(?:tell|give|say)(?: me)? )?(?:(?:a (?:bit|little) )?(?:less|fewer)(?: (?:updates?|details?|news|often))*|no (?:more )?updates)$` +
			`|(?:(?:tell|give) me )?(?:only|just)(?: (?:tell|give) me)?(?: about)?(?: the)?(?: final)? (?:results?|outcomes?)$`),
		more:     pattern(`(?:(?:tell|give|say)(?: me)? )?(?:a (?:bit|little) )?more(?: (?:updates?|details?|news|often))*$|keep me (?:posted|updated|informed)$|tell me everything$`),
		aside:    pattern(`(?:(?:just|only) )?(?:(?:a|one|another) )?(?:quick|side|short)(?: side)? question(?: (?:for|to|on) ` + reName + `)?\s*[,:]\s*(.+)$`),
		askAside: pattern(`(?:(?:quickly|on the side|in passing),? (?:ask|check with) ` + reName + `|ask ` + reName + ` (?:quickly|on the side|in passing)),? (.+)$`),
		usual:    pattern(`(?:(?:tell|give) me )?(?:the )?(?:usual|normal)(?: updates)$|tell me as (?:usual|before)$`),
	}
})

// reWhenDone is "when that is done" and what is like it.
const reWhenDone = `(?:when|once|as soon as) (?:that|it|this|they|the work)(?:'s| is| are) (?:all )?(?:done|finished|ready|over|through)`

// takeControl is a sentence about running work or about how much is told.
func takeControl(s string, known map[string]string) (intent, bool) {
	switch {
	case controls().less.MatchString(s):
		return intent{wish: wishUpdates, level: handoff.LevelQuiet}, true
	case controls().more.MatchString(s):
		return intent{wish: wishUpdates, level: handoff.LevelChatty}, true
	case controls().usual.MatchString(s):
		return intent{wish: wishUpdates, level: handoff.LevelMilestones}, true
	case controls().status.MatchString(s):
		return intent{wish: wishStatus}, true
	}
	if in, ok := takeAside(s, known); ok {
		return in, true
	}
	return takeStop(s, known)
}

// takeAside is "quick question for X: which branch is it on": asked beside the work.
func takeAside(s string, known map[string]string) (intent, bool) {
	server, what := "", ""
	if m := controls().aside.FindStringSubmatch(s); m != nil {
		server, what = m[1], m[2]
	} else if m := controls().askAside.FindStringSubmatch(s); m != nil {
		server, what = m[1]+m[2], m[3]
	}
	if what == "" || server != "" && !isMachine(server, known) {
		return intent{}, false
	}
	return intent{wish: wishWork, server: canonical(server, known), work: what, aside: true}, true
}

// takeStop is "stop the work on X" and "stop it". A bare "stop" is none: who says it wants quiet.
func takeStop(s string, known map[string]string) (intent, bool) {
	if m := controls().stopName.FindStringSubmatch(s); m != nil && isKnown(m[1], known) {
		return intent{wish: wishStop, server: canonical(m[1], known)}, true
	}
	m := controls().stopWork.FindStringSubmatch(s)
	if m == nil || m[3] != "" && !isMachine(m[3], known) {
		return intent{}, false
	}
	of, what := strings.ToLower(m[1]), strings.ToLower(m[2])
	in := intent{wish: wishStop, server: canonical(m[3], known)}
	if in.server == "" && (strings.Contains(of, "all") || slices.Contains([]string{"everything", "all", "both", "them"}, what)) {
		in.server = "all"
	}
	return in, true
}

// takeControlOn is what is said to one machine: "tell X to stop", "on X, then do this".
func takeControlOn(server, rest string, known map[string]string) (intent, bool) {
	if controls().stopThere.MatchString(rest) {
		return intent{wish: wishStop, server: server}, true
	}
	in, ok := takeStop(rest, known)
	if !ok {
		in, ok = takeQueue(rest, known)
	}
	if !ok || in.server != "" && in.server != server {
		return intent{}, false
	}
	in.server = server
	return in, true
}

// takeQueue is "then do this" and "after that, do this on X": work behind what runs.
func takeQueue(s string, known map[string]string) (intent, bool) {
	rest, named := "", false
	if m := controls().queueFirst.FindStringSubmatch(s); m != nil {
		rest = m[1]
	} else if m := controls().queueVerb.FindStringSubmatch(s); m != nil {
		rest, named = m[1], true
	} else if m := controls().queueLast.FindStringSubmatch(s); m != nil && startsWork(m[1]) {
		rest = m[1] + m[2]
	}
	if rest == "" {
		return intent{}, false
	}
	in := takeNow(rest, known)
	switch in.wish {
	case wishUnknown:
		if !named {
			return intent{}, false
		}
		in = intent{wish: wishWork, work: rest}
		if m := patterns().trailing.FindStringSubmatch(rest); m != nil && strings.EqualFold(m[2], "on") && isMachine(m[3], known) {
			in.work, in.server = m[1], canonical(m[3], known)
		}
	case wishWork, wishNew, wishContinue:
	default: // "then, which machines do I have": nothing to wait for
		return in, true
	}
	in.next = true
	return in, true
}

// tool is the function that takes the work.
func (in intent) tool() string {
	switch {
	case in.next:
		return tools.QueueNext
	case in.aside:
		return tools.RunOnServer
	}
	return tools.Codex
}
