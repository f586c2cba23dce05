// Package servers is the fleet: the registry of agent servers, their health and warm connections, the one
// resolver for every name, and the directory of threads over all of them.
//
// It must not know voice, calls or Redis, and it never imports a kind of server: whoever wires the program
// hands it a [Dial] for each.
package servers
