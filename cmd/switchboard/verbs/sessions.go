package verbs

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"unicode"

	"switchboard/cmd/switchboard/cli"
	"switchboard/handoff"
)

// Sessions is the verb that lists sessions, the newest first.
func Sessions(dial Dialer) *cli.Verb {
	var machine, query string
	var limit int
	return dial.verb(cli.Verb{
		Name: "sessions", Help: "Show sessions, the newest first.",
		Args: []cli.Arg{{Name: "machine", Into: &machine, Optional: true, Help: "The machine to ask; else all."}},
		Flags: []cli.Flag{
			{Name: "query", Short: "q", Value: "WORDS", Into: &query, Help: "Words of the title or of what was asked first."},
			{Name: "limit", Value: "N", Into: &limit, Help: "How many to show, the newest; 10 without it."},
		},
		Examples: []string{"switchboard sessions", "switchboard sessions bigpc --query auth",
			"switchboard sessions --limit 500"},
	}, func(ctx context.Context, t *Terminal) error { return t.sessions(ctx, machine, query, limit) })
}

// Worktree is the verb that removes the worktree of a session.
func Worktree(dial Dialer) *cli.Verb {
	var machine, session string
	return dial.verb(cli.Verb{
		Name: "remove-worktree", Help: "Remove the worktree of a session, and its branch.",
		Args: []cli.Arg{
			{Name: "machine", Into: &machine, Help: "The machine."},
			{Name: "session", Into: &session,
				Help: "The session: its title, as \"switchboard sessions\" shows it, or the beginning of its id."},
		},
		Examples: []string{`switchboard remove-worktree bigpc "fix the login"`},
		More: "git refuses it if something would be lost: changes that are not committed, new files, or commits that are " +
			"neither merged nor pushed. Files that git ignores are removed.",
	}, func(ctx context.Context, t *Terminal) error {
		path := "/fleet/sessions/" + url.PathEscape(machine) + "/" + url.PathEscape(session) + "/worktree"
		return t.do(ctx, http.MethodDelete, path, nil, "removed")
	})
}

// sessions lists sessions, the newest first. An empty server or query means all; limit 0 means the service's default.
func (t *Terminal) sessions(ctx context.Context, server, query string, limit int) error {
	params := url.Values{"server": {server}, "query": {query}}
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
		return t.say("no sessions")
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
