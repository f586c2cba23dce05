package verbs

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"

	"switchboard/cmd/switchboard/cli"
	"switchboard/handoff"
)

// Read is the verb that shows the newest lines of a session, the oldest of them first.
func Read(dial Dialer) *cli.Verb {
	var machine, session string
	var limit int
	return dial.verb(cli.Verb{
		Name: "read", Help: "Show what was said in a session.",
		Args: []cli.Arg{
			{Name: "machine", Into: &machine, Help: "The machine."},
			{Name: "session", Into: &session,
				Help: "The session: its title, as \"switchboard sessions\" shows it, or the beginning of its id."},
		},
		Flags:    []cli.Flag{{Name: "limit", Value: "N", Into: &limit, Help: "How many lines to show, the newest."}},
		Examples: []string{`switchboard read bigpc "auth refactor"`, `switchboard read bigpc auth --limit 200 | less`},
	}, func(ctx context.Context, t *Terminal) error {
		path := "/fleet/sessions/" + url.PathEscape(machine) + "/" + url.PathEscape(session)
		if limit != 0 {
			path += "?limit=" + strconv.Itoa(limit)
		}
		var found handoff.Transcript
		return t.show(ctx, path, &found, func() error { return writeTranscript(t.Out, found) })
	})
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
