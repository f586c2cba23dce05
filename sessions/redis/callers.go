package redis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
	"switchboard/sessions"
)

// commitWithin bounds a commit as a whole, and a round trip: a person waits to hear that nothing was started.
const commitWithin = 900 * time.Millisecond

// callers stores what is remembered of callers; see [sessions.Callers] and [sessions.Pages].
type callers struct{ *engine }

// The kinds of a caller's keys. docs is a hash of documents by name, with the version of the state. The key of a row
// of the past, and that of a hash of texts, end in the key of the handoff.
const (
	docsKey, historyKey   = "docs", "past"
	pastPrefix, textsName = "past:", "texts:"
	versionField          = "version"
)

// State implements [sessions.Callers].
func (s callers) State(ctx context.Context, c handoff.Caller) (ledger.State, error) {
	name, err := sessions.CallerName(c)
	if err != nil {
		return ledger.State{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.within)
	defer cancel()
	docs, err := s.client.HGetAll(ctx, s.key(name, docsKey)).Result()
	state := ledger.State{Version: docs[versionField], Documents: docs}
	delete(docs, versionField)
	return state, s.fault(err)
}

// Commit implements [sessions.Callers].
func (s callers) Commit(ctx context.Context, c handoff.Caller, b ledger.Batch) (ledger.Committed, error) {
	name, err := sessions.CallerName(c)
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.within)
	defer cancel()
	if err := s.enter(ctx, name); err != nil {
		return 0, err
	}
	for _, c := range b.Changed {
		if err := s.own(ctx, c.Owned, c.At); err != nil {
			return 0, err
		}
	}
	n, err := s.write(ctx, name, s.batch(name, b))
	switch {
	case n == -1:
		return ledger.Outdated, err
	case n < 0:
		return ledger.NotFree, err
	}
	return ledger.Written, err
}

// batch returns a batch as a change, which was decided from the version first, then from keys that are free.
func (s callers) batch(name string, b ledger.Batch) (c change) {
	docs, history := s.key(name, docsKey), s.key(name, historyKey)
	c.promise = b.Promise
	c.saw(b.Was, "HGET", docs, versionField)
	for doc, body := range b.Put {
		c.do("HSET", docs, doc, body)
	}
	for _, doc := range b.Drop {
		c.do("HDEL", docs, doc)
	}
	for _, of := range b.Changed {
		past, texts := s.key(name, pastPrefix)+of.Key, s.key(name, textsName)+of.Key
		if of.Free {
			c.saw(0, "EXISTS", past)
		}
		if of.Clear {
			c.do("DEL", past)
			c.do("DEL", texts)
			c.do("ZREM", history, of.Key)
		}
		for part, text := range of.Texts {
			if text == "" {
				c.do("HDEL", texts, part)
			} else {
				c.do("HSET", texts, part, text)
			}
		}
		p := of.Past
		if p == nil {
			continue
		}
		life := max(s.historyFor.Milliseconds(), 1)
		if p.Unkept {
			life = min(life, ledger.KeyFor.Milliseconds())
			c.do("ZREM", history, p.Key)
		} else {
			c.do("ZREMRANGEBYSCORE", history, "-inf", p.At-life)
			c.do("ZADD", history, p.At, p.Key)
			c.do("PEXPIRE", history, life)
		}
		c.do("SET", past, pastRow(*p), "PX", life)
		c.do("PEXPIRE", texts, life)
	}
	c.do("HSET", docs, versionField, b.Now)
	if b.For > 0 {
		c.do("PEXPIRE", docs, b.For.Milliseconds())
	} else {
		c.do("PERSIST", docs)
	}
	c.do("HDELALONE", docs, versionField) // of nothing there is no version
	return c
}

