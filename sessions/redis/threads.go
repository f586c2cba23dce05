package redis

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"

	goredis "github.com/redis/go-redis/v9"

	"switchboard/handoff"
	"switchboard/handoff/threads"
)

// threadTries bounds how often a step is decided again because another writer changed what it was decided on. Of any
// number of claims only one changes the thread; the others become copies, which change nothing that is compared.
const threadTries = 8

// threadStore stores the threads of our own agents. It implements [threads.Store] and is safe for concurrent use.
type threadStore struct{ *engine }

// Threads returns the threads of the store.
func (s *Store) Threads() threads.Store { return threadStore{s.engine} }

// key returns a key of a thread or owner. All have one hash tag, so that one script may touch a thread and its copy.
func (t threadStore) key(kind, id string) string { return t.engine.key("threads", kind+":"+id) }

// renew extends the life of a thread and all its ancestors, which a copy reads, to well beyond that of the copy.
func (t threadStore) renew(ctx context.Context, thread string) error {
	for thread != "" {
		body, err := t.client.Get(ctx, t.key("thread", thread)).Result()
		if errors.Is(err, goredis.Nil) {
			return nil
		}
		var head threads.Thread
		if err = cmp.Or(err, json.Unmarshal([]byte(body), &head)); err != nil {
			return t.fault(err)
		}
		_, err = t.client.Pipelined(ctx, func(p goredis.Pipeliner) error {
			for _, kind := range []string{"thread", "turns", "items"} {
				p.PExpire(ctx, t.key(kind, thread), 2*t.threadsFor)
			}
			return nil
		})
		if err != nil {
			return t.fault(err)
		}
		thread = head.Parent
	}
	return nil
}

// A threadReader reads threads and turns, and records each value that it read. It implements [threads.Rows].
type threadReader struct {
	threadStore
	ctx  context.Context // Set once; of the step
	seen []seen
}

// row decodes the JSON under a key, or in a field of its hash, into a value, which stays unchanged if there is none.
func (r *threadReader) row(key, field string, into any) error {
	var text string
	var err error
	if field == "" {
		text, err = r.client.Get(r.ctx, key).Result()
	} else {
		text, err = r.client.HGet(r.ctx, key, field).Result()
	}
	if err != nil && !errors.Is(err, goredis.Nil) {
		return err
	}
	r.seen = append(r.seen, seen{key, field, text})
	if text == "" {
		return nil
	}
	return json.Unmarshal([]byte(text), into)
}

// Thread implements [threads.Rows].
func (r *threadReader) Thread(id string) (head threads.Thread, err error) {
	return head, r.row(r.key("thread", id), "", &head)
}

// Turn implements [threads.Rows].
func (r *threadReader) Turn(thread, id string) (turn threads.Turn, err error) {
	return turn, r.row(r.key("turns", thread), id, &turn)
}

// Advance makes one step: it reads what the step is about, decides, and writes the change by a script that checks that
// nothing of what was read has changed.
func (t threadStore) Advance(ctx context.Context, step threads.Step) (threads.Result, error) {
	for range threadTries {
		r := &threadReader{threadStore: t, ctx: ctx}
		view, err := threads.See(r, step)
		if err != nil {
			return threads.Result{}, t.fault(err)
		}
		made, err := threads.Decide(view, step)
		if err != nil || made.Same {
			return made.Result, err
		}
		done, err := t.writeStep(ctx, r.seen, made)
		if err == nil && done && made.Forked {
			err = t.renew(ctx, made.Thread.Parent)
		}
		if err != nil || done {
			return made.Result, err
		}
	}
	return threads.Result{}, handoff.Fault(handoff.CodeBusy, "", "too many change the thread at once")
}

// writeStep writes a change; false if a value that was seen has changed since.
func (t threadStore) writeStep(ctx context.Context, read []seen, c threads.Change) (bool, error) {
	made, err := t.changeOf(c)
	if err != nil {
		return false, err
	}
	made.seen = read
	newest, epoch := t.epochKey(), t.lease.epoch
	if t.shared { // a claim alone says which instance may go on: no epoch
		newest, epoch = t.key("no", "epoch"), 0
	}
	n, err := t.writeBehind(ctx, newest, epoch, made, false)
	return n >= 0 && err == nil, err
}

