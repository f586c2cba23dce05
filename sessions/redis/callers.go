package redis

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
	"switchboard/sessions"
)

const (
	// commitWithin bounds a commit as a whole, and a round trip: a person waits to hear that nothing was started.
	commitWithin = 900 * time.Millisecond
	// historyPage is how many rows one script reads; the Redis does nothing else meanwhile.
	historyPage = 128
	// historyScan bounds how many rows one call looks at in a search; the caller then asks for the next page.
	historyScan = 10 * historyPage
)

var pageScript = script("page")

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
	return s.stateOf(ctx, name)
}

func (s callers) stateOf(ctx context.Context, name string) (ledger.State, error) {
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
	n, err := s.write(ctx, name, s.batch(name, b), b.Promise)
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
	c.seen = []seen{{docs, versionField, b.Was}}
	for doc, body := range b.Put {
		c.do("HSET", docs, doc, body)
	}
	for _, doc := range b.Drop {
		c.do("HDEL", docs, doc)
	}
	for _, of := range b.Changed {
		past, texts := s.key(name, pastPrefix)+of.Key, s.key(name, textsName)+of.Key
		if of.Free {
			c.seen = append(c.seen, seen{past, "", ""})
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
func (s callers) Waiting(ctx context.Context, prefix string) (map[handoff.Caller]ledger.State, error) {
	all := map[handoff.Caller]ledger.State{}
	found := map[string]bool{} // by name: whether the caller has such a document
	read := func(name string) (bool, error) {
		if there, was := found[name]; was {
			return there, nil
		}
		c, ok := sessions.NamedCaller(name)
		state, err := s.stateOf(ctx, name)
		if handoff.CodeOf(err) == handoff.CodeInternal || !ok { // one bad caller must not hide the others
			s.badEntry(s.key(name, docsKey))
			found[name] = true
			return true, nil
		}
		for doc := range state.Documents {
			if strings.HasPrefix(doc, prefix) {
				found[name], all[c] = true, state
				break
			}
		}
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
	return all, err
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
	from, _, err := sessions.ParseMark(q.Before)
	if err != nil {
		return nil, "", err
	}
	for looked := 0; looked < historyScan; {
		rows, more, err := s.pageRows(ctx, name, from)
		if err != nil {
			return nil, "", err
		}
		for _, row := range rows {
			if len(page) == q.Limit {
				return page, from.String(), nil
			}
			from = sessions.Mark{At: row.At, Key: row.Key}
			if row.Row != "" && q.Found(row.Row) {
				page = append(page, row)
			}
		}
		if !more {
			return page, "", nil
		}
		looked += len(rows)
	}
	return page, from.String(), nil
}

// pageRows reads the rows after a mark. One that has expired is "".
func (s callers) pageRows(
	ctx context.Context, name string, from sessions.Mark,
) (all []ledger.Past, more bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.within)
	defer cancel()
	reply, err := pageScript.Run(ctx, s.client, []string{s.key(name, historyKey)}, s.key(name, pastPrefix), from.Key,
		from.At, historyPage).Slice()
	if err != nil {
		return nil, false, s.fault(err)
	}
	var again int64
	var rows []any
	if !replied(reply, &again, &rows) {
		return nil, false, unexpected("history")
	}
	for _, one := range rows {
		var key, at, text string
		list, _ := one.([]any)
		if !replied(list, &key, &at, &text) {
			return nil, false, unexpected("history")
		}
		row, err := parsePast(key, text)
		if text != "" && err != nil {
			s.badEntry(s.key(name, historyKey))
		}
		if row.At, err = strconv.ParseInt(at, 10, 64); err != nil {
			return nil, false, unexpected("history")
		}
		all = append(all, row)
	}
	return all, again == 1, nil
}

// Texts implements [sessions.Pages].
func (s callers) Texts(ctx context.Context, c handoff.Caller, key string) (map[string]string, error) {
	name, err := sessions.CallerName(c)
	if err != nil {
		return nil, err
	}
	all, err := s.client.HGetAll(ctx, s.key(name, textsName)+key).Result()
	return all, s.fault(err)
}
