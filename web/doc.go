// Package web is the HTTP edge of Switchboard and its page: who may come in, the login, the fleet's API,
// the feed of events, and the embedded page that people look at while they talk.
//
// A [Server] is the routes and the checks before them. Each subject is a small type in the file of its name, with its
// handlers and what they need: pages, logins, clientSecrets, calls, fleet, work, streams, questions, history, pushes. A
// front with routes of its own is one line at the end of Server.routes: mount.
//
// It sees the fleet through small interfaces of its own, which [Router], [Store] and [Fleet] put together, and the
// voice through [Front]. It must not know a server's protocol, the voice
// model's, or Redis; it decides nothing about work; it only shows work and passes on what a person pressed.
//
// # Order of checks
//
// Every request passes the same checks in the same order: the peer (trusted proxies), the Host, the
// Origin, the key, the limits, and only then its handler. That a request comes from loopback grants nothing.
//
// # Concurrency
//
// A [Server] starts no goroutine. net/http's goroutines serve the requests; event streams end when the client
// leaves, falls behind, or [Server.Close] is called.
package web
