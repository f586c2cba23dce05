package redis

import (
	"cmp"
	"context"
	_ "embed"
	"slices"
	"strconv"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
	"switchboard/sessions"
)

const (
	// ledgerWithin bounds one round trip to a real Redis: a person waits to hear that nothing was started.
	ledgerWithin = 900 * time.Millisecond
	// verdictElsewhere is what ledger.lua says when a newer life of the service has taken the lease.
	verdictElsewhere ledger.Verdict = "elsewhere"
	// verdictMade is what it says when there was no entry: it is what the table makes of the step.
	verdictMade ledger.Verdict = "made"
	// ledgerPage is how many open entries one script reads; a Redis does nothing else meanwhile.
	ledgerPage = 128
)

var (
	//go:embed ledger.lua
	ledgerSource string
	//go:embed open.lua
	openSource string

	ledgerScript = goredis.NewScript(ledgerSource)
	openScript   = goredis.NewScript(openSource)
)

// Advance writes one step of the ledger in one round trip; see [ledger.Ledger].
func (s *Store) Advance(ctx context.Context, step ledger.Step) (ledger.Entry, error) {
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
	keys := []string{
		s.entryKeys(name) + step.Key, s.openKey(name), s.callersKey(), s.epochKey(),
		s.bodyKeys(name) + step.Key, s.unheardKey(name), s.historyKey(name), s.ownedKey(),
	}
	verdict, found, err := s.judged(ctx, keys, step, name, ledger.Entry{})
	if err == nil && found.Anew(step) { // Go's table says so; the script looks whether it is still that one
		verdict, found, err = s.judged(ctx, keys, step, name, found)
	}
	switch {
	case err != nil:
		return ledger.Entry{}, err
	case verdict == verdictMade:
		return ledger.Entry{}.Apply(step)
	}
	return found, verdict.Fault(found, step)
}

// judged runs ledger.lua and returns its verdict, and the entry as it is then. An entry that is still this former one
// is as none.
func (s *Store) judged(ctx context.Context, keys []string, step ledger.Step, name string, former ledger.Entry) (ledger.Verdict, ledger.Entry, error) {
	reply, err := ledgerScript.Run(ctx, s.client, keys, s.ledgerArgs(step, name, former)...).Slice()
	if err != nil {
		return "", ledger.Entry{}, s.fault(err)
	}
	verdict, flat, ok := parseVerdict(reply)
	switch {
	case !ok:
		return "", ledger.Entry{}, handoff.Fault(handoff.CodeInternal, "", "unexpected reply of the ledger")
	case verdict == verdictElsewhere:
		return "", ledger.Entry{}, handoff.Fault(handoff.CodeShutdown, "", "another Switchboard has taken over "+s.where)
	case len(flat) == 0:
		return verdict, ledger.Entry{}, nil
	}
	entry, ok := parseEntry(flat)
	if !ok {
		s.badEntry(keys[0])
		return "", ledger.Entry{}, handoff.Fault(handoff.CodeInternal, "", "an entry of the ledger cannot be read")
	}
	return verdict, entry, nil
}

// Open returns a caller's entries that are not delivered, oldest first.
func (s *Store) Open(ctx context.Context, c handoff.Caller) ([]ledger.Entry, error) {
	name, err := sessions.CallerName(c)
	if err != nil {
		return nil, err
	}
	return s.openEntries(ctx, name)
}

// OpenAll returns the entries of every caller that are not delivered, oldest first.
func (s *Store) OpenAll(ctx context.Context) ([]ledger.Entry, error) {
	first, cancel := context.WithTimeout(ctx, s.within)
	defer cancel()
	names, err := s.client.SMembers(first, s.callersKey()).Result()
	if err != nil {
		return nil, s.fault(err)
	}
	var all []ledger.Entry
	for _, name := range names {
		entries, err := s.openEntries(ctx, name)
		switch {
		case err == nil:
			all = append(all, entries...)
		case handoff.AsError(err).Code == handoff.CodeInternal: // one bad list must not hide the others
			s.badEntry(s.openKey(name))
		default:
			return nil, err
		}
	}
	sortEntries(all)
	return all, nil
}

