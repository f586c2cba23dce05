// Package joined manages the machines that joined by themselves: their keys, the invitations that let them in, the
// lines that they keep to the service, and the connections to agents through these lines. Package host is the other
// end, on the machine.
//
// # A line
//
// A machine opens a WebSocket to the service, which any proxy lets through. Inside it runs TLS 1.3 with a certificate
// on either side, also where a proxy has ended an outer TLS. So each end proves its key, a recorded handshake proves
// nothing, and no proxy can read or change the line. The machine knows the service's key by the fingerprint in the
// invitation; the service finds the machine's key in the store. Inside TLS the two exchange a hello and a welcome. From
// then on the connection carries many streams (yamux): the service opens one for each connection to an agent, and names
// the agent; the machine opens one, on which it reports its state.
//
// It must not know what agents say, and nothing of voice.
package joined
