package main

import (
	"slices"

	"switchboard/servers"
	"switchboard/servers/acp"
	"switchboard/servers/codex"
	"switchboard/servers/joined"
	"switchboard/servers/responses"
	"switchboard/servers/transport"
)

// transports returns the transports that kinds of servers share. A new one is one more line here.
func transports(lines *joined.Lines) []servers.Transport {
	return []servers.Transport{
		transport.ByURL(),
		transport.ByUnix(),
		transport.BySSH(),
		joined.Transport(lines),
		transport.ByCommand(),
	}
}

// kinds returns the kinds of agent servers. A new one is one more line here. agents and lines may be nil where a
// configuration is only read.
func kinds(agents *responses.Agents, lines *joined.Lines) []servers.Kind {
	instance := func() string {
		if lines == nil {
			return ""
		}
		return lines.Instance
	}
	return []servers.Kind{
		codex.Kind(transports(lines)...),
		agents.Kind(),
		acp.Kind(instance, transport.BySSHAgent(), joined.PlainTransport(lines), transport.ByCommand()),
	}
}

// kindNamed returns the kind with a name.
func kindNamed(all []servers.Kind, name string) (servers.Kind, bool) {
	i := slices.IndexFunc(all, func(k servers.Kind) bool { return k.Name == name })
	if i < 0 {
		return servers.Kind{}, false
	}
	return all[i], true
}

// localServer returns the settings of a Codex that is installed on this machine.
func localServer() servers.Spec {
	return codex.Here(localName, &transport.Child{Command: []string{codex.Program, "app-server"}})
}
