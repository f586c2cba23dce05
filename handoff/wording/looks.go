package wording

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/speakable"
)

// FleetSummary says which machines answer, which work, and which do not answer.
func (l Language) FleetSummary(items []handoff.ServerInfo) string {
	var up, down, working []string
	for _, s := range items {
		if s.Health == handoff.HealthUp {
			up = append(up, s.Name)
		} else {
			down = append(down, s.Name)
		}
		if len(s.Working) > 0 {
			working = append(working, l.say("machines.working", "server", s.Name, "title", l.SayTitle(s.Working[0])))
		}
	}
	if len(items) == 0 {
		return l.say("machines.none")
	}
	var parts []string
	if len(up) > 0 {
		parts = append(parts, l.plural("machines.ready", len(up), "names", l.List(up)))
	}
	if len(down) > 0 {
		parts = append(parts, l.plural("machines.silent", len(down), "names", l.List(down)))
	}
	return strings.Join(append(parts, working[:min(len(working), 3)]...), " ")
}

// IsAre returns "is" for one name, and "are" for several.
func IsAre(names []string) string {
	if len(names) == 1 {
		return "is"
	}
	return "are"
}

// SessionsSummary says the newest of a list of sessions, and which machines did not answer.
func (l Language) SessionsSummary(list handoff.SessionList, now time.Time) string {
	var parts []string
	if len(list.Items) == 0 {
		parts = append(parts, l.say("sessions.none"))
	}
	for i, it := range list.Items[:min(len(list.Items), 3)] {
		if said := l.session(it, now); i == 0 {
			parts = append(parts, l.say("sessions.latest", "session", said))
		} else {
			parts = append(parts, l.say("sessions.next", "session", said))
		}
	}
	if n := len(list.Items) + list.More - 3; n > 0 {
		parts = append(parts, l.plural("sessions.more", n, "n", strconv.Itoa(n)))
	}
	var silent []string
	for _, e := range list.Errors {
		silent = append(silent, e.Server)
	}
	if len(silent) > 0 {
		parts = append(parts, l.say("sessions.unasked", "names", l.List(silent)))
	}
	return strings.Join(parts, " ")
}

// session says a session of a list: its title, machine, age and status.
func (l Language) session(it handoff.SessionInfo, now time.Time) string {
	ago := it.Age
	if !l.IsEnglish() {
		ago = l.Ago(now, it.Updated)
	}
	switch title := l.SayTitle(it.Title); it.Status {
	case handoff.SessionRunning:
		return l.say("sessions.running", "title", title, "server", it.Server, "ago", ago)
	case handoff.SessionWaiting:
		return l.say("sessions.waiting", "title", title, "server", it.Server, "ago", ago)
	default:
		return l.say("sessions.idle", "title", title, "server", it.Server, "ago", ago)
	}
}

// TranscriptSummary says the last message of the agent in a session.
func (l Language) TranscriptSummary(t handoff.Transcript) string {
	for _, line := range slices.Backward(t.Lines) {
		if line.Role == "agent" {
			return l.say("transcript.last", "title", l.SayTitle(t.Title), "server", t.Server,
				"report", speakable.Speakable(line.Text, maxSpoken))
		}
	}
	return l.say("transcript.none", "title", l.SayTitle(t.Title), "server", t.Server)
}

// UnreadWork adds to sentences about work that there may be more from before a restart; known says whether any work is
// known.
func (l Language) UnreadWork(say string, known bool) string {
	if !known {
		return l.say("status.unread")
	}
	return say + " " + l.say("status.unread")
}

// Stopping says on which machines work stops, and on which it belongs to somebody else and goes on; either may be
// empty.
func (l Language) Stopping(stopped, shared []string) string {
	var say []string
	if len(stopped) > 0 {
		say = append(say, l.say("stop.stopping", "servers", l.List(stopped)))
	}
	if len(shared) > 0 {
		say = append(say, l.say("stop.shared", "servers", l.List(shared)))
	}
	return strings.Join(say, " ")
}

// SureToStop says that work was begun by somebody else, and asks whether it shall stop all the same.
func (l Language) SureToStop(servers []string) string {
	return l.say("stop.theirs", "servers", l.List(servers))
}

// NothingRuns says that no work runs on a machine; "": on any.
func (l Language) NothingRuns(server string) string {
	if server == "" {
		return l.say("status.nothing")
	}
	return l.say("status.nothing_there", "server", server)
}

// WhichStops asks which of several works shall be stopped.
func (l Language) WhichStops(running []handoff.Record) string {
	var names []string
	for _, rec := range running {
		names = append(names, l.say("stop.work", "title", l.TitleOf(rec), "server", rec.Server))
	}
	return l.say("stop.which", "list", l.List(names))
}

// Dropped says that paused work is not begun.
func (l Language) Dropped(server string) string { return l.say("stop.dropped", "server", server) }

// Okay says that the caller's wish is done.
func (l Language) Okay() string { return l.say("okay") }

// Named says that a session was renamed.
func (l Language) Named(name string) string { return l.say("decided.named", "title", l.SayTitle(name)) }
