package redis

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
	"switchboard/sessions"
)

// Versions before this one kept each handoff in a hash of its own, under keys of other names, and held a lease under
// another key. That key now has a value that never expires: it says that the data was converted, and an older version
// refuses to use the Redis, with an error that names this value.
const convertedMark = "a-newer-Switchboard since the data was converted"

// The keys of versions before this one.
const (
	formerEntry, formerBody     = "handoff:", "body:"
	formerHistory, formerSticky = "history", "sticky"
	formerOpen, formerUnheard   = "open", "unheard"
	convertScan, convertAtOnce  = 500, 500
)

func (e *engine) formerLease() string { return e.together + ":lease" }

// upgrade converts the data of a version before this one, unless that was done. No other process uses the Redis
// meanwhile. It may be repeated.
func (e *engine) upgrade(ctx context.Context) error {
	mark, err := e.client.Get(ctx, e.formerLease()).Result()
	if mark == convertedMark {
		return nil
	}
	if err != nil && !errors.Is(err, goredis.Nil) {
		return fmt.Errorf("read %s on %s: %w", e.formerLease(), e.where, err)
	}
	l := newLease(e)
	l.key, l.value, l.joint = e.formerLease(), "converting "+e.id, false
	if err := l.acquire(ctx); err != nil {
		if mark := e.client.Get(ctx, l.key).Val(); mark == convertedMark { // another instance did it meanwhile
			return nil
		}
		return err
	}
	callers, keyed, err := e.formerKeys(ctx)
	if err != nil {
		return e.fault(err)
	}
	for name, kinds := range callers {
		err = errors.Join(err, e.convert(ctx, name, kinds))
	}
	for _, key := range keyed {
		err = errors.Join(err, e.convertKeyed(ctx, key))
	}
	if err != nil {
		return fmt.Errorf("convert the data of a version before this one on %s: %w", e.where, err)
	}
	return e.fault(e.client.Set(ctx, l.key, convertedMark, 0).Err())
}

// formerKeys returns the keys of handoffs and stickies of a version before this one, without what is common, by the
// names of callers; and the keys of what belongs to no caller.
func (e *engine) formerKeys(ctx context.Context) (callers map[string][]string, keyed []string, err error) {
	var mu sync.Mutex
	callers = map[string][]string{}
	found := func(key string) {
		mu.Lock()
		defer mu.Unlock()
		if rest, ok := strings.CutPrefix(key, e.prefix+":{"); ok {
			name, kind, ok := strings.Cut(rest, "}:")
			if ok && (kind == formerSticky || strings.HasPrefix(kind, formerEntry)) {
				callers[name] = append(callers[name], kind)
			}
			return
		}
		for _, kind := range []string{
			e.together + ":login:", e.together + ":secret:", e.together + ":app:", e.prefix + ":records:",
			e.prefix + ":machines",
		} {
			if strings.HasPrefix(key, kind) {
				keyed = append(keyed, key)
			}
		}
	}
	patterns := []string{escapeGlob(e.prefix) + ":*"}
	if e.together != e.prefix {
		patterns = append(patterns, escapeGlob(e.together)+":*")
	}
	err = e.masters(ctx, func(ctx context.Context, master *goredis.Client) error {
		for _, pattern := range patterns {
			scan := master.Scan(ctx, 0, pattern, convertScan).Iterator()
			for scan.Next(ctx) {
				found(scan.Val())
			}
			if scan.Err() != nil {
				return scan.Err()
			}
		}
		return nil
	})
	return callers, keyed, err
}

// convertKeyed writes what belongs to no caller in the present form, and drops a former key.
func (e *engine) convertKeyed(ctx context.Context, key string) error {
	var all []sessions.Value
	kind, rest, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(key, e.prefix+":"), e.together+":"), ":")
	var body string
	var err error
	var owned struct {
		Principal string
		Ends      time.Time
	}
	hash := map[string]string{}
	switch kind {
	case "login", "secret":
		body, err = e.client.Get(ctx, key).Result()
	case "app":
		body, err = e.client.HGet(ctx, key, "body").Result()
	default:
		hash, err = e.client.HGetAll(ctx, key).Result()
	}
	if err != nil {
		return err
	}
	switch {
	case kind == "machines" || kind == "records":
		to := map[string]string{"machines": "machine", "records": "record " + rest}[kind]
		for name, body := range hash {
			all = append(all, sessions.Value{Kind: to, Name: name, Body: []byte(body)})
		}
	case json.Unmarshal([]byte(body), &owned) != nil:
		e.badEntry(key)
		return nil
	default:
		all = append(all, sessions.Value{
			Kind: kind, Name: rest, Group: owned.Principal, Ends: owned.Ends, Body: []byte(body),
		})
	}
	for _, v := range all { // one that is there was converted before
		if _, err := (values{e}).Change(ctx, sessions.Change{Is: v}); err != nil {
			return err
		}
	}
	return e.client.Unlink(ctx, key).Err()
}

