package simulator

import (
	"fmt"
	"strings"

	"switchboard/servers/responses/wire"
	machines "switchboard/servers/simulator"
)

// declined begins the output of a call that a person declined, interrupted that of an interrupted one.
const (
	declined    = "Error: declined"
	interrupted = "Error: interrupted"
)

// Actor returns the script of the built-in agent of a machine, whose edits write new files. Its answer depends only on
// the history in the request, so it can go on with any history.
func Actor(m machines.Machine) func(Request) Reply {
	return func(req Request) Reply {
		session := machines.NewSession(m)
		p := &actorState{session: session, work: machines.NewWork(session.Plan, session.Learn), seeds: machines.Seeds(m.Name)}
		for _, raw := range req.History {
			p.see(wire.Read(raw))
		}
		p.hear()
		return p.reply(req)
	}
}

// An actorState is the state of a session after its history.
type actorState struct {
	session *machines.Session
	work    *machines.Work
	seeds   []machines.Seed
	prompt  string // new words that are not planned yet
}

// see takes in one item of the history.
func (p *actorState) see(it wire.Item) {
	switch {
	case it.Role == "user":
		p.prompt = it.Text()
	case it.Role == "developer":
	case it.IsOutput():
		p.hear()
		p.given(it.Text())
	default:
		p.hear()
	}
}

// hear plans for new words, if there are any. If the work before them has ended with a question, they may answer it.
func (p *actorState) hear() {
	if p.prompt == "" {
		return
	}
	words, steered, asked := p.prompt, p.work.Acts(), false
	p.prompt = ""
	if !steered { // what it said is said
		for step, more := p.work.Step(); more; step, more = p.work.Step() {
			_, asked = step.(machines.Input)
		}
	}
	for _, s := range p.seeds {
		if s.Turns[len(s.Turns)-1].Prompt == words {
			p.work.Leave()
			p.session.Recall(s.Done...)
			return
		}
	}
	if asked {
		if p.work.Answer(true, words); p.work.Acts() {
			return
		}
	}
	p.work.Hear(machines.Prompt{Text: words, Steered: steered})
}

// given takes in the output of the next call.
func (p *actorState) given(output string) {
	for step, more := p.work.Step(); more; step, more = p.work.Step() {
		switch step.(type) {
		case machines.Ask:
			p.work.Answer(!strings.HasPrefix(output, declined))
		case machines.Run, machines.Edit:
		default:
			continue
		}
		if strings.HasPrefix(output, interrupted) {
			p.work.Leave()
		}
		return
	}
}

// reply returns the steps up to and including the next tool call.
func (p *actorState) reply(req Request) Reply {
	var r Reply
	call := func(name string, args object) {
		r.Items = append(r.Items, Call(fmt.Sprintf("call_%d_%d", len(req.History), len(r.Items)), name, args))
	}
	for step, more := p.work.Step(); more; step, more = p.work.Step() {
		switch s := step.(type) {
		case machines.Think:
			it := Think(s.Text)
			it.For = s.For
			r.Items = append(r.Items, it)
		case machines.Say:
			it := Say(s.Text)
			it.Every = s.Every
			r.Items = append(r.Items, it)
		case machines.Input: // this kind of agent asks in its answer, and goes on at the next turn
			r.Items = append(r.Items, Say(s.Queries[0].Text))
		case machines.Run:
			call("exec", object{"command": s.Command, "dir": nil, "seconds": nil, "outside": nil, "reason": nil})
			return r
		case machines.Ask:
			call("exec", object{"command": s.Command, "dir": nil, "seconds": nil, "outside": true, "reason": s.Reason})
			return r
		case machines.Edit: // one new file
			call("write_file", object{"path": s.Changes[0].Path, "content": s.Changes[0].Diff})
			r.Items[len(r.Items)-1].For = s.For
			return r
		}
	}
	return r
}
