// Package web is the HTTP edge of Switchboard and its page: who may come in, the login, the fleet's API, the feed of
// events, and the embedded page that people look at while they talk.
//
// A [Server] is the routes and the checks before them. Each subject is a small type in the file of its name, with its
// handlers and what they need: pages, logins, clientSecrets, calls, fleet, work, streams, questions, history, pushes. A
// front with routes of its own is a package that implements [Mounted], a field of [Config], a line at the end of
// Server.routes, and its wiring in cmd/switchboard/service.go. Pages of other origins may call what isAPI (cors.go)
// lists, and nothing else.
//
// In the folder page, main.js puts the page together, view-NAME.js is one area of it, and state-NAME.js what it knows;
// wide.css has the areas beside the call.
//
// When the instance ends, [Config.Ready] fails, so that /readyz answers 503. With other instances, [Server.Drain] also
// ends each connection with its next answer.
//
// The package uses the fleet through small interfaces of its own, which [Router], [Store] and [Fleet] combine, and the
// voice through [Front]. It must not know the protocol of a server or of the voice model, nor Redis. It shows work, and
// passes on what a person pressed.
//
// # Order of checks
//
// Every request passes the same checks in the same order: the peer (trusted proxies), the Host, the Origin, the key,
// the limits, and only then its handler. That a request comes from loopback grants nothing.
//
// With several instances, a request of a caller whose home is another instance is forwarded after the check of its key
// and before the limits; see [Peers]. For a forwarded request, the other instance has made the checks before the key.
//
// # Signs of life
//
// A quiet event stream sends a heartbeat every 15 s (beat in deadlines.go, and in responses/serve.go for the Responses
// API). The verbs give up a stream after three missing heartbeats
// (silentFor in cmd/switchboard/verbs/follow.go). The sockets of calls have their own pings (realtime/socket.go).
//
// # Concurrency
//
// net/http's goroutines serve the requests. No other goroutine outlives its request: a handler that starts one waits
// for it. Event streams end when the client leaves, falls behind, or [Server.Close] is called.
package web
