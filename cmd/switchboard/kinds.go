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

// transports are the ways to reach agent servers that kinds share. One more is one more line.
func transports(lines *joined.Lines) []servers.Transport {
	return []servers.Transport{
		transport.ByURL(),
		transport.ByUnix(),
		transport.BySSH(),
		joined.Transport(lines),
		transport.ByCommand(),
	}
}

// kinds are the kinds of agent servers that there are. One more is one more line. Who only reads a configuration
// has no agents and no lines.
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

// kindNamed returns the kind of a name.
func kindNamed(all []servers.Kind, name string) (servers.Kind, bool) {
	i := slices.IndexFunc(all, func(k servers.Kind) bool { return k.Name == name })
	if i < 0 {
		return servers.Kind{}, false
	}
	return all[i], true
}

// localServer is what a codex that is installed here is configured as.
func localServer() servers.Spec {
	child := &transport.Child{Command: []string{"codex", "app-server"}}
	s := servers.Spec{Name: localName, Kind: codex.Name, Own: &codex.Config{Way: child}}
	s.Own.Describe(&s)
	return s
}
