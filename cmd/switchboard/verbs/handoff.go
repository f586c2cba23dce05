package verbs

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"switchboard/cmd/switchboard/cli"
	"switchboard/handoff"
)

// An Outcome is the error of work that ended without a result. The verb has printed the outcome.
type Outcome handoff.Outcome

// Error names the outcome.
func (o Outcome) Error() string { return "the work has no result: " + string(o) }

// Exit codes of work, beside those of the program.
const (
	ExitFailed   = 1
	ExitStopped  = 3
	ExitNotBegun = 4
	ExitUnknown  = 5
	ExitLeft     = 130 // by Ctrl-C, as shells have it
)

// ExitCode returns the exit code for the outcome.
func (o Outcome) ExitCode() int {
	switch handoff.Outcome(o) {
	case handoff.OutcomeInterrupted:
		return ExitStopped
	case handoff.OutcomeCancelled:
		return ExitNotBegun
	case handoff.OutcomeUnknown:
		return ExitUnknown
	}
	return ExitFailed
}

// Handoff is the verb that gives work and follows it, or follows or stops work that was given before.
func Handoff(dial Dialer, stdin io.Reader) *cli.Verb {
	var o order
	var prompt []string
	var next, aside, watch bool
	var follow, stop string
	return dial.verb(cli.Verb{
		Name: "handoff", Help: "Give work to a machine, and follow it to its end.",
		Args: []cli.Arg{
			{Name: "machine", Into: &o.Server, Optional: true, Help: "The machine, or machine/project."},
			{Name: "prompt", Into: &prompt, Optional: true, Help: "What to do; - reads it from standard input."},
		},
		Flags: []cli.Flag{
			{Name: "thread", Short: "t", Value: "SESSION", Into: &o.Thread,
				Help: "The session to go on with: its name, title or id; or new. Else the one that you last used there."},
			{Name: "next", Into: &next, Not: "aside", Help: "After the current work there, not into it."},
			{Name: "aside", Into: &aside, Help: "Beside it, as a side question that is not kept."},
			{Name: "watch", Into: &watch, Help: "Give no work: follow what somebody else begins in --thread, turn after turn."},
			{Name: "worktree", Into: &o.Worktree, Help: "In a new session with a worktree and a branch of its own."},
			{Name: "goal", Into: &o.Goal, Not: "aside", Help: "Until that is reached: it is the goal of the session, too."},
			{Name: "idempotency-key", Value: "NAME", Into: &o.Key,
				Help: "Your own name for this work: given again with the same words, it is followed and not begun twice."},
			{Name: "follow", Value: "ID", Into: &follow, Not: "stop",
				Help: "Show work that was given before; see \"switchboard work\"."},
			{Name: "stop", Value: "ID", Into: &stop, Help: "Stop it, as \"switchboard stop\" does."},
		},
		Examples: []string{"switchboard handoff bigpc run the tests",
			`switchboard handoff bigpc --thread "auth refactor" "fix what fails"`,
			"switchboard handoff laptop/api - < task.md > answer.md", "switchboard handoff bigpc --thread auth --watch",
			"switchboard handoff --follow 2m2vm344-1"},
		More: "What the agent says goes to standard output, the rest to standard error. Exit codes: 0 it is done, 1 it " +
			"failed, 2 what was typed is wrong, 3 it was stopped, 4 it was not begun, 5 nobody knows, 130 you left with " +
			"Ctrl-C, and the work goes on.",
	}, func(ctx context.Context, t *Terminal) error {
		switch named := cmp.Or(follow, stop) != ""; {
		case named && o.Server != "":
			return cli.Mistyped("--follow and --stop take the id of work alone")
		case stop != "":
			return t.stop(ctx, stop, false, "")
		case follow != "":
			return t.outcome(t.follow(ctx, follow))
		case watch && (o.Server == "" || o.Thread == "" || len(prompt) > 0 || next || aside || o.Goal):
			return cli.Mistyped("--watch goes with a machine and --thread alone, as in: switchboard handoff bigpc --thread auth --watch")
		case watch:
			o.Mode = "watch"
			return t.outcome(t.give(ctx, o))
		case o.Server == "" || len(prompt) == 0:
			return cli.Mistyped("needs a machine and what to do there, as in: switchboard handoff bigpc run the tests")
		case !Sendable(o.Key):
			return cli.Mistyped("--idempotency-key %q is no name: it begins or ends with a space, or has a control character "+
				"in it", o.Key)
		}
		var err error
		if o.Prompt, err = promptOf(ctx, prompt, stdin); err != nil {
			return err
		}
		switch {
		case next:
			o.Mode = "next"
		case aside:
			o.Mode = "aside"
		}
		return t.outcome(t.give(ctx, o))
	})
}

