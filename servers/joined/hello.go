package joined

import (
	"regexp"
	"slices"

	"switchboard/handoff"
	"switchboard/servers"
)

// A hello is the first message of a machine.
type hello struct {
	Secret []byte `json:"secret,omitempty"` // of the invitation that it joins with; nil: it has joined
	Name   string `json:"name,omitempty"`   // of the machine, as the service said last; "": not known yet
	Leave  bool   `json:"leave,omitempty"`  // it wants to be forgotten
	About  About  `json:"about"`
}

// A welcome is the service's answer to a hello.
type welcome struct {
	Name    string  `json:"name,omitempty"`    // of the machine now
	Refused Refusal `json:"refused,omitempty"` // "": it is let in
}

// A Refusal is the reason why a machine is not let in.
type Refusal string

// Reasons why a machine is not let in.
const (
	RefusedKey    Refusal = "unknown key"          // the machine never joined, or was removed
	RefusedCode   Refusal = "used or unknown code" // or it is older than [InvitationLife]
	RefusedName   Refusal = "another machine's name"
	RefusedTwice  Refusal = "joined already"   // under another name than the invitation's
	RefusedAgents Refusal = "names that clash" // with those of other machines
	RefusedForNow Refusal = "not now"          // the store does not answer, or too many machines come at once
)

// Error implements error. The text is a sentence for the person at the machine.
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

// Final reports whether trying again is useless.
func (r Refusal) Final() bool { return r != RefusedForNow }

// An Opening is the first message on a stream to an agent. The machine answers with an opened.
type (
	Opening struct {
		Agent string `json:"agent"`           // its name
		Apart bool   `json:"apart,omitempty"` // the connection only reads, beside the one that works
	}
	opened struct {
		Error  string         `json:"error,omitempty"` // "": from here on the stream is the agent's
		Reason handoff.Reason `json:"reason,omitempty"`
	}
)

// About is what a machine reports about itself.
type About struct {
	Version string  `json:"version,omitempty"` // of Switchboard there
	Host    string  `json:"host,omitempty"`    // its host name
	System  string  `json:"system,omitempty"`  // such as linux/amd64
	Agents  []Agent `json:"agents"`            // at most maxAgents
	Ceiling string  `json:"ceiling,omitempty"` // the loosest sandbox that its owner allows; "": any
	Answers bool    `json:"answers"`           // questions of agents may be answered through the line
	Live    Live    `json:"live"`
}

// owner returns what the machine's owner lets the service do.
func (a About) owner() servers.Owner { return servers.Owner{Ceiling: a.Ceiling, NoAnswers: !a.Answers} }

// Live are the facts about a machine that change while it is up.
type Live struct {
	DiskFree int64 `json:"disk_free,omitempty"` // in bytes, where its agents work; 0: not known
	Battery  int   `json:"battery,omitempty"`   // in percent; 0: it has none, or it is not known
	Charging bool  `json:"charging,omitempty"`
}

// An Agent is an agent that is installed on a machine.
type Agent struct {
	Name    string `json:"name"` // such as codex
	Kind    string `json:"kind"` // codex or acp
	Version string `json:"version,omitempty"`
	Dir     string `json:"dir,omitempty"`  // of new sessions
	Mode    string `json:"mode,omitempty"` // of kind acp: the mode of its sessions; "": one that asks
}

// Bounds of an About.
const (
	maxAgents = 8
	maxText   = 200 // bytes of a string
)

var agentName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,31}$`)

// IsAgentName reports whether an agent may have a name: at most 32 of a-z 0-9 -, beginning with a letter or digit.
func IsAgentName(name string) bool { return agentName.MatchString(name) }

// bounded returns an About without what is out of bounds.
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