// escapeGlob escapes what a pattern of Redis would not take as itself.
func escapeGlob(text string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`, "]", `\]`).Replace(text)
}

// convert writes what was kept of a caller in the present form, the documents last, and drops the former keys.
func (e *engine) convert(ctx context.Context, name string, kinds []string) error {
	docs := ledger.Batch{Now: "converted", Put: map[string]string{}}
	var past []ledger.Changed
	drop := []string{e.key(name, formerHistory), e.key(name, formerOpen), e.key(name, formerUnheard)}
	for _, kind := range kinds {
		drop = append(drop, e.key(name, kind))
		fields, err := e.client.HGetAll(ctx, e.key(name, kind)).Result()
		if err != nil {
			e.badEntry(e.key(name, kind)) // one bad entry must not hide the others
			continue
		}
		key, isEntry := strings.CutPrefix(kind, formerEntry)
		if !isEntry {
			for field, value := range fields {
				docs.Put["sticky:"+field] = strings.TrimSuffix(value, "}") +
					`,"set":` + handoff.Encode(time.Now().UTC()) + "}"
			}
			continue
		}
		entry, ok := formerFields(fields)
		if !ok {
			e.badEntry(e.key(name, kind))
			continue
		}
		body := e.key(name, formerBody) + key
		if err := e.client.RenameNX(ctx, body, e.key(name, textsName)+key).Err(); err != nil &&
			!strings.Contains(err.Error(), "no such key") {
			return err
		}
		at, err := e.client.ZScore(ctx, e.key(name, formerHistory), key).Result()
		switch {
		case err != nil && !errors.Is(err, goredis.Nil):
			return err
		case err == nil:
			past = append(past, ledger.Changed{Key: key, Past: &ledger.Past{
				Key: key, At: int64(at), Row: handoff.Encode(entry), Unkept: entry.Unkept}})
		case entry.Unkept && entry.Status == handoff.StatusDelivered:
			past = append(past, ledger.Changed{Key: key, Past: &ledger.Past{
				Key: key, At: entry.Ended.UnixMilli(), Row: handoff.Encode(entry), Unkept: true}})
		default:
			docs.Put["handoff:"+key] = handoff.Encode(entry)
		}
	}
	c := callers{e}
	batches := []ledger.Batch{}
	for i := 0; i < len(past); i += convertAtOnce {
		batches = append(batches, ledger.Batch{Now: "converted", Changed: past[i:min(i+convertAtOnce, len(past))]})
	}
	for _, b := range append(batches, docs) {
		if _, err := e.run(ctx, fence{}, c.batch(name, b)); err != nil {
			return err
		}
	}
	return e.client.Unlink(ctx, drop...).Err()
}

// formerFields decodes an entry from the fields of its hash; false when it is malformed.
func formerFields(fields map[string]string) (e ledger.Entry, ok bool) {
	number := func(name string) int64 {
		n, err := strconv.ParseInt(fields[name], 10, 64)
		ok = ok && (err == nil || fields[name] == "")
		return n
	}
	ok = true
	at := func(name string) time.Time {
		if fields[name] == "" {
			return time.Time{}
		}
		return time.UnixMilli(number(name)).UTC()
	}
	valid := func(name string) string { return strings.ToValidUTF8(fields[name], "\ufffd") }
	e = ledger.Entry{
		Key: fields["key"], Caller: handoff.Caller{Principal: fields["principal"], User: fields["user"]},
		Owner: fields["owner"], Args: fields["args"], Status: handoff.Status(fields["status"]),
		Inherited: fields["inherited"] == "1", Attempt: int(number("attempt")), Accepted: at("accepted"), Ended: at("ended"),
		Facts: ledger.Facts{
			Print: valid("call"), ClientID: valid("client"),
			Target:    handoff.Target{Server: valid("server"), Project: valid("project"), Thread: valid("thread")},
			Watermark: handoff.TurnID(valid("watermark")), Turn: handoff.TurnID(valid("turn")), Prompt: valid("prompt"),
			Title: valid("title"), Why: valid("why"), Outcome: handoff.Outcome(fields["outcome"]),
			Tests: handoff.Tests(fields["tests"]), Code: handoff.Code(fields["code"]), Spoken: valid("spoken"),
			Unkept: fields["unkept"] == "1", Giver: valid("giver"), Asker: valid("asker"),
			Parent: handoff.ID(valid("parent")),
		},
	}
	if _, noted := fields["tests"]; !noted && e.Outcome == handoff.OutcomeResult { // nobody noted how they ended
		e.Tests = handoff.TestsUnknown
	}
	return e, ok && e.Key != "" && e.Owner != "" && e.Caller.Principal != "" && e.Status != "" && !e.Accepted.IsZero()
}
