package verbs

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"switchboard/handoff"
)

// Widths of columns, in runes.
const (
	titleWidth = 40
	placeWidth = 50
	idWidth    = 13 // of the beginning of an id; in the ids of Codex, that is the time
)

// Servers lists the machines.
func (t *Terminal) Servers(ctx context.Context) error {
	var found struct{ Items []handoff.ServerInfo }
	return t.show(ctx, "/fleet/servers", &found, func() error {
		var machines struct{ Items []handoff.Machine }
		if _, err := t.get(ctx, "/fleet/machines", &machines); err != nil {
			return err
		}
		return writeServers(t.Out, found.Items, machines.Items)
	})
}

// watchEvery is the pause between two looks at the machines.
const watchEvery = 2 * time.Second

// WatchServers lists the machines again whenever the list has changed, until ctx ends. A service that is away is told,
// and looked for.
func (t *Terminal) WatchServers(ctx context.Context) error {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for last := ""; ; {
		var now bytes.Buffer
		one := *t
		one.Out = &now
		if err := one.Servers(ctx); err != nil && ctx.Err() == nil {
			if fault, refused := errors.AsType[*Fault](err); refused && fault.Status < http.StatusInternalServerError {
				return err
			}
			now.Reset()
			fmt.Fprintf(&now, "%s\n", Plain(err.Error()))
		}
		if ctx.Err() != nil { // that is how it ends
			return nil
		}
		if text := now.String(); text != last {
			if last = text; t.Live {
				text = "\x1b[H\x1b[2J" + text // from the top of an empty screen
			}
			if _, err := io.WriteString(t.Out, text); err != nil {
				return err
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// Logs shows the newest lines of the log that name a machine, oldest first.
func (t *Terminal) Logs(ctx context.Context, server string) error {
	var found struct {
		Items []struct {
			At             time.Time
			Level, Message string
			About          map[string]any
		}
	}
	return t.show(ctx, "/fleet/machines/"+url.PathEscape(server)+"/log", &found, func() error {
		if len(found.Items) == 0 {
			_, err := fmt.Fprintf(t.Out, "nothing was logged of %s since Switchboard was started\n", Plain(server))
			return err
		}
		var b strings.Builder
		for _, line := range found.Items {
			fmt.Fprintf(&b, "%s  %-5s  %s", line.At.Local().Format(time.DateTime), Plain(line.Level), Plain(line.Message))
			for _, name := range slices.Sorted(maps.Keys(line.About)) {
				fmt.Fprintf(&b, "  %s=%s", Plain(name), cell(fmt.Sprint(line.About[name]), 3*placeWidth))
			}
			b.WriteString("\n")
		}
		_, err := io.WriteString(t.Out, b.String())
		return err
	})
}

func writeServers(out io.Writer, items []handoff.ServerInfo, machines []handoff.Machine) error {
	if len(items) == 0 {
		_, err := fmt.Fprintln(out, "no machines that you may use")
		return err
	}
	w := table(out, "MACHINE", "STATE", "KIND", "ABOUT")
	for _, s := range items {
		kind := strings.TrimSpace(s.Kind + " " + s.Version)
		if s.Simulated {
			kind += " (simulated)"
		}
		// Flush reports a failed write.
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", cell(s.Name, titleWidth), healthWord(s), cell(kind, titleWidth),
			cell(aboutServer(s, machines), 3*placeWidth))
	}
	return w.Flush()
}

// healthWord returns the state of a machine. One that is connected may refuse all work.
func healthWord(s handoff.ServerInfo) string {
	if s.Health == handoff.HealthUp && s.Problem != "" {
		return "refuses"
	}
	return string(s.Health)
}

// aboutServer describes a machine: its problem, work, projects, names, disk and battery.
func aboutServer(s handoff.ServerInfo, machines []handoff.Machine) string {
	var parts []string
	add := func(what string, names []string) {
		if len(names) > 0 {
			parts = append(parts, what+" "+strings.Join(names, ", "))
		}
	}
	if s.Problem != "" {
		parts = append(parts, strings.TrimSuffix(s.Problem+" → "+s.Next, " → "))
	}
	add("works on", s.Working)
	add("projects:", s.Projects)
	add("also called", s.Aliases)
	if i := slices.IndexFunc(machines, func(m handoff.Machine) bool { return m.Name == s.Name }); i >= 0 {
		if free := machines[i].DiskFree; free > 0 {
			parts = append(parts, fmt.Sprintf("%d GiB free", free>>30))
		}
		if battery := machines[i].Battery; battery > 0 && !machines[i].Charging {
			parts = append(parts, fmt.Sprintf("battery at %d %%", battery))
		}
	}
	return strings.Join(parts, "; ")
}

// table begins a table whose columns are as wide as their text.
func table(out io.Writer, heads ...string) *tabwriter.Writer {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, strings.Join(heads, "\t")) // Flush reports a failed write
	return w
}

// Sessions lists sessions, the newest first. An empty server or query means all; limit 0 means the service's default.
func (t *Terminal) Sessions(ctx context.Context, server, query string, limit int) error {
	params := url.Values{}
	for name, value := range map[string]string{"server": server, "query": query} {
		if value != "" {
			params.Set(name, value)
		}
	}
	if limit != 0 {
		params.Set("limit", strconv.Itoa(limit))
	}
	var all sessionPage
	for {
		var page sessionPage
		if left := limit - len(all.Items); left > 0 {
			params.Set("limit", strconv.Itoa(min(left, handoff.MaxSessions)))
		}
		if skip := len(all.Items); skip > 0 {
			params.Set("skip", strconv.Itoa(skip))
		}
		text, err := t.get(ctx, "/fleet/sessions?"+params.Encode(), &page)
		if err != nil {
			return err
		}
		if t.JSON { // one line for each page
			if err := t.line(text); err != nil {
				return err
			}
		}
		all.Items, all.More, all.Errors = append(all.Items, page.Items...), page.More, page.Errors
		if page.More == 0 || len(page.Items) == 0 || len(all.Items) >= limit {
			break
		}
	}
	if t.JSON {
		return nil
	}
	return t.writeSessions(all)
}

// A sessionPage is one page of sessions.
type sessionPage struct {
	Items []struct {
		handoff.SessionInfo
		Last *struct { // the last work that the same caller gave there
			outcomeFacts
			Outcome handoff.Outcome
			Said    string
		}
	}
	More   int
	Errors []handoff.ServerProblem
}

func (t *Terminal) writeSessions(found sessionPage) error {
	for _, p := range found.Errors {
		_, _ = fmt.Fprintln(t.Err, Plain(p.Message)) // the list is still useful
	}
	if len(found.Items) == 0 {
		_, err := fmt.Fprintln(t.Out, "no sessions")
		return err
	}
	w := table(t.Out, "MACHINE", "SESSION", "STATE", "USED", "LAST", "BRANCH", "DIRECTORY")
	for _, s := range found.Items {
		by := ""
		if s.API {
			by = ", by API"
		}
		last := "-"
		if s.Last != nil && s.Last.Outcome != "" {
			last = outcomeWord(s.Last.Outcome, s.Last.outcomeFacts) + ": " + s.Last.Said
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s%s\t%s\t%s\t%s\t%s\n", cell(s.Server, titleWidth),
			cell(sessionName(s.SessionInfo), placeWidth), cmp.Or(stateOf(s.Status), "-"), by,
			cell(s.Age, titleWidth), cell(strings.TrimSuffix(last, ": "), placeWidth),
			cell(cmp.Or(s.Branch, "-"), titleWidth), cell(s.Directory, placeWidth))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if found.More > 0 {
		_, _ = fmt.Fprintf(t.Err, "%d more: --limit shows more of them, --query finds some\n", found.More)
	}
	return nil
}

// stateOf returns the state of a session; "" if it is unknown, as for most sessions, which are only on disk.
func stateOf(s handoff.SessionStatus) string {
	if s == handoff.SessionUnknown {
		return ""
	}
	return string(s)
}

// sessionName returns the title of a session, or if other sessions have the same title, a name that is different: the
// session's label, or the title with the beginning of its id, which the verbs accept as a name, too.
func sessionName(s handoff.SessionInfo) string {
	bare := func(text string) string {
		return strings.Join(strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
			return !unicode.IsLetter(r) && !unicode.IsDigit(r)
		}), " ")
	}
	if s.Title != "" && strings.HasPrefix(bare(s.Title), bare(s.Label)) {
		return s.Title
	}
	if s.Title != "" && s.Label == s.ID {
		return fmt.Sprintf("%s [%.*s]", handoff.ClipRunes(s.Title, titleWidth-idWidth), idWidth, s.ID)
	}
	return cmp.Or(s.Label, s.Title, s.ID)
}

// Read shows the newest lines of a session, the oldest of them first.
func (t *Terminal) Read(ctx context.Context, server, thread string, limit int) error {
	path := "/fleet/sessions/" + url.PathEscape(server) + "/" + url.PathEscape(thread)
	if limit != 0 {
		path += "?limit=" + strconv.Itoa(limit)
	}
	var found handoff.Transcript
	return t.show(ctx, path, &found, func() error { return writeTranscript(t.Out, found) })
}

func writeTranscript(out io.Writer, found handoff.Transcript) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s on %s", cell(cmp.Or(found.Title, found.ID), titleWidth), cell(found.Server, titleWidth))
	if state := stateOf(found.Status); state != "" {
		b.WriteString(", " + state)
	}
	b.WriteString("\n")
	if found.More > 0 {
		fmt.Fprintf(&b, "(%d older lines are left out; --limit shows more)\n", found.More)
	}
	if len(found.Lines) == 0 {
		b.WriteString("\nnothing was said in it yet\n")
	}
	for _, line := range found.Lines {
		b.WriteString("\n" + margined(line.Role, line.Text) + "\n")
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// margined puts a margin before a text that shows its role: > for the person, $ for a command, none for the agent.
func margined(role, text string) string {
	mark := map[string]string{"user": "> ", "command": "$ ", "agent": ""}
	margin, known := mark[role]
	if !known {
		margin = role + ": "
	}
	if role == "user" {
		return indented(text, margin)
	}
	return margin + indented(text, strings.Repeat(" ", len(margin)))[len(margin):]
}
