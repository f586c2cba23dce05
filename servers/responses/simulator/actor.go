package simulator

import (
	"fmt"
	"slices"
	"strings"

	"switchboard/servers/responses/wire"
	machines "switchboard/servers/simulator"
)

// declined begins what an agent is told when a person said no, interrupted when the work was.
const (
	declined    = "Error: declined"
	interrupted = "Error: interrupted"
)

// Actor returns the script of the built-in agent of a machine, whose edits write new files. What it does next follows
// from the history that it is sent, and from nothing else: it goes on wherever that is sent to it.
func Actor(m machines.Machine) func(Request) Reply {
	return func(req Request) Reply {
		p := &part{Session: machines.NewSession(m), seeds: machines.Seeds(m.Name)}
		for _, raw := range req.History {
			p.see(wire.Read(raw))
		}
		p.hear()
		return p.reply(req)
	}
}

// A part is what the agent does in a session, as far as its history goes.
type part struct {
	*machines.Session
	seeds  []machines.Seed
	prompt string          // said and not yet planned for
	steps  []machines.Step // that are left of the prompt before
	awaits func(answers []string) []machines.Step
}

// see goes on by one item of the history.
func (p *part) see(it wire.Item) {
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

// hear plans for the prompt.
func (p *part) hear() {
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

// given takes what the next call that is waited for gave back.
func (p *part) given(output string) {
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

// learn makes true what steps say that were done. The question at their end, if there is one, is open.
func (p *part) learn(steps []machines.Step) {
	for _, s := range steps {
		switch s := s.(type) {
		case machines.Effect:
			p.Learn(s.Fact)
		case machines.Input:
			p.awaits = s.Answered
		}
	}
}

// acts reports whether a step is a call of a tool.
func acts(s machines.Step) bool {
	switch s.(type) {
	case machines.Run, machines.Edit, machines.Ask:
		return true
	}
	return false
}

// reply says the steps up to the next call, and makes that call.
func (p *part) reply(req Request) Reply {
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
		case machines.Input: // an agent of this kind asks with its answer, and goes on with the next words
			r.Items = append(r.Items, Say(s.Queries[0].Text))
		case machines.Run:
			call("exec", object{"command": s.Command, "dir": nil, "seconds": nil, "outside": nil, "reason": nil})
			return r
		case machines.Ask:
			call("exec", object{"command": s.Command, "dir": nil, "seconds": nil, "outside": true, "reason": s.Reason})
			return r
		case machines.Edit: // of one file, which is new
			call("write_file", object{"path": s.Changes[0].Path, "content": s.Changes[0].Diff})
			r.Items[len(r.Items)-1].For = s.For
			return r
		}
	}
	return r
}
