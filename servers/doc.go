// Package servers is the fleet: the registry of agent servers, their health and warm connections, the one
// resolver for every name, and the directory of threads over all of them.
//
// It must not know voice, calls or Redis, and it never imports a [Kind] of server: whoever wires the
// program registers the kinds. Ids of threads and turns are opaque here.
package servers
