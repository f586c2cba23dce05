package calltest

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/homes"
	"switchboard/handoff/router"
)

// Calls serves calls.
type Calls interface {
	Serve(ctx context.Context, g *handoff.Grant, v handoff.Voice) error
}

// A Player performs the lines of a ladder's script. It plays the caller, the page and the operator of the process.
type Player struct {
	World *World // Set once
	// Set once: makes a life of the router, and what serves its calls. An earlier life may go on, like a process that
	// was suspended.
	NewLife func(life string) (*homes.Homes, Calls)
	// Set once: called with the works whose outcome a voice model will say; may be nil
	Told func(call string, works []string)
	// Set once: called with the work that an answer promises; may be nil
	Promised func(call, work string)
	Router   *homes.Homes // the newest life

	calls     Calls           // of that life
	ctx       context.Context // of the process
	shutdown  context.CancelCauseFunc
	work      sync.WaitGroup // routers, calls, and what the page waits for
	voices    []*Voice       // open calls, oldest first
	callCount int
	programs  int       // how often a program told an outcome
	asked     time.Time // when the words of the caller ended that the newest request follows
}

// Begin starts a process, with a life of the router.
func (p *Player) Begin(life string) {
	p.ctx, p.shutdown = context.WithCancelCause(p.World.T.Context())
	p.beginLife(life)
}

func (p *Player) beginLife(life string) {
	r, calls := p.NewLife(life)
	p.Router, p.calls = r, calls
	ctx := p.ctx
	p.work.Go(func() { _ = r.Run(ctx) })
}

// End waits a fake hour for open work to end, then hangs up all calls and ends the process.
func (p *Player) End() {
	time.Sleep(time.Hour)
	p.hangUpAll()
	synctest.Wait()
	p.shutdown(nil)
	p.work.Wait()
}

func (p *Player) hangUpAll() {
	for len(p.voices) > 0 {
		p.HangUp()
	}
}

// Play performs a script in a process and returns the ladder.
func (p *Player) Play(script []string) string {
	p.Begin("h")
	for _, line := range script {
		p.Perform(p.next(line))
	}
	p.End()
	p.World.Record("end", "", p.summary())
	p.World.Record("end", "", "ledger: "+p.World.Ledger.summary())
	return p.World.Ladder()
}

// next waits for the millisecond of a line, and returns the rest of it.
func (p *Player) next(line string) (verb, rest string) {
	at, rest, _ := strings.Cut(line, " ")
	ms, err := strconv.Atoi(at)
	if err != nil {
		p.World.T.Fatalf("a line of a script begins with its millisecond: %q", line)
	}
	time.Sleep(time.Until(p.World.Began.Add(time.Duration(ms) * time.Millisecond)))
	verb, rest, _ = strings.Cut(rest, " ")
	return verb, rest
}

// Perform performs a line of a script, without its millisecond.
func (p *Player) Perform(verb, rest string) {
	first, more, _ := strings.Cut(rest, " ")
	tool, args, _ := strings.Cut(more, " ")
	switch verb {
	case "call":
		p.Call(rest == "deaf")
	case "request", "unasked", "further": // in a response that no words of the caller asked for; that the last words did
		who, asked := "model", time.Now()
		switch verb {
		case "unasked":
			who, asked = "model, unasked", time.Time{}
		case "further":
			who, asked = "model, further", p.asked
		default:
			p.asked = asked
		}
		p.World.Record("call", who, fmt.Sprintf("%s %s%s", first, tool, args))
		p.voice().events <- handoff.FunctionCall{CallID: first, Tool: tool, Arguments: args, Asked: asked}
	case "replies": // to the sentence that began then
		call, tool, _ := strings.Cut(more, " ")
		tool, args, _ := strings.Cut(tool, " ")
		p.asked = time.Now()
		p.World.Record("call", "model", fmt.Sprintf("%s %s%s", call, tool, args))
		began := p.World.Began.Add(p.World.Duration(first + "ms"))
		p.voice().events <- handoff.FunctionCall{CallID: call, Tool: tool, Arguments: args, Asked: p.asked, Began: began}
	case "hint":
		p.World.Record("call", "model writes", fmt.Sprintf("%s %s%s", first, tool, args))
		p.voice().events <- handoff.Hint{CallID: first, Tool: tool, Partial: args}
	case "heard":
		p.voice().events <- handoff.Heard{Text: rest, Began: time.Now()}
	case "lost": // they said something of which there is no transcript
		p.voice().events <- handoff.Heard{Lost: true, Began: time.Now()}
	case "late": // a transcript of what began earlier
		p.voice().events <- handoff.Heard{Text: more, Began: p.World.Began.Add(p.World.Duration(first + "ms"))}
	case "typed", "interrupts": // in writing, the latter while the voice is heard
		p.voice().events <- handoff.Heard{Text: rest, Typed: true, Into: verb == "interrupts", Began: time.Now()}
	case "voiced": // the voice says something of its own
		p.voice().events <- handoff.Voiced{Text: rest, From: time.Now()}
	case "spoke":
		p.voice().events <- handoff.Spoke{At: time.Now()}
	case "quiet":
		p.voice().events <- handoff.Quiet{On: rest == "on"}
	case "said", "cut": // what a deaf voice was given last
		p.voice().confirm(verb == "cut", rest)
	case "unsaid": // the model reads it and says nothing
		p.voice().keepSilent()
	case "lose":
		p.World.lose(rest)
	case "hangup":
		p.HangUp()
	default:
		p.performOnPage(verb, rest)
	}
}

