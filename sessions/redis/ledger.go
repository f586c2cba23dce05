package redis

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
	"switchboard/sessions"
)

const (
	// ledgerWithin bounds one round trip: a person waits to hear that nothing was started.
	ledgerWithin = 900 * time.Millisecond
	// resultMade is the result of ledger.lua when there was no entry: the new entry is what the table makes of the
	// step.
	resultMade ledger.Result = "made"
	// ledgerPage is how many open entries one script reads; the Redis does nothing else meanwhile.
	ledgerPage = 128
)

var (
	ledgerScript = fenced("ledger")
	openScript   = script("open")
)

// handoffs stores the ledger and the history.
type handoffs struct{ *engine }

// Advance writes one step of the ledger in one round trip; see [ledger.Ledger].
func (s handoffs) Advance(ctx context.Context, step ledger.Step) (ledger.Entry, error) {
	step, err := step.Check()
	if err != nil {
		return ledger.Entry{}, err
	}
	name, err := sessions.CallerName(step.Caller)
	if err != nil {
		return ledger.Entry{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.within)
	defer cancel()
	if err := s.enter(ctx, name); err != nil {
		return ledger.Entry{}, err
	}
	if err := s.own(ctx, step); err != nil {
		return ledger.Entry{}, err
	}
	keys := []string{
		s.key(name, entryKey) + step.Key, s.key(name, openKey), s.key(name, bodyKey) + step.Key, s.key(name, unheardKey),
		s.key(name, historyKey),
	}
	result, found, err := s.runStep(ctx, keys, step, name, ledger.Entry{})
	if err == nil && found.Anew(step) { // the script checks that the entry is still this one
		result, found, err = s.runStep(ctx, keys, step, name, found)
	}
	switch {
	case err != nil:
		return ledger.Entry{}, err
	case result == resultMade:
		return ledger.Entry{}.Apply(step)
	}
	return found, result.Fault(found, step)
}

// runStep runs ledger.lua. It returns the script's result and the entry as it is then. If the entry is still former,
// the script removes it first and makes a new one.
func (s handoffs) runStep(
	ctx context.Context, keys []string, step ledger.Step, name string, former ledger.Entry,
) (ledger.Result, ledger.Entry, error) {
	newest, epoch, err := s.fence(name)
	if err != nil {
		return "", ledger.Entry{}, err
	}
	keys, args := append([]string{newest}, keys...), append([]any{epoch}, s.ledgerArgs(step, name, former)...)
	// Only accepted and dispatching must outlive this Redis: somebody is told of them, or a turn starts after them.
	run := s.promised
	if step.To != handoff.StatusAccepted && step.To != handoff.StatusDispatching {
		run = func(ctx context.Context, script *goredis.Script, keys []string, args ...any) *goredis.Cmd {
			return script.Run(ctx, s.client, keys, args...)
		}
	}
	reply, err := run(ctx, ledgerScript, keys, args...).Slice()
	if err != nil {
		return "", ledger.Entry{}, s.fault(err)
	}
	var result string
	var flat []any
	if !replied(reply, &result, &flat) {
		return "", ledger.Entry{}, unexpected("ledger")
	}
	if len(flat) == 0 {
		return ledger.Result(result), ledger.Entry{}, nil
	}
	entry, ok := parseEntry(flat)
	if !ok {
		s.badEntry(keys[1])
		return "", ledger.Entry{}, unreadable()
	}
	return ledger.Result(result), entry, nil
}

// unreadable is the error about an entry that cannot be parsed.
func unreadable() error {
	return handoff.Fault(handoff.CodeInternal, "", "an entry of the ledger cannot be read")
}

// Open returns a caller's undelivered entries, oldest first.
func (s handoffs) Open(ctx context.Context, c handoff.Caller) ([]ledger.Entry, error) {
	name, err := sessions.CallerName(c)
	if err != nil {
		return nil, err
	}
	return s.openEntries(ctx, name)
}

// own stores for which caller the thread of a step was made, before the thread is used. The first owner stays.
func (s handoffs) own(ctx context.Context, step ledger.Step) error {
	if !step.Makes() {
		return nil
	}
	t := step.Set.Target
	owned := handoff.Encode(ledger.Owned{Server: t.Server, Thread: t.Thread, Caller: step.Caller})
	return s.fault(s.first(ctx, s.ownedKey(), func(p goredis.Pipeliner) {
		p.ZAddNX(ctx, s.ownedKey(), goredis.Z{Score: float64(step.At.UnixMilli()), Member: owned})
		p.ZRemRangeByRank(ctx, s.ownedKey(), 0, -1-ledger.MaxOwned)
	}))
}

// OpenAll returns the undelivered entries, oldest first, of every caller whom this life has. Where one life at a time
// uses the store, it takes over the callers of all dead lives.
func (s handoffs) OpenAll(ctx context.Context) ([]ledger.Entry, error) {
	var all []ledger.Entry
	found := map[string]bool{} // by name: whether the caller has open entries
	read := func(name string) (bool, error) {
		if there, was := found[name]; was {
			return there, nil
		}
		entries, err := s.openEntries(ctx, name)
		if handoff.CodeOf(err) == handoff.CodeInternal { // one bad list must not hide the others
			s.badEntry(s.key(name, openKey))
			found[name], err = true, nil
		} else {
			found[name] = len(entries) > 0
		}
		all = append(all, entries...)
		return found[name], err
	}
	mine, err := s.indexed(ctx, s.id)
	for _, name := range append(mine, s.names()...) {
		if err == nil {
			_, err = read(name)
		}
	}
	if err == nil && !s.shared {
		err = s.inherit(ctx, read)
	}
	if err != nil {
		return nil, err
	}
	sortEntries(all)
	return all, nil
}

// inherit takes over the callers of dead lives. A caller with open entries stays in an index all the time.
func (s handoffs) inherit(ctx context.Context, read func(name string) (found bool, err error)) error {
	lives, err := Homes(s).Beats(ctx)
	if err != nil {
		return err
	}
	for _, gone := range lives {
		if gone.ID == s.id {
			continue
		}
		names, err := s.indexed(ctx, gone.ID)
		if err != nil {
			return err
		}
		for _, name := range names {
			if gone.Address != "" { // that life used homes: its writes were in the epoch of the home
				if _, err := Homes(s).take(ctx, name, gone.ID); err != nil {
					return err
				}
			}
			switch found, err := read(name); {
			case err != nil:
				return err
			case found:
				s.hold(name, 0)
			}
		}
		if err := s.index(ctx, true); err != nil {
			return err
		}
		if err := s.forget(ctx, gone, names); err != nil { // after the callers are in the index of this life
			return err
		}
	}
	return nil
}

// openEntries reads a caller's open entries page by page. An entry that is made or delivered meanwhile may be there or
// not.
func (s handoffs) openEntries(ctx context.Context, name string) ([]ledger.Entry, error) {
	var all []ledger.Entry
	seen := map[string]bool{}
	for skip := int64(0); skip >= 0; {
		next, rows, err := s.openPage(ctx, name, skip)
		if err != nil {
			return nil, err
		}
		for _, row := range rows {
			e, ok := parseEntry(row)
			switch {
			case !ok: // one bad entry must not hide the others
				s.badEntry(s.key(name, openKey))
			case e.Status != handoff.StatusDelivered && !seen[e.Key]:
				seen[e.Key] = true
				all = append(all, e)
			}
		}
		skip = next
	}
	sortEntries(all)
	return all, nil
}

func (s handoffs) openPage(ctx context.Context, name string, skip int64) (next int64, rows []any, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.within)
	defer cancel()
	keys := []string{s.key(name, openKey)}
	reply, err := openScript.Run(ctx, s.client, keys, s.key(name, entryKey), skip, ledgerPage).Slice()
	if err == nil && !replied(reply, &next, &rows) {
		return 0, nil, unexpected("ledger")
	}
	return next, rows, s.fault(err)
}

