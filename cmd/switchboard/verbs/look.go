package verbs

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"unicode"

	"switchboard/handoff"
)

// Widths of columns, in runes.
const (
	titleWidth = 40
	placeWidth = 50
	idWidth    = 13 // of an id's beginning that tells it from others: in those of Codex, the time
)

// Servers shows the machines.
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
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", cell(s.Name, titleWidth), s.Health, cell(kind, titleWidth),
			cell(aboutServer(s, machines), 3*placeWidth))
	}
	return w.Flush()
}

// aboutServer is what there is to say of a machine beside how it is.
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

// table begins columns that are as wide as what stands in them.
func table(out io.Writer, heads ...string) *tabwriter.Writer {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, strings.Join(heads, "\t")) // Flush reports a failed write
	return w
}

// Sessions shows sessions, the newest first. Empty words mean everything, limit 0 what the service gives by itself.
func (t *Terminal) Sessions(ctx context.Context, server, query string, limit int) error {
	asked := url.Values{}
	for name, value := range map[string]string{"server": server, "query": query} {
		if value != "" {
			asked.Set(name, value)
		}
	}
	if limit != 0 {
		asked.Set("limit", strconv.Itoa(limit))
	}
	var all sessionPage
	for {
		var page sessionPage
		if left := limit - len(all.Items); left > 0 {
			asked.Set("limit", strconv.Itoa(min(left, handoff.MaxSessions)))
		}
		if skip := len(all.Items); skip > 0 {
			asked.Set("skip", strconv.Itoa(skip))
		}
		text, err := t.get(ctx, "/fleet/sessions?"+asked.Encode(), &page)
		if err != nil {
			return err
		}
		if t.JSON { // a line a page
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

// A sessionPage is what the service lists of sessions.
type sessionPage struct {
	Items []struct {
		handoff.SessionInfo
		Last *struct { // the work that was asked for there last, by the same caller
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
		_, _ = fmt.Fprintln(t.Err, Plain(p.Message)) // the list is what was asked for
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

// stateOf is what a session does; "" where its agent only has it on disk, as it does most.
func stateOf(s handoff.SessionStatus) string {
	if s == handoff.SessionUnknown {
		return ""
	}
	return string(s)
}

// sessionName is the title of a session as it was written; where others have it too, what tells them apart. Where only
// the id does, that is its beginning, by which the session goes as well.
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

// margined shows by its margin who says something: > the person, $ a command, and nothing the agent.
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
