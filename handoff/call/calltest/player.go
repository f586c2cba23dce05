package calltest

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/homes"
)

// A Player performs the lines of a ladder's script.
type Player struct {
	World  *World                                                    // Set once
	Router *homes.Homes                                              // the newest life
	Serve  func(context.Context, handoff.Grant, handoff.Voice) error // of that life: carries a call
	Record func(column, what, text string)                           // Set once: takes what happens
	// Set once: takes what a voice model will say; nil: nobody does
	Said func(call string, works []string)
	Work sync.WaitGroup // the calls, and what the page waits for
	// Set once: takes the work that an answer promises; nil: nobody does
	Vows   func(call, work string)
	voices []*Voice // open calls, oldest first
	opened int
	told   int // how often a program told an outcome
}

// Next waits for the millisecond of a line, and returns the rest of it.
func (p *Player) Next(line string) (verb, rest string) {
	at, rest, _ := strings.Cut(line, " ")
	ms, err := strconv.Atoi(at)
	if err != nil {
		p.World.T.Fatalf("a line of a script begins with its millisecond: %q", line)
	}
	time.Sleep(time.Until(p.World.Began.Add(time.Duration(ms) * time.Millisecond)))
	verb, rest, _ = strings.Cut(rest, " ")
	return verb, rest
}

// Perform does what a line says.
func (p *Player) Perform(verb, rest string) {
	first, more, _ := strings.Cut(rest, " ")
	tool, args, _ := strings.Cut(more, " ")
	switch verb {
	case "call":
		p.Call(rest == "deaf")
	case "request":
		p.Record("call", "model", fmt.Sprintf("%s %s%s", first, tool, args))
		p.Voice().events <- handoff.FunctionCall{CallID: first, Tool: tool, Arguments: args}
	case "hint":
		p.Record("call", "model writes", fmt.Sprintf("%s %s%s", first, tool, args))
		p.Voice().events <- handoff.Hint{CallID: first, Tool: tool, Partial: args}
	case "heard":
		p.Voice().events <- handoff.Heard{Text: rest, Began: time.Now()}
	case "lost": // they said something of which there is no transcript
		p.Voice().events <- handoff.Heard{Lost: true, Began: time.Now()}
	case "late": // a transcript of what began earlier
		p.Voice().events <- handoff.Heard{Text: more, Began: p.World.Began.Add(p.World.Duration(first + "ms"))}
	case "typed", "interrupts": // in writing, the latter while the voice is heard
		p.Voice().events <- handoff.Heard{Text: rest, Typed: true, Into: verb == "interrupts", Began: time.Now()}
	case "spoke":
		p.Voice().events <- handoff.Spoke{At: time.Now()}
	case "quiet":
		p.Voice().events <- handoff.Quiet{On: rest == "on"}
	case "said", "cut": // what a deaf voice was given last
		p.Voice().confirm(verb == "cut", rest)
	case "unsaid": // the model reads it and says nothing
		p.Voice().keepsSilent()
	case "lose":
		p.World.lose(rest)
	case "hangup":
		p.HangUp()
	default:
		p.onPage(verb, rest)
	}
}

