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
	// ledgerWithin bounds one round trip to a real Redis: a person waits to hear that nothing was started.
	ledgerWithin = 900 * time.Millisecond
	// resultMade is what it says when there was no entry: it is what the table makes of the step.
	resultMade ledger.Result = "made"
	// ledgerPage is how many open entries one script reads; a Redis does nothing else meanwhile.
	ledgerPage = 128
)

var (
	ledgerScript = fenced("ledger")
	openScript   = script("open")
)

// handoffs keeps the ledger and the history.
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
	result, found, err := s.judged(ctx, keys, step, name, ledger.Entry{})
	if err == nil && found.Anew(step) { // Go's table says so; the script looks whether it is still that one
		result, found, err = s.judged(ctx, keys, step, name, found)
	}
	switch {
	case err != nil:
		return ledger.Entry{}, err
	case result == resultMade:
		return ledger.Entry{}.Apply(step)
	}
	return found, result.Fault(found, step)
}

// judged runs ledger.lua and returns its result, and the entry as it is then. An entry that is still this former one
// is as none.
func (s handoffs) judged(
	ctx context.Context, keys []string, step ledger.Step, name string, former ledger.Entry,
) (ledger.Result, ledger.Entry, error) {
	newest, epoch, err := s.fence(name)
	if err != nil {
		return "", ledger.Entry{}, err
	}
	keys, args := append([]string{newest}, keys...), append([]any{epoch}, s.ledgerArgs(step, name, former)...)
	run := s.promised
	if step.To != handoff.StatusAccepted && step.To != handoff.StatusDispatching { // of which nobody is told before
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

func unreadable() error {
	return handoff.Fault(handoff.CodeInternal, "", "an entry of the ledger cannot be read")
}

// Open returns a caller's entries that are not delivered, oldest first.
func (s handoffs) Open(ctx context.Context, c handoff.Caller) ([]ledger.Entry, error) {
	name, err := sessions.CallerName(c)
	if err != nil {
		return nil, err
	}
	return s.openEntries(ctx, name)
}

// own writes for whom the thread of a step was made, before it is used. The first one keeps it.
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

// OpenAll returns the entries that are not delivered, oldest first, of every caller whom this life has. Where one life
// at a time uses the store it has those of all that are gone.
func (s handoffs) OpenAll(ctx context.Context) ([]ledger.Entry, error) {
	var all []ledger.Entry
	found := map[string]bool{} // by name: whether there is anything
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

// inherit takes over the callers of lives that are gone. Each of whom there is anything stays in an index.
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
			if gone.Address != "" { // it wrote in the epoch of the home
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
		if err := s.forget(ctx, gone, names); err != nil { // never before they are in the index of this life
			return err
		}
	}
	return nil
}

// openEntries reads a caller's open entries page by page. An entry that is made or delivered meanwhile
// may be there or not.
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

// The kinds of keys of a caller: the hash of each entry and its whole words, which end in the key of the handoff; what
// is open, what nobody heard, by when it ended, and the history, by when it became that.
const (
	entryKey, bodyKey               = "handoff:", "body:"
	openKey, unheardKey, historyKey = "open", "unheard", "history"
)

// ledgerArgs are the arguments of ledger.lua for a checked step, and the entry that it makes anew; without a status:
// none.
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

// stepFields are the fields of an entry that a step sets, each with its value: those that the table makes the same of
// two entries that have nothing in common.
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

// statuses writes a list as ledger.lua searches it.
func statuses(list []handoff.Status) string {
	var b strings.Builder
	b.WriteByte(',')
	for _, s := range list {
		b.WriteString(string(s))
		b.WriteByte(',')
	}
	return b.String()
}

// parseEntry reads an entry from its fields; false when it is none of ours.
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
			continue // a newer Switchboard's
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