// outcome returns the error for the end of work: an [Outcome] if it has no result.
func (t *Terminal) outcome(o handoff.Outcome, err error) error {
	if err == nil && o != handoff.OutcomeResult {
		return Outcome(o)
	}
	return err
}

// ends prints an error and returns o as the error of the verb. It returns an error that is an outcome already, and any
// after the end of ctx, as it is.
func (t *Terminal) ends(ctx context.Context, err error, o handoff.Outcome) error {
	if _, ended := errors.AsType[Outcome](err); err == nil || ended || ctx.Err() != nil {
		return err
	}
	_, _ = fmt.Fprintln(t.Err, "switchboard:", Plain(err.Error())) // for people
	return Outcome(o)
}

// promptOf returns the prompt, as it was typed, or read from standard input where it is "-".
func promptOf(ctx context.Context, typed []string, stdin io.Reader) (string, error) {
	if !slices.Equal(typed, []string{"-"}) {
		return strings.Join(typed, " "), nil
	}
	text, err := Typed(ctx, func() (string, error) {
		text, err := io.ReadAll(io.LimitReader(stdin, handoff.MaxPrompt+1)) // the service refuses what is too long
		return string(text), err
	})
	if err == nil && strings.TrimSpace(text) == "" {
		err = cli.Mistyped("there is nothing on standard input")
	}
	return text, err
}

// Typed reads what somebody types, until ctx ends. A read at a terminal cannot be cancelled: it then goes on until the
// program ends.
func Typed(ctx context.Context, read func() (string, error)) (string, error) {
	var text string
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		text, err = read()
	}()
	select {
	case <-ctx.Done():
		return "", context.Cause(ctx)
	case <-done:
		return text, err
	}
}

// triesToGive is how often the request for work is sent if no answer arrives. Its idempotency key makes the work begin
// once.
const triesToGive = 3

// heardWithin bounds how long a verb tries at its end to report that the outcome was seen.
const heardWithin = 2 * time.Second

// An order is work to give.
type order struct {
	Server   string `json:"server"`              // "bigpc", or "bigpc/api" for a project
	Thread   string `json:"thread_id,omitempty"` // a name or id of a session, "new", or "" for the one in use there
	Prompt   string `json:"prompt"`
	Mode     string `json:"mode"`               // now, next, aside or watch; "" is now
	Worktree bool   `json:"worktree,omitempty"` // a new session begins in a worktree of its own
	Goal     bool   `json:"goal,omitempty"`     // the prompt is the goal of the session, too
	Key      string `json:"-"`                  // the idempotency key, under which the work begins once; "": a random one
}

// give gives work and follows it to its outcome. If ctx ends earlier, the work goes on, and it returns the error of
// ctx. If it is unknown whether the work began, it prints the idempotency key with which the work can be given again.
func (t *Terminal) give(ctx context.Context, o order) (handoff.Outcome, error) {
	again := o.Key != "" // perhaps: an earlier command may have given the work under this name
	o.Mode, o.Key = cmp.Or(o.Mode, "now"), cmp.Or(o.Key, rand.Text())
	id, refused, err := t.promise(ctx, o)
	switch {
	case err == nil:
		last, err := t.follow(ctx, id)
		return last, t.ends(ctx, err, handoff.OutcomeUnknown)
	case refused && (!again || isRefusal(err)):
		return "", t.ends(ctx, err, handoff.OutcomeCancelled)
	}
	err = t.ends(ctx, err, handoff.OutcomeUnknown)
	_, _ = fmt.Fprintf(t.Err,
		"\nNobody knows whether the work began. Run the same command again with --idempotency-key %s, and it begins once.\n",
		o.Key)
	return "", err
}

// promise sends the request for work until the service answers, at most triesToGive times. refused says that no try
// began work. If an earlier try got no answer, a refusal does not mean that nothing began.
func (t *Terminal) promise(ctx context.Context, o order) (id string, refused bool, err error) {
	header := http.Header{"Content-Type": {"application/json"}, "Idempotency-Key": {o.Key}}
	refused = true
	for try := 1; ; try++ {
		text, err := t.call(ctx, http.MethodPost, "/fleet/handoffs", o, header)
		answered := isRefusal(err)
		refused = refused && (answered || NobodyListens(err))
		if err == nil || answered || ctx.Err() != nil || try == triesToGive {
			var given handoff.Record
			err = decode(text, err, &given)
			return given.ID, refused, err
		}
		select {
		case <-time.After(againAfter):
		case <-ctx.Done():
			return "", refused, err
		}
	}
}

