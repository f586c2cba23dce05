package main

import (
	"switchboard/servers"
	"switchboard/servers/codex"
	"switchboard/servers/responses"
)

// kinds are the kinds of agent servers that there are. One more is one more line. Who only reads a configuration
// has no agents.
func kinds(agents *responses.Agents) []servers.Kind {
	return []servers.Kind{codex.Kind(), agents.Kind()}
}

// kindNames are what the configuration calls them.
func kindNames() []string {
	var names []string
	for _, k := range kinds(nil) {
		names = append(names, k.Name)
	}
	return names
}

// kindOfServer returns the kind of a name; it has no functions when there is none.
func kindOfServer(name string, agents *responses.Agents) servers.Kind {
	for _, k := range kinds(agents) {
		if k.Name == name {
			return k
		}
	}
	return servers.Kind{}
}

// localServer is what a codex that is installed here is configured as.
func localServer() serverSetting {
	return serverSetting{Name: localName, Kind: codex.Name, Command: []string{"codex", "app-server"}}
}