// changeOf returns a change of threads in the commands that write it.
func (t threadStore) changeOf(c threads.Change) (made change, err error) {
	encode := func(v any) string {
		body, failed := json.Marshal(v)
		err = cmp.Or(err, failed)
		return string(body)
	}
	for _, head := range c.Threads {
		list := t.key("list", head.Owner)
		made.do("SET", t.key("thread", head.ID), encode(head), "KEEPTTL")
		made.do("ZREMRANGEBYSCORE", list, "-inf", head.Updated.Add(-t.threadsFor).UnixMicro())
		if head.Newest() != "" {
			made.do("ZADD", list, head.Updated.UnixMicro(), head.ID)
		} else {
			made.do("ZREM", list, head.ID)
		}
	}
	for _, turn := range c.Turns {
		made.do("HSET", t.key("turns", turn.Thread), turn.ID, encode(turn))
	}
	for _, it := range c.Items {
		made.do("RPUSH", t.key("items", c.Thread.ID), encode(it))
	}
	kinds := []string{"thread", "turns", "items"}
	for _, head := range append(c.Threads, c.Thread) {
		for _, kind := range kinds { // NX and GT: never shorten a life that a copy needs
			made.do("PEXPIRE", t.key(kind, head.ID), t.threadsFor.Milliseconds(), "NX")
			made.do("PEXPIRE", t.key(kind, head.ID), t.threadsFor.Milliseconds(), "GT")
		}
	}
	id := c.Thread.ID
	switch {
	case c.Drop && c.Forked:
		for _, kind := range kinds {
			made.do("DEL", t.key(kind, id))
		}
		made.do("ZREM", t.key("list", c.Thread.Owner), id)
	case c.Drop && c.Turn.From == c.Thread.ForkAt:
		made.do("DEL", t.key("turns", id))
		made.do("DEL", t.key("items", id))
	case c.Drop:
		made.do("HDEL", t.key("turns", id), c.Turn.ID)
		made.do("LTRIM", t.key("items", id), 0, c.Turn.From-c.Thread.ForkAt-1)
	}
	return made, err
}

// Read returns a whole thread. The part that it shares with its ancestors never changes.
func (t threadStore) Read(ctx context.Context, owner, thread string) (threads.Record, error) {
	r, err := t.own(ctx, thread, -1)
	switch {
	case err != nil:
		return threads.Record{}, err
	case r.Thread.ID == "" || r.Thread.Owner != owner:
		return threads.Record{}, handoff.Fault(handoff.CodeSessionGone, "", "there is no such thread")
	}
	for head := r.Thread; head.Parent != ""; {
		up, err := t.own(ctx, head.Parent, head.ForkAt)
		if err != nil {
			return threads.Record{}, err
		}
		if up.Thread.ID == "" {
			return threads.Record{}, handoff.Fault(handoff.CodeInternal, "",
				"the thread that "+thread+" was copied from is not there")
		}
		r.Turns, r.Items = slices.Concat(up.Turns, r.Turns), slices.Concat(up.Items, r.Items)
		head = up.Thread
	}
	return r, t.renew(ctx, r.Thread.Parent)
}

// own reads the part of a thread that is not in its parent, at one instant, up to the item at limit (-1 for all).
func (t threadStore) own(ctx context.Context, id string, limit int) (threads.Record, error) {
	var head *goredis.StringCmd
	var turns *goredis.MapStringStringCmd
	var items *goredis.StringSliceCmd
	_, err := t.client.TxPipelined(ctx, func(p goredis.Pipeliner) error {
		head, turns = p.Get(ctx, t.key("thread", id)), p.HGetAll(ctx, t.key("turns", id))
		items = p.LRange(ctx, t.key("items", id), 0, -1)
		return nil
	})
	var r threads.Record
	if errors.Is(err, goredis.Nil) {
		return r, nil // there is no such thread
	}
	if err == nil {
		err = json.Unmarshal([]byte(head.Val()), &r.Thread)
	}
	if limit < 0 {
		limit = r.Thread.Items
	}
	for _, body := range turns.Val() {
		var turn threads.Turn
		err = cmp.Or(err, json.Unmarshal([]byte(body), &turn))
		if turn.Until <= limit {
			r.Turns = append(r.Turns, turn)
		}
	}
	slices.SortFunc(r.Turns, func(a, b threads.Turn) int { return cmp.Compare(a.From, b.From) })
	bodies := items.Val()
	for _, body := range bodies[:min(max(limit-r.Thread.ForkAt, 0), len(bodies))] {
		var it threads.Item
		err = cmp.Or(err, json.Unmarshal([]byte(body), &it))
		r.Items = append(r.Items, it)
	}
	return r, t.fault(err)
}

// List returns the threads of an owner that have had a turn, newest first.
func (t threadStore) List(ctx context.Context, owner string, limit int) ([]threads.Thread, error) {
	if limit <= 0 {
		return nil, nil
	}
	ids, err := t.client.ZRangeArgs(ctx, goredis.ZRangeArgs{Key: t.key("list", owner), Start: 0, Stop: limit - 1,
		Rev: true}).Result()
	if err != nil || len(ids) == 0 {
		return nil, t.fault(err)
	}
	keys := make([]string, len(ids))
	for i, id := range ids {
		keys[i] = t.key("thread", id)
	}
	bodies, err := t.client.MGet(ctx, keys...).Result()
	var all []threads.Thread
	for _, body := range bodies {
		text, ok := body.(string)
		if !ok {
			continue // it expired meanwhile
		}
		var head threads.Thread
		err = cmp.Or(err, json.Unmarshal([]byte(text), &head))
		all = append(all, head)
	}
	return all, t.fault(err)
}