// isRefusal reports whether an error means that this request began no work: the service itself refused it, or a proxy
// before it did. Other errors of the service can also mean that it ended, or was lost, while it read the request.
func isRefusal(err error) bool {
	f, answered := errors.AsType[*Fault](err)
	return answered && (f.Code.Unbegun() || f.Status < http.StatusInternalServerError)
}

func isNotFound(err error) bool {
	f, answered := errors.AsType[*Fault](err)
	return answered && f.Code == handoff.CodeNotFound
}

// follow prints work from its beginning to its outcome. If the words of the work went into other work, it goes on with
// that; if the work watches a session, it goes on until the watch is over, and returns the outcome of its last turn.
// Work that failed before it began counts as cancelled. The outcome of work that cannot be followed is unknown, because
// it goes on.
func (t *Terminal) follow(ctx context.Context, id string) (last handoff.Outcome, err error) {
	for {
		record, into, err := t.followOne(ctx, id)
		switch {
		case err != nil && ctx.Err() != nil:
			_, _ = fmt.Fprintf(t.Err,
				"\nThe work goes on. See it again with `%[1]s handoff --follow %[2]s`, end it with `%[1]s handoff --stop %[2]s`.\n", t.Name, id)
			return "", context.Cause(ctx)
		case isNotFound(err):
			whole, lookErr := t.workID(ctx, id)
			if lookErr != nil || whole == id {
				return "", cmp.Or(lookErr, err)
			}
			id = whole
			continue
		case err != nil:
			return "", t.ends(ctx, err, handoff.OutcomeUnknown)
		case into == "" && record.Why == handoff.WhyWatched:
			if id, err = t.nextWatched(ctx, record); err != nil {
				return "", t.ends(ctx, err, handoff.OutcomeUnknown)
			}
			if last == "" || record.Outcome != handoff.OutcomeCancelled { // else no turn came any more
				last = record.Outcome
			}
			if id == "" {
				return last, nil
			}
			continue
		case into == "" && record.Outcome == handoff.OutcomeFailed && record.Error != nil && record.Error.Code.Unbegun():
			return handoff.OutcomeCancelled, nil
		case into == "":
			return record.Outcome, nil
		}
		id = into
	}
}

// nextWatched returns the work that goes on with a watch when its turn has ended; "": the watch is over.
func (t *Terminal) nextWatched(ctx context.Context, was handoff.Record) (id string, err error) {
	var page workPage
	_, err = t.get(ctx, workPath(maxPage, "", false), &page)
	for _, w := range page.Items { // newest first
		if w.Why == was.Why && w.Server == was.Server && w.ThreadID == was.ThreadID && w.CreatedAt.After(was.CreatedAt) {
			id = w.ID
		}
	}
	return id, err
}

// followOne prints one piece of work. into is the id of the work that its words went into, or "".
func (t *Terminal) followOne(ctx context.Context, id string) (record handoff.Record, into string, err error) {
	shown := newTalk(t)
	away := func(err error) { shown.note("(%v; trying again)", err) }
	path := "/fleet/handoffs/" + url.PathEscape(id)
	for data, err := range t.events(ctx, path+"/events", away) {
		// There are no events for work of an earlier process of the service; its record is read below.
		if err != nil && !isNotFound(err) {
			return record, "", err
		}
		var e runLine
		if err != nil || json.Unmarshal(data, &e) != nil {
			continue
		}
		if t.JSON {
			shown.writeErr = cmp.Or(shown.writeErr, t.line(data)) // go on for the outcome
		} else {
			shown.tell(e)
		}
		into = cmp.Or(e.Into, into)
		if e.Record != nil && e.Record.Outcome != "" && (e.Type == "ended" || e.Type == "snapshot") {
			return t.ended(ctx, shown, *e.Record), into, nil
		}
	}
	if _, err := t.get(ctx, path, &record); err != nil {
		return record, "", err
	}
	if record.Outcome == "" {
		return record, "", fmt.Errorf("the work goes on, and nobody can tell about it from here: see it with `%s handoff "+
			"--follow %s`", t.Name, id)
	}
	return t.ended(ctx, shown, record), into, nil
}

// ended prints the outcome. If everything was written, it reports the outcome as heard, so that no call tells it again.
func (t *Terminal) ended(ctx context.Context, shown *talk, record handoff.Record) handoff.Record {
	if !t.JSON {
		shown.end(record)
	}
	if shown.writeErr == nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), heardWithin)
		defer cancel()
		// If this fails, the next call tells the outcome again.
		_, _ = t.call(ctx, http.MethodPost, "/fleet/handoffs/"+url.PathEscape(record.ID)+"/heard", struct{}{}, nil)
	}
	return record
}
