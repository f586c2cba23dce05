package transport

import (
	"context"
	"encoding/json"
	"regexp"

	"switchboard/handoff"
	"switchboard/servers"
)

// An SSHAgent reaches an agent with a line protocol on another machine by ssh. The switchboard there runs the agent,
// so that it outlives the ssh and the next ssh finds it again.
type SSHAgent struct {
	Destination string   `yaml:"ssh"`
	Command     []string `yaml:"command"`
}

// BySSHAgent returns the transport of an agent with a line protocol that is reached by ssh.
func BySSHAgent() servers.Transport {
	t := BySSH()
	t.New = func() servers.Way { return new(SSHAgent) }
	return t
}

// SSH implements [RemoteWay].
func (s *SSHAgent) SSH() *SSH { return &SSH{Destination: s.Destination} }

// Lacks implements [RemoteWay]: the switchboard of the machine starts the agent.
func (s *SSHAgent) Lacks(there There) (program string, fault *handoff.Error) {
	if there.Switchboard != "" {
		return "", nil
	}
	return "switchboard", &handoff.Error{Code: handoff.CodeUnreachable, Reason: handoff.ReasonSwitchboardMissing}
}

// Check implements [servers.Way]. cwd is required, as a directory on that machine has no default.
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

// A Chosen is the first line of input to `switchboard join --stdio --chosen`: the agent to connect to.
type Chosen struct {
	Command []string `json:"command"`
	Apart   bool     `json:"apart,omitempty"` // as in [servers.End]
}

// plainProgram matches names of programs that need no quotes in a script.
var plainProgram = regexp.MustCompile(`^[A-Za-z0-9_./+][A-Za-z0-9_./+-]*$`)

// connectAgent returns the script that connects the standard streams with the switchboard of that machine. program is
// the agent that must be in PATH.
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
