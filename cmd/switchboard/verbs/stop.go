package verbs

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"switchboard/cmd/switchboard/cli"
	"switchboard/handoff"
)

// Stop is the verb that stops work.
func Stop(dial Dialer) *cli.Verb {
	var what string
	var all, sure, watching bool
	return dial.verb(cli.Verb{
		Name: "stop", Help: "Stop work.",
		Args: []cli.Arg{{Name: "work", Into: &what, Optional: true,
			Help: "The work, as \"switchboard work\" names it, or the machine that it runs on. Else what runs."}},
		Flags: []cli.Flag{
			{Name: "all", Into: &all, Help: "All of it, where several run."},
			{Name: "sure", Into: &sure, Help: "Also work that somebody else began, and that you watch."},
			{Name: "watching", Into: &watching, Help: "Only stop watching: what somebody else began goes on."},
		},
		Examples: []string{"switchboard stop", "switchboard stop bigpc", "switchboard stop 2m2vm344-1", "switchboard stop --all"},
		More: "Where several run it asks which, and in a script it stops none. What waits behind the work in its session " +
			"is paused; paused work that is stopped is dropped.",
	}, func(ctx context.Context, t *Terminal) error {
		switch {
		case sure && watching:
			return cli.Mistyped("--sure stops the work, and --watching lets it go on")
		case sure:
			return t.stop(ctx, what, all, "sure")
		case watching:
			return t.stop(ctx, what, all, "watching")
		}
		return t.stop(ctx, what, all, "")
	})
}

// stop stops work. what names it by its id or a part of the id (see idsOf), or names a machine whose work is stopped;
// "" means all that runs. If these are several pieces of work, it asks which one to stop, unless all is set. how says
// what becomes of watched work, as the API names it: with "sure" it is stopped, with "watching" it goes on unwatched.
func (t *Terminal) stop(ctx context.Context, what string, all bool, how string) error {
	works, err := t.works(ctx, false)
	if err != nil {
		return err
	}
	ids := idsOf(what, works)
	if len(ids) == 1 {
		return t.stopOne(ctx, works[slices.IndexFunc(works, func(w piece) bool { return w.ID == ids[0] })], how)
	}
	running := slices.DeleteFunc(works, func(w piece) bool {
		return w.Outcome != "" || how == "watching" && w.Why != handoff.WhyWatched ||
			what != "" && !strings.EqualFold(w.Server, what)
	})
	if !all {
		running = withoutQueued(running)
	}
	switch {
	case len(running) == 0 && len(ids) > 1:
		return several(what, ids)
	case len(running) == 0:
		return t.nothing(ctx, what)
	case len(running) > 1 && !all:
		if running, err = t.which(ctx, running); err != nil {
			return err
		}
	}
	for _, w := range running { // the newest first, so that work that waits does not begin when the older one stops
		err = errors.Join(err, t.stopOne(ctx, w, how))
	}
	return err
}

// stopOne stops one piece of work.
func (t *Terminal) stopOne(ctx context.Context, w piece, how string) error {
	if w.Why == handoff.WhyWatched && how == "" && w.Waits == "" {
		return fmt.Errorf("somebody else began %s on %s; to stop it all the same, add --sure, and to stop watching, --watching",
			w.ID, cell(w.Server, titleWidth))
	}
	path := "/fleet/handoffs/" + url.PathEscape(w.ID) + "/stop"
	if how != "" {
		path += "?" + how + "=true"
	}
	if _, err := t.call(ctx, http.MethodPost, path, struct{}{}, nil); err != nil || t.JSON {
		return err
	}
	did := "stopped"
	switch {
	case w.Paused:
		did = "dropped"
	case how == "watching":
		did = "no longer watched"
	}
	return t.say("%s on %s: %s", did, cell(w.Server, titleWidth), cell(w.Prompt, placeWidth))
}

// nothing prints that nothing is running, or returns an error if what names neither work nor a machine.
func (t *Terminal) nothing(ctx context.Context, what string) error {
	where := ""
	if what != "" {
		var found struct{ Items []handoff.ServerInfo }
		if _, err := t.get(ctx, "/fleet/servers", &found); err != nil {
			return err
		}
		if !slices.ContainsFunc(found.Items, func(s handoff.ServerInfo) bool { return strings.EqualFold(s.Name, what) }) {
			return fmt.Errorf("there is no work and no machine called %s; `%s work` lists your work", Plain(what), t.Name)
		}
		where = " on " + what
	}
	return t.say("nothing is running%s", where)
}

// which asks which of several pieces of work to stop.
func (t *Terminal) which(ctx context.Context, running []piece) ([]piece, error) {
	var b strings.Builder
	for _, w := range running {
		fmt.Fprintf(&b, "  %s  %s, %s: %s\n", w.ID, cell(w.Server, titleWidth), handoff.Ago(time.Now(), w.CreatedAt),
			cell(w.Prompt, placeWidth))
	}
	if t.Ask == nil {
		return nil, fmt.Errorf("%d pieces of work run, so name one, or give --all:\n%s", len(running), &b)
	}
	_, _ = fmt.Fprint(t.Err, &b) // the prompt says what to type, even without the list
	text, err := t.Ask(ctx, "Which one? Its id, the number at its end, or all: ")
	if err != nil || strings.EqualFold(text, "all") {
		return running, err
	}
	ids := idsOf(text, running)
	if len(ids) != 1 {
		return nil, errors.New("nothing was stopped")
	}
	return slices.DeleteFunc(running, func(w piece) bool { return w.ID != ids[0] }), nil
}

// withoutQueued leaves out work that waits behind other work of the list: stopping the other work pauses it.
func withoutQueued(running []piece) []piece {
	return slices.DeleteFunc(slices.Clone(running), func(w piece) bool {
		return slices.ContainsFunc(running, func(first piece) bool { return w.Behind(first.Record) })
	})
}

// workID returns the id of the work that said names by a part of it, or said itself if there is no such work.
func (t *Terminal) workID(ctx context.Context, said string) (string, error) {
	works, err := t.works(ctx, false)
	if err != nil {
		return "", err
	}
	switch ids := idsOf(said, works); len(ids) {
	case 0:
		return said, nil
	case 1:
		return ids[0], nil
	default:
		return "", several(said, ids)
	}
}

// several returns the error for a part of an id that names several pieces of work.
func several(said string, ids []string) error {
	return fmt.Errorf("%s may mean %s", Plain(said), strings.Join(ids[:min(len(ids), 10)], " or "))
}

// idsOf returns the ids of the work that said names: by a whole id, or else by the number at the end of one, or else by
// its beginning.
func idsOf(said string, works []piece) []string {
	_, err := strconv.ParseUint(said, 10, 64)
	number := err == nil
	for _, is := range []func(id string) bool{
		func(id string) bool { return id == said },
		func(id string) bool { return number && strings.HasSuffix(id, "-"+said) },
		func(id string) bool { return said != "" && strings.HasPrefix(id, said) },
	} {
		var ids []string
		for _, w := range works {
			if is(w.ID) {
				ids = append(ids, w.ID)
			}
		}
		if len(ids) > 0 {
			return ids
		}
	}
	return nil
}
