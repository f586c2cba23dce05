package servers

import (
	"cmp"
	"strings"
	"time"

	"switchboard/handoff"
)

// A remedy has the words of a reason for people: a clause about the machine, and a sentence with one thing to do. In
// both, {name}, {credential}, {detail}, {address}, {start} and {since} stand for the values of [reasonFacts].
type remedy struct{ Words, Next string }

// remedies are the remedies of all reasons. Set once.
var remedies = map[handoff.Reason]remedy{
	handoff.ReasonAsleep: {
		"it is asleep or offline{since}",
		"Wake it, or look whether it is on the network; it is found again by itself.",
	},
	handoff.ReasonNoRoute: {
		"no network leads to it{since}: it is off, or this computer is on another network",
		"Connect both to the same network or VPN; it is found again by itself.",
	},
	handoff.ReasonNameUnknown: {
		"its name is not known on this network",
		"Correct its address, or connect to the network or VPN that knows it.",
	},
	handoff.ReasonNotRunning: {"nothing is listening there", "Start its agent server there{start}."},
	handoff.ReasonTunnelDown: {
		"nothing is listening there, neither its agent server nor a tunnel to it",
		"Start the tunnel, or its agent server there{start} (behind a tunnel, with the port that it leads to).",
	},
	handoff.ReasonTunnelEmpty: {
		"what listens there ends the connection at once, as a tunnel does that leads nowhere",
		"Start its agent server at the other end{start} (with the port that the tunnel leads to).",
	},
	handoff.ReasonSilent: {
		"it takes the connection and does not answer",
		"Start its agent server again{start}.",
	},
	handoff.ReasonStranger: {
		"something else answers there: {detail}",
		"Correct its address{address}.",
	},
	handoff.ReasonNotAllowed: {
		"the user of Switchboard may not open its socket",
		"Run its agent server as the same user, or give that user the right to the socket.",
	},
	handoff.ReasonPlaintextRefused: {
		"it takes encrypted connections alone",
		"Begin its address with wss:// (or https://).",
	},
	handoff.ReasonNoTLS: {
		"it takes no encrypted connections",
		"Correct the port of its address{address}, or put TLS in front of it.",
	},
	handoff.ReasonCertificate: {
		"its certificate does not hold: {detail}",
		"Renew the certificate there, or reach it by the name that the certificate is for.",
	},
	handoff.ReasonTokenRefused: {
		"it did not accept Switchboard's {credential}",
		"Correct {credential}_file or {credential}_env of {name}.",
	},
	handoff.ReasonTokenUnread: {
		"its {credential} cannot be read",
		"Correct {credential}_file or {credential}_env of {name}, or make that readable.",
	},
	handoff.ReasonWorkspace: {"{detail}", "Correct workspace of {name}."},
	handoff.ReasonOutdated:  {"{detail}", "Update it there, and start its agent server again."},
	handoff.ReasonNotJoined: {
		"its machine has not joined",
		"Run what `switchboard invite {name}` prints, on that machine.",
	},
	handoff.ReasonProgramMissing: {
		"its program {detail} is not on this computer",
		"Install it, or name its path in command of {name}.",
	},
	handoff.ReasonProgramEnded: {
		"its program ended at once: {detail}",
		"Run it in a terminal, and mend what it says{start}.",
	},
	handoff.ReasonAgentMissing: {
		"{detail} is not installed there",
		"Install it there (Codex: npm install -g @openai/codex).",
	},
	handoff.ReasonSwitchboardMissing: {
		"the switchboard program, which keeps its agent, is not installed there",
		"Copy this one there, as ~/.local/bin/switchboard (`switchboard add` does that with --install).",
	},
	handoff.ReasonAgentEnded: {
		"its agent does not start there: {detail}",
		"Run it there in a terminal (Codex: codex app-server), and mend what it says.",
	},
	handoff.ReasonSSHMissing: {
		"this computer has no ssh program",
		"Install OpenSSH's client, such as with apt install openssh-client.",
	},
	handoff.ReasonSSHNotRunning: {
		"no ssh server is listening there",
		"Switch remote login on there (the OpenSSH server), or correct the port in ~/.ssh/config.",
	},
	handoff.ReasonSSHKeyRefused: {
		"it did not accept an ssh key of this user",
		"Run ssh-copy-id {address}; a key with a passphrase also has to be in the agent (ssh-add).",
	},
	handoff.ReasonHostKeyUnknown: {
		"its ssh host key is not known here",
		"Run ssh {address} once, compare the fingerprint, and say yes.",
	},
	handoff.ReasonHostKeyChanged: {
		"its ssh host key is another one than before: it was set up anew, or something is in between",
		"Find out which; where the machine is new, run ssh-keygen -R {detail}, and then ssh {address} once.",
	},
	handoff.ReasonSSHSettings: {
		"ssh does not take its settings: {detail}",
		"Mend ~/.ssh/config of this user until ssh {address} works.",
	},
	handoff.ReasonCut: {
		"it ends the connection at once",
		"Look at the log of its agent server, and start that again{start}.",
	},
	handoff.ReasonLost:     {"the connection was lost{since}", "Wait: it is looked for by itself."},
	handoff.ReasonStopping: {"Switchboard is shutting down", "Start Switchboard again."},
	handoff.ReasonUnknown:  {"it cannot be reached", "Look at the log of its agent server."},
}

