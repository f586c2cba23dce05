package transport

import (
	"context"
	"encoding/json"
	"regexp"

	"switchboard/servers"
)

// An SSHAgent reaches an agent that speaks in lines on another machine by ssh. Our own program there keeps it: the
// agent outlives the ssh, and is found again by the next one.
type SSHAgent struct {
	Destination string   `yaml:"ssh" doc:"destination of ssh, such as me@mini.local or a name of ~/.ssh/config; switchboard must be installed there"`
	Command     []string `yaml:"command" doc:"with ssh: program and arguments of the agent on that machine, such as [claude-agent-acp]; its keys stand in machine.yaml there; or"`
}

// BySSHAgent is the transport of an agent that speaks in lines and is reached by ssh.
func BySSHAgent() servers.Transport {
	t := BySSH()
	t.New = func() servers.Way { return new(SSHAgent) }
	return t
}

// SSH is how its machine is reached.
func (s *SSHAgent) SSH() *SSH { return &SSH{Destination: s.Destination} }

// Check implements [servers.Way]. The directory of its sessions is one of that machine, and nobody else names one.
func (s *SSHAgent) Check(to servers.Report, files servers.Files) {
	s.SSH().Check(to, files)
	if len(s.Command) == 0 {
		to.Bad("command", "names no program: the agent's on that machine, such as [claude-agent-acp]")
	}
	if !to.IsSet("cwd") {
		to.Bad("cwd", "is missing: the directory on that machine in which sessions are made")
	}
}

// Describe implements [servers.Way].
func (s *SSHAgent) Describe(spec *servers.Spec) { s.SSH().Describe(spec) }

// A Chosen is the first line to `switchboard join --stdio --chosen`: the agent that is asked for.
type Chosen struct {
	Command []string `json:"command"`
	Apart   bool     `json:"apart,omitempty"` // as in [servers.End]
}

// plainProgram matches the name of a program that needs no quotes in a script.
var plainProgram = regexp.MustCompile(`^[A-Za-z0-9_./+][A-Za-z0-9_./+-]*$`)

// connectAgent connects the standard streams with the agent of that machine that our own program there is told.
func connectAgent(program string) string {
	script := findThere
	if plainProgram.MatchString(program) {
		script += `has switchboard && has ` + program + ` || `
	}
	return script + loginThere + `has switchboard || exit 66; exec switchboard join --stdio --chosen`
}

// Open implements [servers.Way].
func (s *SSHAgent) Open(ctx context.Context, end servers.End) (servers.Wire, error) {
	first, err := json.Marshal(Chosen{s.Command, end.Apart})
	if err != nil {
		return nil, servers.DialFault(end.Server, err)
	}
	program := ""
	if len(s.Command) > 0 {
		program = s.Command[0]
	}
	conn, err := s.SSH().run(ctx, end, program, connectAgent(program), append(first, '\n'))
	if err != nil {
		return nil, err
	}
	return LinesOver(conn), nil
}
