package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/call"
	"switchboard/handoff/router"
	"switchboard/handoff/tools"
)

// A ladderPlayer performs the lines of a ladder's script, as package call does on a fake fleet.
type ladderPlayer struct {
	t      *testing.T
	world  *ladderWorld
	router *router.Router
	calls  *call.Calls
	work   sync.WaitGroup
	voices []*ladderVoice // open calls, oldest first
	opened int
}

// climb plays a ladder in a world and returns what was said to whom, and how all work ended.
func climb(t *testing.T, words, script []string) []string {
	p := &ladderPlayer{t: t, world: newLadderWorld(t, words)}
	cfg := router.Config{Fleet: p.world, Stickies: p.world, Notifier: p.world, Auditor: p.world, Life: "h", Patience: p.world.patience, Jitter: func(d time.Duration) time.Duration { return d }}
	p.router = router.NewRouter(cfg)
	p.calls = call.New(call.Config{
		Runs: p.router, Attending: p.router, Questions: p.router, Shown: p.router.Shown, Life: "h",
		Tools: tools.Backend{Directory: p.world, Resolver: p.world, Work: p.router},
	})
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = p.router.Run(ctx) })
	for _, line := range script {
		p.perform(line)
	}
	time.Sleep(time.Hour)
	for len(p.voices) > 0 {
		p.hangUp()
	}
	synctest.Wait()
	var ends []string
	for _, rec := range slices.Backward(p.router.Handoffs(rungsGrant)) {
		ends = append(ends, fmt.Sprintf("%s %s %s", rec.ID, rec.State, rec.Outcome))
	}
	stop()
	running.Wait()
	p.work.Wait()
	p.world.stop()
	return append(p.world.said(), "end   "+cmp.Or(strings.Join(ends, ", "), ":"))
}

func (p *ladderPlayer) perform(line string) {
	at, rest, _ := strings.Cut(line, " ")
	ms, err := strconv.Atoi(at)
	if err != nil {
		p.t.Fatalf("a line of a script begins with its millisecond: %q", line)
	}
	time.Sleep(time.Until(p.world.began.Add(time.Duration(ms) * time.Millisecond)))
	verb, rest, _ := strings.Cut(rest, " ")
	first, more, _ := strings.Cut(rest, " ")
	tool, args, _ := strings.Cut(more, " ")
	switch verb {
	case "call":
		p.opened++
		v := &ladderVoice{world: p.world, name: "call " + strconv.Itoa(p.opened), events: make(chan handoff.Event, 64), deaf: rest == "deaf"}
		p.voices = append(p.voices, v)
		if len(p.voices) > 1 {
			p.world.crowded.Store(true)
		}
		p.work.Go(func() { _ = p.calls.Serve(p.t.Context(), rungsGrant, v) })
	case "request":
		p.voice().events <- handoff.FunctionCall{CallID: first, Tool: tool, Arguments: args}
	case "hint":
		p.voice().events <- handoff.Hint{CallID: first, Tool: tool, Partial: args}
	case "heard":
		p.voice().events <- handoff.Heard{Text: rest, Began: time.Now()}
	case "late":
		ms, _ := strconv.Atoi(first)
		p.voice().events <- handoff.Heard{Text: more, Began: p.world.began.Add(time.Duration(ms) * time.Millisecond)}
	case "typed":
		p.voice().events <- handoff.Heard{Text: rest, Typed: true, Began: time.Now()}
	case "spoke":
		p.voice().events <- handoff.Spoke{At: time.Now()}
	case "quiet":
		p.voice().events <- handoff.Quiet{On: rest == "on"}
	case "join":
		p.world.add(rest)
	case "lose":
		p.world.lose(rest)
	case "hangup":
		p.hangUp()
	default:
		p.onPage(verb, rest)
	}
}