func sortEntries(all []ledger.Entry) {
	slices.SortFunc(all, func(a, b ledger.Entry) int {
		return cmp.Or(a.Accepted.Compare(b.Accepted), cmp.Compare(a.Key, b.Key))
	})
}

// The kinds of a caller's keys. The hash of an entry and the hash of its whole texts end in the key of the handoff.
// The others are sorted sets of handoffs: open ones by when they were accepted, unheard ones by when they ended,
// history by when it became that.
const (
	entryKey, bodyKey               = "handoff:", "body:"
	openKey, unheardKey, historyKey = "open", "unheard", "history"
)

// ledgerArgs returns the arguments of ledger.lua for a checked step. former is the entry that the step replaces,
// without a status if there is none.
func (s handoffs) ledgerArgs(step ledger.Step, name string, former ledger.Entry) []any {
	attempt, turn := "", ""
	switch step.To {
	case handoff.StatusDispatching:
		attempt = strconv.Itoa(step.Attempt)
	case handoff.StatusStarted:
		turn = string(step.Set.Turn)
	}
	at := strconv.FormatInt(step.At.UnixMilli(), 10)
	first := []any{
		"key", step.Key, "principal", step.Caller.Principal, "user", step.Caller.User, "owner", step.Owner,
		"args", step.Args, "accepted", at,
	}
	args := make([]any, 0, 80)
	args = append(args, step.Owner, step.Args, string(step.To), attempt, flag(step.New), flag(step.Adopt),
		statuses(step.From(false)), statuses(step.From(true)), statuses(step.Past()),
		s.historyFor.Milliseconds(), step.Key, at, len(first), turn, step.Body.Prompt, step.Body.Text,
		s.key(name, entryKey), s.key(name, bodyKey), ledger.Waits(step.Caller),
		ledger.HistoryPrompt, ledger.HistoryTitle, ledger.HistorySpoken, step.Body.Did,
		former.Owner, string(former.Status), step.Body.Request, flag(step.Keeps()),
		min(s.historyFor, ledger.KeyFor).Milliseconds())
	args = append(append(args, first...), stepFields(step)...)
	if attempt != "" {
		args = append(args, "attempt", attempt)
	}
	if step.To == handoff.StatusCompleted { // where there is no "tests", nobody has noted how they ended
		args = append(args, "ended", at, "tests", string(step.Set.Tests))
	}
	return args
}

