// Package servers is the fleet: the registry of agent servers, their health and warm connections, what a spoken or
// typed name means (machine, project or thread), and the directory of threads over all of them.
//
// It must not know voice, calls or Redis, and it never imports a [Kind] of server or a [Transport]: whoever wires the
// program registers them. Ids of threads and turns are opaque here.
//
// # Another kind, another transport
//
// A kind is a package below this one and a line in kinds() of cmd/switchboard/kinds.go. It declares its [Settings],
// which the configuration decodes with their places, and how they are dialled; what all servers have is in [Spec]. It
// passes servers/serverstest, and stands in the import table (cmd/switchboard/hygiene_imports_test.go) and in
// web/help/3-settings.md. A transport is a file of servers/transport and a line in transports() of kinds.go. It makes
// the settings of one server ([Way]) and opens it; the wiring says which kinds offer it, and the order of transports()
// decides which one takes an address. A library that is new stands in libraries() of the import test.
//
// If a machine that joins may bring the kind, it also stands in machineSpec (cmd/switchboard/machines.go) and in
// servers/joined/host; if `switchboard add` reaches it by ssh, in cmd/switchboard/add_ssh.go.
//
// # Signs of life
//
// A connection is pinged each [PingEvery]. A WebSocket that is silent for deadAfter (transport/websocket.go) is lost;
// that has to be longer than two pings. The lines of machines that joined (joined/socket.go) and ssh (transport/ssh.go)
// have intervals of their own.
package servers
