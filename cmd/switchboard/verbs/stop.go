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

	"switchboard/handoff"
)

// Stop stops work. what names it by its id or a part of the id (see idsOf), or names a machine whose work is stopped;
// "" means all that runs. If these are several pieces of work, Stop asks which one to stop, unless all is set.
func (t *Terminal) Stop(ctx context.Context, what string, all bool) error {
	works, err := t.works(ctx)
	if err != nil {
		return err
	}
	ids := idsOf(what, works)
	if len(ids) == 1 {
		return t.stop(ctx, works[slices.IndexFunc(works, func(w piece) bool { return w.ID == ids[0] })])
	}
	running := slices.DeleteFunc(works, func(w piece) bool {
		return w.Outcome != "" || what != "" && !strings.EqualFold(w.Server, what)
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
		err = errors.Join(err, t.stop(ctx, w))
	}
	return err
}

// stop stops one piece of work.
func (t *Terminal) stop(ctx context.Context, w piece) error {
	path := "/fleet/handoffs/" + url.PathEscape(w.ID) + "/stop"
	if _, err := t.call(ctx, http.MethodPost, path, struct{}{}, nil); err != nil || t.JSON {
		return err
	}
	did := "stopped"
	if w.Paused {
		did = "dropped"
	}
	_, err := fmt.Fprintf(t.Out, "%s on %s: %s\n", did, cell(w.Server, titleWidth), cell(w.Prompt, placeWidth))
	return err
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
		where = " on " + Plain(what)
	}
	_, err := fmt.Fprintf(t.Out, "nothing is running%s\n", where)
	return err
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
	works, err := t.works(ctx)
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
