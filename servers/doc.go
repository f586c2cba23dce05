// Package servers is the fleet: the registry of agent servers, their health and warm connections, the resolver of
// spoken and typed names (of machines, projects and threads), and the directory of the threads of all servers.
//
// It must not know voice, calls or Redis. It never imports a [Kind] of server or a [Transport]: cmd registers them. Ids
// of threads and turns are opaque here.
//
// # Another kind, another transport
//
// A kind is a package below this one and a line in kinds() of cmd/switchboard/kinds.go. It declares its [Settings],
// which the configuration decodes, and a dial function; what all servers have is in [Spec]. It has to pass
// servers/serverstest, and needs a row in the import table (cmd/switchboard/hygiene_imports_test.go) and in
// web/help/3-settings.md.
//
// A transport is a file of servers/transport and a line in transports() of kinds.go. It makes the settings of one
// server ([Way]) and opens a connection with them. The wiring says which kinds offer it. The order of transports()
// decides which one takes an address. A new library needs a line in libraries() of the import test.
//
// A kind that a machine may bring when it joins has a [Kind.Joined], and is also named in servers/joined/host.
//
// # Signs of life
//
// A connection is pinged every [PingEvery]. A WebSocket that is silent for deadAfter (transport/websocket.go) is lost;
// that has to be longer than two pings. The lines of machines that joined (joined/socket.go) and ssh (transport/ssh.go)
// have intervals of their own.
package servers
