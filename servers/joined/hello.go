package joined

import (
	"regexp"
	"slices"

	"switchboard/handoff"
)

// A hello is what a machine says first.
type hello struct {
	Secret []byte `json:"secret,omitempty"` // of the invitation that it joins with; nil: it has joined
	Name   string `json:"name,omitempty"`   // as it was told it is called; "": it was not told yet
	Leave  bool   `json:"leave,omitempty"`  // it wants to be forgotten
	About  About  `json:"about"`
}

// A welcome is what it is answered.
type welcome struct {
	Name    string  `json:"name,omitempty"`    // what it is called now
	Refused Refusal `json:"refused,omitempty"` // "": it is not
}

// A Refusal is why a machine is not let in.
type Refusal string

// Why a machine is not let in.
const (
	RefusedKey    Refusal = "unknown key"          // no machine has it: it never joined, or it was removed
	RefusedCode   Refusal = "used or unknown code" // also one that is older than ten minutes
	RefusedName   Refusal = "another machine's name"
	RefusedTwice  Refusal = "joined already"   // under another name than the invitation's
	RefusedAgents Refusal = "names that clash" // with those of other machines
	RefusedForNow Refusal = "not now"          // the store does not answer, or too many come at once
)

// Error implements error, in a sentence for whoever sits at the machine.
func (r Refusal) Error() string {
	switch r {
	case RefusedKey:
		return "that Switchboard does not know this machine: it was removed there, or never joined"
	case RefusedCode:
		return "that invitation was used, or is older than ten minutes; `switchboard invite` makes another one"
	case RefusedName:
		return "another machine has that name"
	case RefusedTwice:
		return "this machine has joined that Switchboard under another name; `switchboard leave` ends that"
	case RefusedAgents:
		return "what runs here would have the name of another machine there"
	}
	return "that Switchboard cannot take it now"
}

// Final reports whether to ask again changes nothing.
func (r Refusal) Final() bool { return r != RefusedForNow }

// An Opening is what a stream to an agent begins with, and an opened what the machine answers.
type (
	Opening struct {
		Agent string `json:"agent"`           // its name
		Apart bool   `json:"apart,omitempty"` // it only reads, beside the connection that works
	}
	opened struct {
		Error  string         `json:"error,omitempty"` // "": from here on the stream is the agent's
		Reason handoff.Reason `json:"reason,omitempty"`
	}
)

// About is what a machine tells about itself.
type About struct {
	Version string  `json:"version,omitempty"` // of Switchboard there
	Host    string  `json:"host,omitempty"`    // what it calls itself
	System  string  `json:"system,omitempty"`  // such as linux/amd64
	Agents  []Agent `json:"agents"`            // at most maxAgents
	Ceiling string  `json:"ceiling,omitempty"` // the loosest sandbox that its owner allows; "": any
	Answers bool    `json:"answers"`           // what agents ask may be answered from elsewhere
	Live    Live    `json:"live"`
}

// Live is what changes while a machine is up.
type Live struct {
	DiskFree int64 `json:"disk_free,omitempty"` // bytes where its agents work; 0: it does not tell
	Battery  int   `json:"battery,omitempty"`   // percent; 0: it has none, or does not tell
	Charging bool  `json:"charging,omitempty"`
}

// An Agent is what runs on a machine and does work.
type Agent struct {
	Name    string `json:"name"` // such as codex
	Kind    string `json:"kind"` // codex or acp
	Version string `json:"version,omitempty"`
	Dir     string `json:"dir,omitempty"`  // of new sessions
	Mode    string `json:"mode,omitempty"` // of kind acp: that its sessions are in; "": one that asks
}

// Bounds of what a machine tells.
const (
	maxAgents = 8
	maxText   = 200 // bytes of a text
)

var agentName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,31}$`)

// IsAgentName reports whether an agent may be called so: at most 32 of a-z 0-9 -, beginning with a letter or figure.
func IsAgentName(name string) bool { return agentName.MatchString(name) }

// bounded keeps of what a machine tells what is in bounds.
func (a About) bounded() About {
	for _, text := range []*string{&a.Version, &a.Host, &a.System, &a.Ceiling} {
		*text = handoff.Clip(*text, maxText)
	}
	seen := map[string]bool{}
	a.Agents = slices.DeleteFunc(slices.Clone(a.Agents), func(one Agent) bool {
		bad := !agentName.MatchString(one.Name) || seen[one.Name]
		seen[one.Name] = true
		return bad
	})
	a.Agents = a.Agents[:min(len(a.Agents), maxAgents)]
	for i := range a.Agents {
		a.Agents[i].Version = handoff.Clip(a.Agents[i].Version, maxText)
		a.Agents[i].Dir = handoff.Clip(a.Agents[i].Dir, maxText)
		a.Agents[i].Mode = handoff.Clip(a.Agents[i].Mode, maxText)
	}
	return a
}
