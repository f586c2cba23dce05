package handoff

import (
	"cmp"
	"strings"
	"time"
)

// A Reason is why a machine cannot be worked with: one of a closed list. Whoever dials it finds the reason; its words,
// and the one thing to do about it, stand in [Reasons] alone, so that every front tells the same.
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

// A Remedy is what a reason means to people: a clause about the machine, and one sentence with the one thing to do. In
// both stand {name}, {credential}, {detail}, {address}, {start} and {since}, as [ReasonFacts] has them.
type Remedy struct{ Words, Next string }

// Reasons has the remedy of every reason. Set once.
var Reasons = map[Reason]Remedy{
	ReasonAsleep:      {"it is asleep or offline{since}", "Wake it, or look whether it is on the network; it is found again by itself."},
	ReasonNoRoute:     {"no network leads to it{since}: it is off, or this computer is on another network", "Connect both to the same network or VPN; it is found again by itself."},
	ReasonNameUnknown: {"its name is not known on this network", "Correct its address, or connect to the network or VPN that knows it."},
	ReasonNotRunning:  {"nothing is listening there", "Start its agent server there{start}."},
	ReasonTunnelDown: {
		"nothing is listening there, neither its agent server nor a tunnel to it",
		"Start the tunnel, or its agent server there{start} (behind a tunnel, with the port that it leads to).",
	},
	ReasonTunnelEmpty: {
		"what listens there ends the connection at once, as a tunnel does that leads nowhere",
		"Start its agent server at the other end{start} (with the port that the tunnel leads to).",
	},
	ReasonSilent:             {"it takes the connection and does not answer", "Start its agent server again{start}."},
	ReasonStranger:           {"something else answers there: {detail}", "Correct its address{address}."},
	ReasonNotAllowed:         {"the user of Switchboard may not open its socket", "Run its agent server as the same user, or give that user the right to the socket."},
	ReasonPlaintextRefused:   {"it takes encrypted connections alone", "Begin its address with wss:// (or https://)."},
	ReasonNoTLS:              {"it takes no encrypted connections", "Correct the port of its address{address}, or put TLS in front of it."},
	ReasonCertificate:        {"its certificate does not hold: {detail}", "Renew the certificate there, or reach it by the name that the certificate is for."},
	ReasonTokenRefused:       {"it did not accept Switchboard's {credential}", "Correct {credential}_file or {credential}_env of {name}."},
	ReasonTokenUnread:        {"its {credential} cannot be read", "Correct {credential}_file or {credential}_env of {name}, or make that readable."},
	ReasonWorkspace:          {"{detail}", "Correct workspace of {name}."},
	ReasonOutdated:           {"{detail}", "Update it there, and start its agent server again."},
	ReasonNotJoined:          {"its machine has not joined", "Run what `switchboard invite {name}` prints, on that machine."},
	ReasonProgramMissing:     {"its program {detail} is not on this computer", "Install it, or name its path in command of {name}."},
	ReasonProgramEnded:       {"its program ended at once: {detail}", "Run it in a terminal, and mend what it says{start}."},
	ReasonAgentMissing:       {"{detail} is not installed there", "Install it there (Codex: npm install -g @openai/codex)."},
	ReasonSwitchboardMissing: {"the switchboard program, which keeps its agent, is not installed there", "Copy this one there, as ~/.local/bin/switchboard (`switchboard add` does that with --install)."},
	ReasonAgentEnded:         {"its agent does not start there: {detail}", "Run it there in a terminal (Codex: codex app-server), and mend what it says."},
	ReasonSSHMissing:         {"this computer has no ssh program", "Install OpenSSH's client, such as with apt install openssh-client."},
	ReasonSSHNotRunning:      {"no ssh server is listening there", "Switch remote login on there (the OpenSSH server), or correct the port in ~/.ssh/config."},
	ReasonSSHKeyRefused: {
		"it did not accept an ssh key of this user",
		"Run ssh-copy-id {address}; a key with a passphrase also has to be in the agent (ssh-add).",
	},
	ReasonHostKeyUnknown: {"its ssh host key is not known here", "Run ssh {address} once, compare the fingerprint, and say yes."},
	ReasonHostKeyChanged: {
		"its ssh host key is another one than before: it was set up anew, or something is in between",
		"Find out which; where the machine is new, run ssh-keygen -R {detail}, and then ssh {address} once.",
	},
	ReasonSSHSettings: {"ssh does not take its settings: {detail}", "Mend ~/.ssh/config of this user until ssh {address} works."},
	ReasonCut:         {"it ends the connection at once", "Look at the log of its agent server, and start that again{start}."},
	ReasonLost:        {"the connection was lost{since}", "Wait: it is looked for by itself."},
	ReasonStopping:    {"Switchboard is shutting down", "Start Switchboard again."},
	ReasonUnknown:     {"it cannot be reached", "Look at the log of its agent server."},
}

// ReasonFacts fill in the words of a reason.
type ReasonFacts struct {
	Name       string    // of the machine in the fleet
	Credential string    // what lets Switchboard in: token or key; "": token
	Detail     string    // what was noticed, without a secret; "" leaves it out
	Address    string    // where it is reached; for ssh, its destination
	Start      string    // the command that starts its agent server; "": nobody knows
	Since      time.Time // when it was there last; zero: nobody knows
}

// maxReasonDetail bounds what the words of a reason quote, in bytes.
const maxReasonDetail = 160

// Explain returns the words of a reason, and the one thing to do.
func (r Reason) Explain(f ReasonFacts, now time.Time) (words, next string) {
	row, known := Reasons[r]
	if !known {
		row = Reasons[ReasonUnknown]
	}
	start, since := "", ""
	if f.Start != "" {
		start = ": " + f.Start
	}
	if !f.Since.IsZero() {
		since = " since " + clockWords(f.Since, now)
	}
	fill := strings.NewReplacer("{name}", f.Name, "{credential}", cmp.Or(f.Credential, "token"), "{detail}", Clip(f.Detail, maxReasonDetail), "{start}", start, "{since}", since)
	words, next = fill.Replace(row.Words), fill.Replace(row.Next)
	words = strings.TrimSuffix(strings.TrimSpace(words), ":")
	address := cmp.Or(f.Address, "to it")
	if r == ReasonStranger || r == ReasonNoTLS {
		if address = ""; f.Address != "" {
			address = ", " + f.Address
		}
	}
	return words, strings.ReplaceAll(next, "{address}", address)
}

// clockWords says when something was: the time of day, with the day unless that is today.
func clockWords(at, now time.Time) string {
	at = at.In(now.Location())
	if at.YearDay() == now.YearDay() && at.Year() == now.Year() {
		return at.Format("15:04")
	}
	return at.Format("2 January 15:04")
}
