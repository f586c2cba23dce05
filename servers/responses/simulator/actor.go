package simulator

import (
	"fmt"
	"slices"
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
		p := &actorState{Session: machines.NewSession(m), seeds: machines.Seeds(m.Name)}
		for _, raw := range req.History {
			p.see(wire.Read(raw))
		}
		p.hear()
		return p.reply(req)
	}
}

// An actorState is the state of a session after its history.
type actorState struct {
	*machines.Session
	seeds  []machines.Seed
	prompt string                                 // new words that are not planned yet
	steps  []machines.Step                        // steps that are left of the prompt before
	awaits func(answers []string) []machines.Step // plans for the answer to an open question; nil for none
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

// hear plans for new words, if there are any.
func (p *actorState) hear() {
	if p.prompt == "" {
		return
	}
	steered := slices.ContainsFunc(p.steps, acts)
	if !steered {
		p.learn(p.steps)
	}
	prompt, awaits := p.prompt, p.awaits
	p.prompt, p.steps, p.awaits = "", nil, nil
	for _, s := range p.seeds {
		if s.Turns[len(s.Turns)-1].Prompt == prompt {
			p.Recall(s.Done...)
			return
		}
	}
	if awaits != nil {
		if p.steps = awaits([]string{prompt}); slices.ContainsFunc(p.steps, acts) {
			return
		}
	}
	p.steps = p.Plan(prompt, steered)
}

// given takes in the output of the next call.
func (p *actorState) given(output string) {
	i := slices.IndexFunc(p.steps, acts)
	if i < 0 {
		return
	}
	step := p.steps[i]
	p.learn(p.steps[:i])
	p.steps = p.steps[i+1:]
	if strings.HasPrefix(output, interrupted) {
		p.steps = nil
		return
	}
	if ask, ok := step.(machines.Ask); ok {
		then := ask.Accepted
		if strings.HasPrefix(output, declined) {
			then = ask.Declined
		}
		p.steps = slices.Concat(then, p.steps)
	}
}

// learn applies steps that are done. If they end with a question, it is open.
func (p *actorState) learn(steps []machines.Step) {
	for _, s := range steps {
		switch s := s.(type) {
		case machines.Effect:
			p.Learn(s.Fact)
		case machines.Input:
			p.awaits = s.Answered
		}
	}
}

// acts reports whether a step is a tool call.
func acts(s machines.Step) bool {
	switch s.(type) {
	case machines.Run, machines.Edit, machines.Ask:
		return true
	}
	return false
}

// reply returns the steps up to and including the next tool call.
func (p *actorState) reply(req Request) Reply {
	var r Reply
	call := func(name string, args object) {
		r.Items = append(r.Items, Call(fmt.Sprintf("call_%d_%d", len(req.History), len(r.Items)), name, args))
	}
	for _, step := range p.steps {
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