// stepFields returns the fields of an entry that a step sets, each with its value. To find them it applies the step to
// two entries that differ in every field: the fields that are equal afterwards were set.
func stepFields(step ledger.Step) (set []any) {
	var one, other ledger.Entry
	ones, others := sessions.EntryFields(nil, &one), sessions.EntryFields(nil, &other)
	for _, field := range others {
		switch field := field.(type) {
		case *string:
			*field = "\x00"
		case *bool:
			*field = true
		}
	}
	one.Facts, other.Facts = one.Merge(step), other.Merge(step)
	for i, name := range sessions.EntryNames {
		switch field := ones[i].(type) {
		case *string:
			if *field == *others[i].(*string) {
				set = append(set, name, *field)
			}
		case *bool:
			if *field == *others[i].(*bool) {
				set = append(set, name, flag(*field))
			}
		}
	}
	return set
}

func flag(on bool) string {
	if on {
		return "1"
	}
	return ""
}

// statuses joins a list in the form that ledger.lua searches.
func statuses(list []handoff.Status) string {
	var b strings.Builder
	b.WriteByte(',')
	for _, s := range list {
		b.WriteString(string(s))
		b.WriteByte(',')
	}
	return b.String()
}

// parseEntry decodes an entry from a list of field, value, ...; false when it is malformed.
func parseEntry(row any) (ledger.Entry, bool) {
	flat, ok := row.([]any)
	if !ok || len(flat)%2 != 0 {
		return ledger.Entry{}, false
	}
	var e ledger.Entry
	fields := sessions.EntryFields(nil, &e)
	e.Tests = handoff.TestsUnknown
	for i := 0; i < len(flat); i += 2 {
		name, okName := flat[i].(string)
		value, okValue := flat[i+1].(string)
		if !okName || !okValue {
			return ledger.Entry{}, false
		}
		at := slices.Index(sessions.EntryNames, name)
		if at < 0 {
			continue // a field of a newer version
		}
		var err error
		switch field := fields[at].(type) {
		case *string:
			*field = value
		case *bool:
			*field = value == "1"
		case *int:
			*field, err = strconv.Atoi(value)
		case *time.Time:
			var ms int64
			ms, err = strconv.ParseInt(value, 10, 64)
			*field = sessions.EntryTime(ms)
		}
		if err != nil {
			return ledger.Entry{}, false
		}
	}
	if e.Tests == handoff.TestsUnknown && e.Outcome != handoff.OutcomeResult {
		e.Tests = ""
	}
	return e, sessions.GoodEntry(e)
}