// Waiting implements [sessions.Callers]. Where one life at a time uses the store, it takes over the callers of all dead
// lives.
func (s callers) Waiting(ctx context.Context, prefix string) (all []handoff.Caller, err error) {
	found := map[string]bool{} // by name: whether the caller has such a document
	read := func(name string) (bool, error) {
		if there, was := found[name]; was {
			return there, nil
		}
		c, ok := sessions.NamedCaller(name)
		there, err := s.hasDocument(ctx, name, prefix)
		switch {
		case handoff.CodeOf(err) == handoff.CodeInternal || !ok: // one bad caller must not hide the others
			s.badEntry(s.key(name, docsKey))
			there, err = true, nil
		case there:
			all = append(all, c)
		}
		found[name] = there
		return there, err
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
	return all, err
}

// hasDocument reports whether a caller has a document whose name begins with a prefix.
func (s callers) hasDocument(ctx context.Context, name, prefix string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, s.within)
	defer cancel()
	names, err := s.client.HKeys(ctx, s.key(name, docsKey)).Result()
	return slices.ContainsFunc(names, func(doc string) bool { return strings.HasPrefix(doc, prefix) }), s.fault(err)
}

// inherit takes over the callers of dead lives. A caller with open work stays in an index all the time.
func (s callers) inherit(ctx context.Context, read func(name string) (found bool, err error)) error {
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

// Past implements [sessions.Pages].
func (s callers) Past(ctx context.Context, c handoff.Caller, key string) (ledger.Past, bool, error) {
	name, err := sessions.CallerName(c)
	if err != nil {
		return ledger.Past{}, false, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.within)
	defer cancel()
	text, err := s.client.Get(ctx, s.key(name, pastPrefix)+key).Result()
	if errors.Is(err, goredis.Nil) {
		return ledger.Past{}, false, nil
	}
	if err != nil {
		return ledger.Past{}, false, s.fault(err)
	}
	p, err := parsePast(key, text)
	return p, err == nil, err
}

// pastRow returns the row of a past handoff as it is stored: when it became history, a mark, the row.
func pastRow(p ledger.Past) string {
	mark := ""
	if p.Unkept {
		mark = "1"
	}
	return fmt.Sprintf("%d %s %s", p.At, mark, p.Row)
}

// parsePast is the reverse of pastRow.
func parsePast(key, text string) (ledger.Past, error) {
	p := ledger.Past{Key: key}
	at, rest, _ := strings.Cut(text, " ")
	mark, row, ok := strings.Cut(rest, " ")
	var err error
	if p.At, err = strconv.ParseInt(at, 10, 64); err != nil || !ok {
		return p, unexpected("history")
	}
	p.Unkept, p.Row = mark == "1", row
	return p, nil
}

// Page implements [sessions.Pages]. A page of a search may be short or empty although there are more pages.
func (s callers) Page(
	ctx context.Context, c handoff.Caller, q sessions.PageQuery,
) (page []ledger.Past, next string, err error) {
	name, err := sessions.CallerName(c)
	if err != nil {
		return nil, "", err
	}
	read := func(ctx context.Context, keys []string) ([]any, error) {
		rows := make([]string, len(keys))
		for i, key := range keys {
			rows[i] = s.key(name, pastPrefix) + key
		}
		return s.client.MGet(ctx, rows...).Result()
	}
	next, err = s.page(ctx, s.key(name, historyKey), q.Before, q.Limit, read, func(at sessions.Mark, text string) bool {
		row, err := parsePast(at.Key, text)
		if err != nil {
			s.badEntry(s.key(name, historyKey))
			return false
		}
		found := q.Found(row.Row)
		if row.At = at.At; found {
			page = append(page, row)
		}
		return found
	})
	return page, next, err
}

// Texts implements [sessions.Pages].
func (s callers) Texts(ctx context.Context, c handoff.Caller, keys ...string) (map[string]map[string]string, error) {
	name, err := sessions.CallerName(c)
	if err != nil {
		return nil, err
	}
	all := map[string]map[string]string{}
	answers, err := s.client.Pipelined(ctx, func(p goredis.Pipeliner) error {
		for _, key := range keys {
			p.HGetAll(ctx, s.key(name, textsName)+key)
		}
		return nil
	})
	for i, answer := range answers {
		if parts := answer.(*goredis.MapStringStringCmd).Val(); len(parts) > 0 {
			all[keys[i]] = parts
		}
	}
	return all, s.fault(err)
}
