package handoff

// A Reason is why a machine cannot be worked with: one of a closed list. Whoever dials it finds the reason; package
// servers has its words, and the one thing to do about it, so that every front tells the same.
type Reason string

// The reasons.
const (
	ReasonAsleep             Reason = "asleep"            // it does not answer, or its line is gone
	ReasonNoRoute            Reason = "no_route"          // the network leads to no such machine
	ReasonNameUnknown        Reason = "name_unknown"      // nobody knows its address
	ReasonNotRunning         Reason = "not_running"       // it refuses the connection
	ReasonTunnelDown         Reason = "tunnel_down"       // nothing listens at an address of this computer
	ReasonTunnelEmpty        Reason = "tunnel_empty"      // what listens there leads nowhere
	ReasonSilent             Reason = "silent"            // it takes the connection, and says nothing
	ReasonStranger           Reason = "stranger"          // something else answers
	ReasonNotAllowed         Reason = "not_allowed"       // this user may not open its socket
	ReasonPlaintextRefused   Reason = "plaintext_refused" // it takes encrypted connections alone
	ReasonNoTLS              Reason = "no_tls"            // it takes none that are encrypted
	ReasonCertificate        Reason = "certificate"       // its certificate does not hold
	ReasonTokenRefused       Reason = "token_refused"
	ReasonTokenUnread        Reason = "token_unreadable" // our own copy of it
	ReasonWorkspace          Reason = "workspace"        // the directory of an agent of ours cannot be used
	ReasonOutdated           Reason = "outdated"
	ReasonNotJoined          Reason = "not_joined"
	ReasonProgramMissing     Reason = "program_missing"     // what is to run on this computer
	ReasonProgramEnded       Reason = "program_ended"       // likewise
	ReasonAgentMissing       Reason = "agent_missing"       // what is to run there
	ReasonAgentEnded         Reason = "agent_ended"         // likewise
	ReasonSwitchboardMissing Reason = "switchboard_missing" // there, where it has to keep an agent
	ReasonSSHMissing         Reason = "ssh_missing"         // on this computer
	ReasonSSHNotRunning      Reason = "ssh_not_running"     // there
	ReasonSSHKeyRefused      Reason = "ssh_key_refused"
	ReasonHostKeyUnknown     Reason = "host_key_unknown"
	ReasonHostKeyChanged     Reason = "host_key_changed"
	ReasonSSHSettings        Reason = "ssh_settings" // those of the user of this computer
	ReasonCut                Reason = "cut"          // it ends each new connection
	ReasonLost               Reason = "lost"         // a connection that was there
	ReasonStopping           Reason = "stopping"
	ReasonUnknown            Reason = "unknown"
)
