package handoff

// A Reason is why a machine cannot be used, one of a closed list. The code that dials the machine finds the reason;
// package servers has the words for it, and the one thing to do, so that every front says the same.
type Reason string

// The reasons.
const (
	ReasonAsleep             Reason = "asleep"            // it does not answer, or its line is gone
	ReasonNoRoute            Reason = "no_route"          // the network has no route to it
	ReasonNameUnknown        Reason = "name_unknown"      // its host name has no address
	ReasonNotRunning         Reason = "not_running"       // it refuses the connection
	ReasonTunnelDown         Reason = "tunnel_down"       // its address is of this computer, and nothing listens there
	ReasonTunnelEmpty        Reason = "tunnel_empty"      // a tunnel listens on this computer, with nothing behind it
	ReasonSilent             Reason = "silent"            // it accepts the connection, and sends nothing
	ReasonStranger           Reason = "stranger"          // something else answers
	ReasonNotAllowed         Reason = "not_allowed"       // this user may not open its socket
	ReasonPlaintextRefused   Reason = "plaintext_refused" // it accepts only encrypted connections
	ReasonNoTLS              Reason = "no_tls"            // it accepts no encrypted connections
	ReasonCertificate        Reason = "certificate"       // its certificate is not valid
	ReasonTokenRefused       Reason = "token_refused"
	ReasonTokenUnread        Reason = "token_unreadable" // our own copy of the token
	ReasonWorkspace          Reason = "workspace"        // the directory of an agent of ours cannot be used
	ReasonOutdated           Reason = "outdated"
	ReasonNotJoined          Reason = "not_joined"
	ReasonProgramMissing     Reason = "program_missing"     // the program to run on this computer
	ReasonProgramEnded       Reason = "program_ended"       // likewise
	ReasonAgentMissing       Reason = "agent_missing"       // the agent to run there
	ReasonAgentEnded         Reason = "agent_ended"         // likewise
	ReasonSwitchboardMissing Reason = "switchboard_missing" // the Switchboard there, which keeps an agent running
	ReasonSSHMissing         Reason = "ssh_missing"         // on this computer
	ReasonSSHNotRunning      Reason = "ssh_not_running"     // there
	ReasonSSHKeyRefused      Reason = "ssh_key_refused"
	ReasonHostKeyUnknown     Reason = "host_key_unknown"
	ReasonHostKeyChanged     Reason = "host_key_changed"
	ReasonSSHSettings        Reason = "ssh_settings" // of this computer's user
	ReasonCut                Reason = "cut"          // it closes each new connection
	ReasonLost               Reason = "lost"         // an open connection was lost
	ReasonStopping           Reason = "stopping"
	ReasonUnknown            Reason = "unknown"
)
