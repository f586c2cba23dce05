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

// A threadReader reads threads and turns for a step. It implements [threads.Rows].
type threadReader struct {
	threadStore
	ctx    context.Context // Set once; of the step
	change *change         // Set once; decided from what is read
}

// Thread implements [threads.Rows].
func (r *threadReader) Thread(id string) (threads.Thread, error) {
	return decoded[threads.Thread](r.read(r.ctx, r.change, r.key("thread", id)))
}

// Turn implements [threads.Rows].
func (r *threadReader) Turn(thread, id string) (threads.Turn, error) {
	return decoded[threads.Turn](r.readField(r.ctx, r.change, r.key("turns", thread), id))
}

// decoded decodes the JSON that was read; the zero value of "".
func decoded[T any](text string, err error) (value T, _ error) {
	if err == nil && text != "" {
		err = json.Unmarshal([]byte(text), &value)
	}
	return value, err
}

// Advance makes one step: it reads what the step is about, decides, and writes the change if nothing of what was read
// has changed. Of any number of claims only one changes the thread; the others are refused.
func (t threadStore) Advance(ctx context.Context, step threads.Step) (threads.Result, error) {
	var f fence // of several instances, a claim alone says which one may go on
	if !t.shared {
		f = fence{t.epochKey(), t.lease.epoch}
	}
	var made threads.Change
	err := t.decided(ctx, f, func(c *change) error {
		view, err := threads.See(&threadReader{threadStore: t, ctx: ctx, change: c}, step)
		if err != nil {
			return err
		}
		if made, err = threads.Decide(view, step); err != nil || made.Same {
			return err
		}
		return t.commands(c, made)
	})
	if err == nil && made.Forked && !made.Same {
		err = t.renew(ctx, made.Thread.Parent)
	}
	return made.Result, err
}

// commands adds the commands that write a change of threads.
func (t threadStore) commands(to *change, c threads.Change) (err error) {
	encode := func(v any) string {
		body, failed := json.Marshal(v)
		err = cmp.Or(err, failed)
		return string(body)
	}
	for _, head := range c.Threads {
		list := t.key("list", head.Owner)
		to.do("SET", t.key("thread", head.ID), encode(head), "KEEPTTL")
		to.do("ZREMRANGEBYSCORE", list, "-inf", head.Updated.Add(-t.threadsFor).UnixMicro())
		if head.Newest() != "" {
			to.do("ZADD", list, head.Updated.UnixMicro(), head.ID)
		} else {
			to.do("ZREM", list, head.ID)
		}
	}
	for _, turn := range c.Turns {
		to.do("HSET", t.key("turns", turn.Thread), turn.ID, encode(turn))
	}
	for _, it := range c.Items {
		to.do("RPUSH", t.key("items", c.Thread.ID), encode(it))
	}
	for _, head := range append(c.Threads, c.Thread) {
		for _, kind := range []string{"thread", "turns", "items"} { // NX and GT: never shorten a life that a copy needs
			to.do("PEXPIRE", t.key(kind, head.ID), t.threadsFor.Milliseconds(), "NX")
			to.do("PEXPIRE", t.key(kind, head.ID), t.threadsFor.Milliseconds(), "GT")
		}
	}
	return err
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
