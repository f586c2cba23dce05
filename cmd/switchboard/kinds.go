package main

import (
	"switchboard/servers"
	"switchboard/servers/codex"
)

// kinds are the kinds of agent servers that there are. One more is one more line.
func kinds() []servers.Kind {
	return []servers.Kind{codex.Kind()}
}

// kindNames are what the configuration calls them.
func kindNames() []string {
	var names []string
	for _, k := range kinds() {
		names = append(names, k.Name)
	}
	return names
}

// kindOfServer returns the kind of a name; it has no functions when there is none.
func kindOfServer(name string) servers.Kind {
	for _, k := range kinds() {
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