// onPage performs what is done on the page.
func (p *ladderPlayer) onPage(verb, rest string) {
	ctx, r := p.t.Context(), p.router
	page := func(what string, text ...any) { p.world.record("page", what, strings.TrimSpace(fmt.Sprint(text...))) }
	first, more, _ := strings.Cut(rest, " ")
	where, prompt, _ := strings.Cut(more, " ")
	switch verb {
	case "stop":
		page("stop", r.Stop(ctx, rungsGrant, rest))
	case "post", "steer":
		p.work.Go(func() {
			req := handoff.Request{Key: first, Input: handoff.TextInput(prompt)}
			var rec handoff.Record
			var err error
			if verb == "post" {
				thread, prompt, _ := strings.Cut(prompt, " ")
				req.Target, req.Input = handoff.Target{Server: where, Thread: strings.Trim(thread, "-")}, handoff.TextInput(prompt)
				rec, err = r.Give(ctx, rungsGrant, req)
			} else {
				rec, err = r.Steer(ctx, rungsGrant, where, req)
			}
			page(verb+" "+first, rec.ID, " ", err)
		})
	case "clear":
		page("clear", rest, " ", r.ClearSticky(ctx, rungsGrant, rest))
	case "decide":
		for _, q := range r.Questions(rungsGrant) {
			page("decide", rest, " ", r.Decide(ctx, rungsGrant, q.ID, handoff.Decision(rest)))
		}
	case "tap":
		for _, q := range r.Questions(rungsGrant) {
			if q.Label == first {
				p.work.Go(func() {
					page("tap "+first, more, " ", r.Decide(ctx, rungsGrant, q.ID, handoff.Decision(more)))
				})
			}
		}
	default:
		p.t.Fatalf("no verb %q", verb)
	}
}

// voice is the newest open call.
func (p *ladderPlayer) voice() *ladderVoice {
	if len(p.voices) == 0 {
		p.t.Fatal("nobody calls")
	}
	return p.voices[len(p.voices)-1]
}

func (p *ladderPlayer) hangUp() {
	v := p.voice()
	p.voices = p.voices[:len(p.voices)-1]
	v.events <- handoff.CallEnded{}
	v.mu.Lock()
	v.ended = true
	close(v.events)
	v.mu.Unlock()
	v.talk.Wait()
}

// A ladderVoice is a call whose voice model says what it is asked to say 200 ms later.
type ladderVoice struct {
	world  *ladderWorld
	name   string
	events chan handoff.Event
	talk   sync.WaitGroup
	deaf   bool // it says nothing

	mu      sync.Mutex
	ended   bool // Guarded by mu
	talking int  // Guarded by mu: utterances under way
}

// Events implements a session of package call.
func (v *ladderVoice) Events() <-chan handoff.Event { return v.events }

// Say implements a session of package call.
func (v *ladderVoice) Say(u handoff.Utterance) {
	v.mu.Lock()
	defer v.mu.Unlock()
	what, spoken := "note", u.Floor == handoff.FloorAsk
	if spoken {
		what = "say"
	}
	if u.CallID != "" {
		what = "answer " + u.CallID + map[handoff.Floor]string{handoff.FloorUnlessSpoke: " early"}[u.Floor]
	}
	if v.world.crowded.Load() {
		what = v.name + ", " + what
	}
	if v.ended {
		what += " (the call has ended)"
	}
	v.world.record("say", what, u.Text)
	if v.ended || v.deaf {
		return
	}
	v.talk.Go(func() { v.speak(u.ID, spoken) })
}

// speak takes the time of words that are said.
func (v *ladderVoice) speak(id string, spoken bool) {
	time.Sleep(10 * time.Millisecond)
	v.mu.Lock()
	if spoken && !v.ended {
		v.talking++
		v.events <- handoff.Quiet{On: false}
	}
	v.mu.Unlock()
	time.Sleep(190 * time.Millisecond)
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.ended {
		return
	}
	v.events <- handoff.Said{ID: id, At: time.Now()}
	if spoken {
		if v.talking--; v.talking == 0 {
			v.events <- handoff.Quiet{On: true}
		}
	}
}

// inOrder sorts lines of a ladder. What happens in one millisecond has no order.
func inOrder(lines []string) []string {
	slices.SortStableFunc(lines, func(a, b string) int {
		return cmp.Or(cmp.Compare(millisecond(a), millisecond(b)), cmp.Compare(a, b))
	})
	return lines
}

// millisecond is when a line of a ladder was; the last ones have none.
func millisecond(line string) int {
	ms, err := strconv.Atoi(strings.Fields(line)[0])
	if err != nil {
		return 1 << 40
	}
	return ms
}