// onPage performs what is done on the page.
func (p *Player) onPage(verb, rest string) {
	ctx, r := p.World.T.Context(), p.Router
	page := func(what string, text ...any) { p.Record("page", what, strings.TrimSpace(fmt.Sprint(text...))) }
	first, more, _ := strings.Cut(rest, " ")
	switch verb {
	case "stop":
		page("stop", r.Stop(ctx, Grant, rest))
	case "begin": // what is paused
		p.Work.Go(func() {
			rec, err := r.Give(ctx, Grant, handoff.Request{Key: "begin " + rest, Instead: handoff.RunID(rest)})
			page("begin "+rest, rec.ID, " ", err)
		})
	case "post", "steer":
		p.Work.Go(func() {
			rec, err := p.give(r, verb == "steer", first, more)
			if (err != nil || rec.Outcome != "") && rec.ID != "" && p.Said != nil { // whoever asked is told, and nobody else
				p.Said("page", []string{rec.ID})
			}
			page(verb+" "+first, rec.ID, " ", err)
		})
	case "told": // a program of the caller's told them the outcome
		p.told++
		program := "program " + strconv.Itoa(p.told) // each time another one, which may tell the same
		p.Work.Go(func() {
			rec, err := r.Handoff(Grant, rest)
			if err != nil || rec.Outcome == "" {
				page("told", rest, " nothing")
				return
			}
			if p.Said != nil {
				p.Said(program, []string{rest})
			}
			page("told", rest, " ", r.HeardForGood(ctx, Grant.Caller, handoff.RunID(rest)))
		})
	case "clear":
		page("clear", rest, " ", r.ClearSticky(ctx, Grant, rest))
	case "decide": // every open question
		for _, q := range r.Questions(Grant) {
			page("decide", rest, " ", r.Decide(ctx, Grant, q.ID, handoff.Decision(rest)))
		}
	case "write":
		for _, q := range r.Questions(Grant) {
			page("write", rest, " ", r.Reply(ctx, Grant, q.ID, rest))
		}
	case "tap": // one question, beside what goes on
		for _, q := range r.Questions(Grant) {
			if q.Label == first {
				p.Work.Go(func() {
					page("tap "+first, more, " ", r.Decide(ctx, Grant, q.ID, handoff.Decision(more)))
				})
			}
		}
	default:
		p.World.T.Fatalf("no verb %q", verb)
	}
}

// give gives a life of the router work without a call: SERVER THREAD PROMPT..., or, as more words, WORK PROMPT...
func (p *Player) give(r *homes.Homes, steer bool, key, what string) (handoff.Record, error) {
	ctx := p.World.T.Context()
	where, prompt, _ := strings.Cut(what, " ")
	if steer {
		return r.Steer(ctx, Grant, where, handoff.Request{Key: key, Input: handoff.TextInput(prompt)})
	}
	thread, prompt, _ := strings.Cut(prompt, " ")
	target := handoff.Target{Server: where, Thread: strings.Trim(thread, "-")}
	return r.Give(ctx, Grant, handoff.Request{Key: key, Target: target, Input: handoff.TextInput(prompt)})
}

// Call begins a call. A deaf voice model says nothing.
func (p *Player) Call(deaf bool) {
	p.opened++
	v := newVoice(p.World, "call "+strconv.Itoa(p.opened), deaf, p.Record)
	v.said, v.vows = p.Said, p.Vows
	p.voices = append(p.voices, v)
	if len(p.voices) > 1 {
		p.World.crowded.Store(true)
	}
	p.Record("call", "caller", "calls")
	serve := p.Serve
	p.Work.Go(func() { _ = serve(p.World.T.Context(), Grant, v) })
}

// Voice is the newest open call.
func (p *Player) Voice() *Voice {
	if len(p.voices) == 0 {
		p.World.T.Fatal("nobody calls")
	}
	return p.voices[len(p.voices)-1]
}

// HangUp ends the newest open call.
func (p *Player) HangUp() {
	v := p.Voice()
	p.voices = p.voices[:len(p.voices)-1]
	p.Record("call", "caller", "hangs up")
	v.events <- handoff.CallEnded{}
	v.end()
}

// End lets whatever is under way end in a fake hour, and hangs up.
func (p *Player) End() {
	time.Sleep(time.Hour)
	p.HangUpAll()
}

// HangUpAll ends the open calls.
func (p *Player) HangUpAll() {
	for len(p.voices) > 0 {
		p.HangUp()
	}
}

// Summary is what the page shows at the end.
func (p *Player) Summary() string {
	var out []string
	all, _ := p.Router.Handoffs(Grant)
	for _, rec := range slices.Backward(all) {
		line := fmt.Sprintf("%s %s %s", rec.ID, rec.State, rec.Outcome)
		if rec.Into != "" {
			line += " into " + rec.Into
		}
		out = append(out, line)
	}
	return strings.Join(out, ", ")
}