// openEntries reads a caller's open entries page by page. An entry that is made or delivered meanwhile
// may be there or not.
func (s *Store) openEntries(ctx context.Context, name string) ([]ledger.Entry, error) {
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
				s.badEntry(s.openKey(name))
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

func (s *Store) openPage(ctx context.Context, name string, skip int64) (next int64, rows []any, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.within)
	defer cancel()
	keys := []string{s.openKey(name), s.callersKey()}
	reply, err := openScript.Run(ctx, s.client, keys, name, s.entryKeys(name), skip, ledgerPage).Slice()
	if err != nil {
		return 0, nil, s.fault(err)
	}
	bad := handoff.Fault(handoff.CodeInternal, "", "unexpected reply of the ledger")
	if len(reply) != 2 {
		return 0, nil, bad
	}
	next, okNext := reply[0].(int64)
	rows, okRows := reply[1].([]any)
	if !okNext || !okRows {
		return 0, nil, bad
	}
	return next, rows, nil
}

func sortEntries(all []ledger.Entry) {
	slices.SortFunc(all, func(a, b ledger.Entry) int {
		return cmp.Or(a.Accepted.Compare(b.Accepted), cmp.Compare(a.Key, b.Key))
	})
}

func (s *Store) badEntry(key string) {
	s.counts.badEntries.Add(1)
	s.log.Warn("unreadable entry of the ledger", zap.String("key", key))
}

// The keys: the hash of each entry, by caller the open ones, and who has any.
func (s *Store) entryKeys(name string) string { return s.prefix + ":{" + name + "}:handoff:" }
func (s *Store) openKey(name string) string   { return s.prefix + ":{" + name + "}:open" }
func (s *Store) callersKey() string           { return s.prefix + ":open-callers" }
func (s *Store) leaseKey() string             { return s.prefix + ":lease" }
func (s *Store) epochKey() string             { return s.prefix + ":epoch" } // of the newest holder of the lease

// ownedKey has for whom threads were made, by when.
func (s *Store) ownedKey() string { return s.prefix + ":owned" }

// The keys of what is over, or will be: the whole words of each entry, by caller what nobody heard, by when it
// ended, and the history, by when it became that.
func (s *Store) bodyKeys(name string) string   { return s.prefix + ":{" + name + "}:body:" }
func (s *Store) unheardKey(name string) string { return s.prefix + ":{" + name + "}:unheard" }
func (s *Store) historyKey(name string) string { return s.prefix + ":{" + name + "}:history" }

// ledgerArgs are the arguments of ledger.lua for a checked step, and the entry that it makes anew; without a status:
// none.
func (s *Store) ledgerArgs(step ledger.Step, name string, former ledger.Entry) []any {
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
		s.kept.Milliseconds(), step.Key, name, at, len(first), s.lease.epoch, turn, step.Body.Prompt, step.Body.Text,
		s.entryKeys(name), s.bodyKeys(name), ledger.Waits(step.Caller),
		ledger.HistoryPrompt, ledger.HistoryTitle, ledger.HistorySpoken, step.Body.Did, former.Owner, string(former.Status),
		step.Body.Request, flag(step.Keeps()), owned(step), ledger.MaxOwned, min(s.kept, ledger.KeyFor).Milliseconds())
	return append(append(args, first...), stepFields(step, attempt, at)...)
}

// owned is what a step says of who made a thread, "" where it says nothing.
func owned(step ledger.Step) string {
	if !step.Makes() {
		return ""
	}
	t := step.Set.Target
	return handoff.Encode(ledger.Owned{Server: t.Server, Thread: t.Thread, Caller: step.Caller})
}

