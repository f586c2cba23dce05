package verbs

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"switchboard/cmd/switchboard/cli"
	"switchboard/handoff"
)

// Work is the verb that lists the work that needs an answer, runs, waits or is paused, and the newest that has ended.
func Work(dial Dialer) *cli.Verb {
	var machine string
	var failed bool
	limit := 10
	return dial.verb(cli.Verb{
		Name: "work", Help: "Show work: what runs, waits or is paused, and what ended lately.",
		Args: []cli.Arg{{Name: "machine", Into: &machine, Optional: true,
			Help: "The machine whose work to show; else all."}},
		Flags: []cli.Flag{
			{Name: "limit", Value: "N", Into: &limit, Help: "How much finished work to show."},
			{Name: "failed", Into: &failed, Help: "Only what failed, crashed or was lost on the way, or whose tests fail."},
		},
		Examples: []string{"switchboard work", "switchboard work bigpc --limit 50", "switchboard work --failed"},
		More: "Work is named by its id, by the beginning of it, or by the number at its end: \"switchboard stop 3\" " +
			"stops 2m2vm344-3.",
	}, func(ctx context.Context, t *Terminal) error { return t.work(ctx, machine, limit, failed) })
}

// Status is the verb that says in sentences what runs, what waits for an answer, and what ended lately.
func Status(dial Dialer) *cli.Verb {
	return dial.verb(cli.Verb{
		Name: "status", Help: "Say what runs, what waits for you, and what ended lately.",
		Examples: []string{"switchboard status", "switchboard status --json"},
	}, func(ctx context.Context, t *Terminal) error {
		var found struct {
			Say string `json:"say"`
		}
		return t.show(ctx, "/fleet/status", &found, func() error {
			return t.say("%s", found.Say)
		})
	})
}

// maxPage is the most pieces of work in one answer of the service.
const maxPage = 100

// A piece is a piece of work in a list.
type piece struct {
	handoff.Record
	outcomeFacts
	asks bool // a question of it waits for an answer
}

// outcomeFacts are details of an outcome.
type outcomeFacts struct {
	Tests    handoff.Tests
	Declined bool
	Crashed  bool
}

// A workPage is one page of work, newest first.
type workPage struct {
	Items      []piece
	More       int
	Incomplete bool
}

// works returns all work that the service knows, newest first; failed leaves only the work that failed, crashed or was
// lost, or whose tests fail.
func (t *Terminal) works(ctx context.Context, failed bool) (all []piece, err error) {
	var open struct{ Items []handoff.RecordQuestion }
	if _, err := t.get(ctx, "/fleet/questions", &open); err != nil {
		return nil, err
	}
	page := workPage{More: 1}
	for before := ""; page.More > 0; before = page.Items[len(page.Items)-1].ID {
		page = workPage{}
		if _, err := t.get(ctx, workPath(maxPage, before, failed), &page); err != nil {
			return nil, err
		}
		all = append(all, page.Items...)
		if len(page.Items) == 0 {
			break
		}
	}
	if page.Incomplete { // the list is still useful
		_, _ = fmt.Fprintln(t.Err, "what was going on before the last start cannot be read yet")
	}
	for i, w := range all {
		all[i].asks = slices.ContainsFunc(open.Items, func(q handoff.RecordQuestion) bool { return q.Handoff == w.ID })
	}
	return all, nil
}

// workPath returns the path of a page of work; before is the id of the last work on the page before it, or "".
func workPath(limit int, before string, failed bool) string {
	query := url.Values{"limit": {strconv.Itoa(limit)}}
	if before != "" {
		query.Set("before", before)
	}
	if failed {
		query.Set("failed", "true")
	}
	return "/fleet/handoffs?" + query.Encode()
}

// work lists the work that needs an answer, runs, waits or is paused, and the newest that has ended, on one machine, or
// on all machines for "". With failed it lists only what failed, crashed or was lost, or whose tests fail.
func (t *Terminal) work(ctx context.Context, server string, limit int, failed bool) error {
	if t.JSON {
		return t.show(ctx, workPath(min(max(limit, 1), maxPage), "", failed), &workPage{}, nil)
	}
	works, err := t.works(ctx, failed)
	if err != nil {
		return err
	}
	works = slices.DeleteFunc(works, func(w piece) bool {
		return server != "" && !strings.EqualFold(w.Server, server) || w.went()
	})
	slices.SortStableFunc(works, func(a, b piece) int { return cmp.Compare(a.rank(), b.rank()) })
	open, _ := slices.BinarySearchFunc(
		works, len(ranks), func(w piece, rank int) int { return cmp.Compare(w.rank(), rank) },
	)
	keep := min(len(works), open+max(limit, 0))
	if keep == 0 {
		return t.say("no work")
	}
	rows := table(t.Out, "ID", "MACHINE", "SESSION", "STATE", "WHEN", "WORK")
	for _, w := range works[:keep] {
		when := w.CreatedAt
		if w.EndedAt != nil {
			when = *w.EndedAt
		}
		// Flush reports a failed write.
		_, _ = fmt.Fprintf(rows, "%s\t%s\t%s\t%s\t%s\t%s\n", w.ID, cell(w.Server, titleWidth),
			cell(cmp.Or(w.Title, "-"), titleWidth), w.state(), handoff.Ago(time.Now(), when), cell(w.Prompt, placeWidth))
	}
	if err := rows.Flush(); err != nil {
		return err
	}
	if more := len(works) - keep; more > 0 {
		_, _ = fmt.Fprintf(t.Err, "%d more have ended: --limit shows more of them\n", more)
	}
	return nil
}

// ranks are the states of work that has not ended, in the order of a list.
var ranks = []string{"Needs you", "Working", "Waiting", "Paused"}

// rank returns the place of work in a list; ended work comes last.
func (w piece) rank() int {
	if at := slices.Index(ranks, w.state()); at >= 0 {
		return at
	}
	return len(ranks)
}

// state returns the state of work, in the words of the page.
func (w piece) state() string {
	switch {
	case w.Paused:
		return "Paused"
	case w.Outcome == "" && w.asks:
		return "Needs you"
	case w.Outcome == "" && w.Waits != "":
		return "Waiting"
	case w.Outcome == "":
		return "Working"
	}
	return outcomeWord(w.Outcome, w.outcomeFacts)
}

// outcomeWord returns how work ended, in the words of the page.
func outcomeWord(o handoff.Outcome, facts outcomeFacts) string {
	switch {
	case facts.Crashed:
		return "Crashed"
	case o == handoff.OutcomeResult && facts.Declined:
		return "Declined"
	case o == handoff.OutcomeResult && facts.Tests == handoff.TestsFailed:
		return "Tests fail"
	}
	return map[handoff.Outcome]string{
		handoff.OutcomeResult: "Done", handoff.OutcomeFailed: "Failed", handoff.OutcomeInterrupted: "Stopped",
		handoff.OutcomeCancelled: "Stopped", handoff.OutcomeUnknown: "Unclear",
	}[o]
}

// went reports whether a record lives on in another record, and is not shown itself: its words went into other running
// work, or it was paused and begun again as new work.
func (w piece) went() bool {
	return w.Why == handoff.WhyAdded || !w.Paused && w.Error != nil && w.Error.Code.Asks()
}