// reasonFacts are the values in the words of a reason.
type reasonFacts struct {
	Name       string    // of the machine in the fleet
	Credential string    // by which the server lets Switchboard in: token or key; "": token
	Detail     string    // what was noticed, without secrets; "": nothing
	Address    string    // of the server; for ssh, its destination
	Start      string    // the command that starts its agent server; "": not known
	Ours       bool      // Switchboard starts its agent server
	Since      time.Time // when it was up last; zero: not known
}

// maxReasonDetail bounds Detail in the words of a reason, in bytes.
const maxReasonDetail = 160

// KnownReason returns a reason, or [handoff.ReasonUnknown] for a reason of a newer program.
func KnownReason(r handoff.Reason) handoff.Reason {
	if _, known := remedies[r]; !known {
		return handoff.ReasonUnknown
	}
	return r
}

// ourRemedies say what to do about a server that Switchboard starts, where that differs. Set once.
var ourRemedies = map[handoff.Reason]string{
	handoff.ReasonCut: startsByItself, handoff.ReasonSilent: startsByItself, handoff.ReasonUnknown: startsByItself,
}

const startsByItself = "Switchboard starts it again by itself; if that does not help, run it in a terminal, and mend " +
	"what it says{start}."

// explain returns the words of a reason, and the sentence with one thing to do.
func explain(r handoff.Reason, f reasonFacts, now time.Time) (words, next string) {
	row := remedies[KnownReason(r)]
	if own := ourRemedies[KnownReason(r)]; f.Ours && own != "" {
		row.Next = own
	}
	start, since := "", ""
	if f.Start != "" {
		start = ": " + f.Start
	}
	if !f.Since.IsZero() {
		since = " since " + clockWords(f.Since, now)
	}
	fill := strings.NewReplacer("{name}", f.Name, "{credential}", cmp.Or(f.Credential, "token"),
		"{detail}", handoff.Clip(f.Detail, maxReasonDetail), "{start}", start, "{since}", since)
	words, next = fill.Replace(row.Words), fill.Replace(row.Next)
	words = strings.TrimSuffix(strings.TrimSpace(words), ":")
	address := cmp.Or(f.Address, "to it")
	if r == handoff.ReasonStranger || r == handoff.ReasonNoTLS {
		if address = ""; f.Address != "" {
			address = ", " + f.Address
		}
	}
	return words, strings.ReplaceAll(next, "{address}", address)
}

// clockWords returns words for a time: the time of day, with the date unless that is today's.
func clockWords(at, now time.Time) string {
	at = at.In(now.Location())
	if at.YearDay() == now.YearDay() && at.Year() == now.Year() {
		return at.Format("15:04")
	}
	return at.Format("2 January 15:04")
}