// stepFields are the fields of an entry that a step sets, each with its value.
func stepFields(step ledger.Step, attempt, at string) []any {
	var args []any
	set := func(field, value string, always bool) {
		if value != "" || always {
			args = append(args, field, value)
		}
	}
	f := step.Set
	set("attempt", attempt, false)
	set("call", f.CallID, false)
	set("client", f.ClientID, false)
	there := f.Target != handoff.Target{} // all of it counts, an empty project too
	set("server", f.Target.Server, there)
	set("project", f.Target.Project, there)
	set("thread", f.Target.Thread, there)
	set("watermark", string(f.Watermark), step.To == handoff.StatusDispatching)
	set("turn", string(f.Turn), step.To == handoff.StatusDispatching)
	set("prompt", f.Prompt, false)
	set("title", f.Title, false)
	set("why", f.Why, false)
	set("outcome", string(f.Outcome), false)
	set("tests", string(f.Tests), step.To == handoff.StatusCompleted) // where there is none, nobody has noted it
	set("code", string(f.Code), false)
	set("spoken", f.Spoken, false)
	set("unkept", flag(f.Unkept), false)
	if step.To == handoff.StatusCompleted {
		set("ended", at, true)
	}
	return args
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

func parseVerdict(reply []any) (ledger.Verdict, []any, bool) {
	if len(reply) != 2 {
		return "", nil, false
	}
	verdict, okVerdict := reply[0].(string)
	flat, okFlat := reply[1].([]any)
	return ledger.Verdict(verdict), flat, okVerdict && okFlat
}

// parseEntry reads an entry from its fields; false when it is none of ours.
func parseEntry(row any) (ledger.Entry, bool) {
	flat, ok := row.([]any)
	if !ok || len(flat)%2 != 0 {
		return ledger.Entry{}, false
	}
	var e ledger.Entry
	words := entryWords(&e)
	e.Tests = handoff.TestsUnknown
	for i := 0; i < len(flat); i += 2 {
		field, okField := flat[i].(string)
		value, okValue := flat[i+1].(string)
		if !okField || !okValue {
			return ledger.Entry{}, false
		}
		if word := words[field]; word != nil {
			*word = value
		} else if !setField(&e, field, value) {
			return ledger.Entry{}, false
		}
	}
	if e.Tests == handoff.TestsUnknown && e.Outcome != handoff.OutcomeResult {
		e.Tests = ""
	}
	ok = e.Key != "" && e.Owner != "" && e.Caller.Principal != "" && e.Status != "" && !e.Accepted.IsZero()
	return e, ok
}

// entryWords are the fields of an entry that are text.
func entryWords(e *ledger.Entry) map[string]*string {
	return map[string]*string{
		"key": &e.Key, "principal": &e.Caller.Principal, "user": &e.Caller.User, "owner": &e.Owner, "args": &e.Args,
		"status": (*string)(&e.Status), "call": &e.CallID, "client": &e.ClientID, "server": &e.Target.Server,
		"project": &e.Target.Project, "thread": &e.Target.Thread, "watermark": (*string)(&e.Watermark),
		"turn": (*string)(&e.Turn), "prompt": &e.Prompt, "title": &e.Title, "why": &e.Why,
		"outcome": (*string)(&e.Outcome), "tests": (*string)(&e.Tests), "code": (*string)(&e.Code), "spoken": &e.Spoken,
	}
}

// setField puts a field that is not text in its place. Fields that we do not know are a newer
// Switchboard's.
func setField(e *ledger.Entry, field, value string) bool {
	switch field {
	case "inherited":
		e.Inherited = value == "1"
	case "unkept":
		e.Unkept = value == "1"
	case "attempt":
		n, err := strconv.Atoi(value)
		e.Attempt = n
		return err == nil
	case "accepted", "ended":
		ms, err := strconv.ParseInt(value, 10, 64)
		at := &e.Accepted
		if field == "ended" {
			at = &e.Ended
		}
		*at = time.UnixMilli(ms).UTC()
		return err == nil
	}
	return true
}