// performOnPage performs lines for the page and for programs of the caller.
func (p *Player) performOnPage(verb, rest string) {
	ctx, r := p.World.T.Context(), p.Router
	page := func(what string, text ...any) { p.World.Record("page", what, strings.TrimSpace(fmt.Sprint(text...))) }
	first, more, _ := strings.Cut(rest, " ")
	switch verb {
	case "stop":
		page("stop", r.Stop(ctx, Grant, rest, handoff.StopOurs))
	case "begin": // what is paused
		p.work.Go(func() {
			rec, err := r.Give(ctx, Grant, handoff.Request{Key: "begin " + rest, Instead: handoff.ID(rest)})
			if err == nil && p.Told != nil { // the page showed that it was not begun
				p.Told("page", []string{rest})
			}
			page("begin "+rest, rec.ID, " ", err)
		})
	case "post", "steer":
		p.work.Go(func() {
			rec, err := p.give(r, verb == "steer", first, more)
			if (err != nil || rec.Outcome != "") && rec.ID != "" && p.Told != nil { // whoever asked is told, and nobody else
				p.Told("page", []string{rec.ID})
			}
			page(verb+" "+first, rec.ID, " ", err)
		})
	case "told": // a program of the caller's told them the outcome
		p.programs++
		program := "program " + strconv.Itoa(p.programs) // each time another one, which may tell the same
		p.work.Go(func() {
			rec, err := r.Handoff(Grant, rest)
			if err != nil || rec.Outcome == "" {
				page("told", rest, " nothing")
				return
			}
			if p.Told != nil {
				p.Told(program, []string{rest})
			}
			page("told", rest, " ", r.HeardForGood(ctx, Grant, handoff.ID(rest)))
		})
	case "clear":
		page("clear", rest, " ", r.ClearSticky(ctx, Grant, rest))
	case "decide": // every open question
		for _, q := range r.Questions(Grant) {
			page("decide", rest, " ", r.Decide(ctx, Grant, q.ID, handoff.Decision(rest)))
		}
	case "write":
		for _, q := range r.Questions(Grant) {
			page("write", rest, " ", r.Reply(ctx, Grant, q.ID, handoff.Reply{Words: strings.ReplaceAll(rest, "|", "\n")}))
		}
	case "tap": // one question, beside what goes on
		for _, q := range r.Questions(Grant) {
			if q.Label == first {
				p.work.Go(func() {
					page("tap "+first, more, " ", r.Decide(ctx, Grant, q.ID, handoff.Decision(more)))
				})
			}
		}
	case "looks": // at the page, which shows what is open
		l, _, _ := r.Feed(Grant).Listen(0)
		l.MarkPage()
		p.World.T.Cleanup(l.Stop)
		page("caller", "looks at it")
	case "page":
		p.shows()
	default:
		p.performOnProcess(verb, rest)
	}
}

// shows records the work that the page shows.
func (p *Player) shows() {
	all, _ := p.Router.Handoffs(Grant)
	for _, rec := range slices.Backward(all) {
		if rec.Waits != "" {
			p.World.Record("page", rec.ID+" waits", string(rec.State)+" after "+rec.Waits)
		}
		for _, it := range rec.Items {
			p.World.Record("page", rec.ID+" shows", fmt.Sprintf("%s %q %s", it.Kind, it.Text, it.State))
		}
	}
}

// performOnProcess performs lines for the process, its store and its machines.
func (p *Player) performOnProcess(verb, rest string) {
	process := func(what string) { p.World.Record("call", "process", what) }
	switch verb {
	case "life":
		process("another life begins")
		p.beginLife(rest)
	case "left":
		p.World.Ledger.leave(strings.Fields(rest))
	case "join":
		p.World.Join(rest)
	case "shutdown":
		process("ends")
		p.World.Closing.Store(true)
		p.shutdown(nil)
	case "restart": // calls end with the process
		process("ends")
		p.World.Closing.Store(true)
		p.hangUpAll()
		p.shutdown(nil)
		p.work.Wait()
		p.World.Closing.Store(false)
		p.Begin(rest)
	case "move":
		process("gives the caller another home")
		p.shutdown(router.ErrMoved)
		synctest.Wait()
		p.Begin(rest)
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
	p.callCount++
	v := newVoice(p.World, "call "+strconv.Itoa(p.callCount), deaf)
	v.told, v.promises = p.Told, p.Promised
	p.voices = append(p.voices, v)
	if len(p.voices) > 1 {
		p.World.crowded.Store(true)
	}
	p.World.Record("call", "caller", "calls")
	calls := p.calls
	p.work.Go(func() { _ = calls.Serve(p.World.T.Context(), &Grant, v) })
}

// voice returns the newest open call.
func (p *Player) voice() *Voice {
	if len(p.voices) == 0 {
		p.World.T.Fatal("nobody calls")
	}
	return p.voices[len(p.voices)-1]
}

// HangUp ends the newest open call.
func (p *Player) HangUp() {
	v := p.voice()
	p.voices = p.voices[:len(p.voices)-1]
	p.World.Record("call", "caller", "hangs up")
	v.events <- handoff.CallEnded{}
	v.end()
}

// summary returns the state of all works at the end.
func (p *Player) summary() string {
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
