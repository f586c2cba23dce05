package redis

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"

	goredis "github.com/redis/go-redis/v9"

	"switchboard/handoff"
	"switchboard/handoff/threads"
)

var threadsScript = fenced("threads")

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

// A seen is a value that a step was decided on. The script compares it when the step is written.
type seen struct {
	key, field, value string
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
		done, err := t.write(ctx, r.seen, made)
		if err == nil && done && made.Forked {
			err = t.renew(ctx, made.Thread.Parent)
		}
		if err != nil || done {
			return made.Result, err
		}
	}
	return threads.Result{}, handoff.Fault(handoff.CodeBusy, "", "too many change the thread at once")
}

// write writes a change; false if a value that was seen has changed since.
func (t threadStore) write(ctx context.Context, read []seen, c threads.Change) (bool, error) {
	var keys []string
	args := []any{len(read)}
	for _, s := range read {
		keys, args = append(keys, s.key), append(args, s.key, s.field, s.value)
	}
	commands, err := t.commands(c)
	if err != nil {
		return false, err
	}
	for _, words := range commands {
		keys, args = append(keys, words[1]), append(args, len(words))
		for _, word := range words {
			args = append(args, word)
		}
	}
	slices.Sort(keys)
	newest, epoch := t.epochKey(), t.lease.epoch
	if t.shared { // a claim alone says which instance may go on: no epoch
		newest, epoch = t.key("no", "epoch"), 0
	}
	done, err := t.runBehind(ctx, newest, epoch, threadsScript, slices.Compact(keys), args...).Int()
	return done == 1, t.fault(err)
}

// commands returns the commands that write a change, each with its key as the second word.
func (t threadStore) commands(c threads.Change) (all [][]string, err error) {
	encode := func(v any) string {
		body, failed := json.Marshal(v)
		err = cmp.Or(err, failed)
		return string(body)
	}
	for _, head := range c.Threads {
		all = append(all, []string{"SET", t.key("thread", head.ID), encode(head), "KEEPTTL"},
			[]string{"ZREMRANGEBYSCORE", t.key("list", head.Owner), "-inf",
				strconv.FormatInt(head.Updated.Add(-t.threadsFor).UnixMicro(), 10)})
		if head.Newest() != "" {
			all = append(all, []string{"ZADD", t.key("list", head.Owner), strconv.FormatInt(head.Updated.UnixMicro(), 10),
				head.ID})
		} else {
			all = append(all, []string{"ZREM", t.key("list", head.Owner), head.ID})
		}
	}
	for _, turn := range c.Turns {
		all = append(all, []string{"HSET", t.key("turns", turn.Thread), turn.ID, encode(turn)})
	}
	for _, it := range c.Items {
		all = append(all, []string{"RPUSH", t.key("items", c.Thread.ID), encode(it)})
	}
	id, life := c.Thread.ID, strconv.FormatInt(t.threadsFor.Milliseconds(), 10)
	for _, head := range append(c.Threads, c.Thread) {
		for _, kind := range []string{"thread", "turns", "items"} { // NX and GT: never shorten a life that a copy needs
			all = append(all, []string{"PEXPIRE", t.key(kind, head.ID), life, "NX"},
				[]string{"PEXPIRE", t.key(kind, head.ID), life, "GT"})
		}
	}
	switch {
	case c.Drop && c.Forked:
		all = append(all, []string{"DEL", t.key("thread", id), t.key("turns", id), t.key("items", id)},
			[]string{"ZREM", t.key("list", c.Thread.Owner), id})
	case c.Drop && c.Turn.From == c.Thread.ForkAt:
		all = append(all, []string{"DEL", t.key("turns", id), t.key("items", id)})
	case c.Drop:
		all = append(all, []string{"HDEL", t.key("turns", id), c.Turn.ID},
			[]string{"LTRIM", t.key("items", id), "0", strconv.Itoa(c.Turn.From - c.Thread.ForkAt - 1)})
	}
	return all, err
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
