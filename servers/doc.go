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
// the settings of one server ([Way]) and opens it; the wiring says which kinds offer it.
package servers
