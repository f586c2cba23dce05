// Package joined has the machines that joined by themselves: their keys, the invitations that let them in, the lines
// that they keep to the service, and dialing agents through these. Package host is the other end, on the machine.
//
// # A line
//
// A machine opens a WebSocket to the service, which any proxy lets through. Inside it runs TLS 1.3 with a certificate
// on either side, whoever has taken off the TLS outside: so each proves the key that it is known by, what was recorded
// proves nothing, and nobody on the way reads along or joins in. The service's key is the one whose fingerprint was in
// the invitation; the machine's key is the one in the store. Inside that, the two say hello, and then the connection is
// many streams (yamux): the service opens one for each connection to an agent and names the agent; the machine opens
// one, on which it tells how it is.
//
// It must not know what agents say, and nothing of voice.
package joined
