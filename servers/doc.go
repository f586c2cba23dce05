// Package servers is the fleet: the registry of agent servers, their health and warm connections, the one
// resolver for every name, and the directory of threads over all of them.
//
// It must not know voice, calls or Redis, and it never imports a [Kind] of server or a [Transport]: whoever wires the
// program registers them. Ids of threads and turns are opaque here.
//
// # Another kind, another transport
//
// Each is a package of its own and one line where the program is wired. A kind declares its [Settings], which the
// configuration decodes with their places, and how they are dialled; what all servers have is in [Spec]. A transport
// declares the settings of a [Way] and how it is opened; kinds that are given it offer it beside the others.
package servers
