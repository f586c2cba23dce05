package redis

import (
	"context"
	"errors"
	"slices"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"switchboard/handoff"
)

var (
	changeScript = script("change")
	fencedScript = fenced("change")
)

// changeTries bounds how often a change is decided again because another client has changed what it was decided from.
const changeTries = 50

// A change is what one script writes if what it was decided from is still so. All its keys are in one slot.
type change struct {
	seen     [][]any // reads, each with its key as the second word and its answer as the last
	commands [][]any // each with its key as the second word
	promise  bool    // see [engine.promised]
}

// saw notes a read whose answer the change was decided from: one value; "" stands for none.
func (c *change) saw(answer any, command, key string, words ...any) {
	c.seen = append(c.seen, append(append([]any{command, key}, words...), answer))
}

// do adds a command.
func (c *change) do(command, key string, words ...any) {
	c.commands = append(c.commands, append([]any{command, key}, words...))
}

// A fence keeps the writes of former lives out. The zero fence keeps none out: it is for what belongs to no caller.
type fence struct {
	newest string // the key of the newest epoch
	epoch  int64  // of the writer
}

// write writes a change of data of the caller with a name. It fails with [handoff.CodeShutdown] after a newer life of
// the service has begun, or while another instance has the caller. It returns what [engine.run] does.
func (e *engine) write(ctx context.Context, name string, c change) (int, error) {
	f, err := e.fence(name)
	if err != nil {
		return 0, err
	}
	return e.run(ctx, f, c)
}

// run writes a change. It returns the reply of the last command, or -n if the nth read has another answer by now.
func (e *engine) run(ctx context.Context, f fence, c change) (int, error) {
	how, keys, args := changeScript, []string{}, make([]any, 0, 6*(len(c.commands)+1))
	if f != (fence{}) {
		how, args = fencedScript, append(args, f.epoch)
	}
	args = append(args, len(c.seen))
	for _, words := range c.seen {
		keys, args = append(keys, words[1].(string)), append(append(args, len(words)-1), words...)
	}
	for _, words := range c.commands {
		keys, args = append(keys, words[1].(string)), append(append(args, len(words)), words...)
	}
	slices.Sort(keys)
	if keys = slices.Compact(keys); f != (fence{}) {
		keys = slices.Insert(keys, 0, f.newest)
	}
	var n int
	var err error
	if c.promise {
		n, err = e.promised(ctx, how, keys, args...).Int()
	} else {
		n, err = how.Run(ctx, e.client, keys, args...).Int()
	}
	return n, e.fault(err)
}

// read reads the value of a key, "" if there is none, and notes that the change is decided from it.
func (e *engine) read(ctx context.Context, c *change, key string) (string, error) {
	text, err := e.client.Get(ctx, key).Result()
	c.saw(text, "GET", key)
	return text, unlessNil(err)
}

// readField is read for a field of a hash.
func (e *engine) readField(ctx context.Context, c *change, key, field string) (string, error) {
	text, err := e.client.HGet(ctx, key, field).Result()
	c.saw(text, "HGET", key, field)
	return text, unlessNil(err)
}

// unlessNil returns an error unless it says that there is no value.
func unlessNil(err error) error {
	if errors.Is(err, goredis.Nil) {
		return nil
	}
	return err
}

// decided writes the change that decide makes of what it reads. While other clients change that at the same time, it is
// decided again. Without commands nothing is written.
func (e *engine) decided(ctx context.Context, f fence, decide func(*change) error) error {
	for range changeTries {
		var c change
		if err := decide(&c); err != nil || len(c.commands) == 0 {
			return e.fault(err)
		}
		if n, err := e.run(ctx, f, c); n >= 0 || err != nil {
			return err
		}
	}
	return handoff.Fault(handoff.CodeUnreachable, e.where, "others change the same all the time")
}

// alter replaces the value of a key by what decide makes of it, which is kept for a time; 0: for ever. "" stands for
// none. decide returns false to leave the value as it is.
func (e *engine) alter(
	ctx context.Context, key string, life time.Duration, decide func(was string) (is string, _ bool),
) error {
	ctx, cancel := context.WithTimeout(ctx, e.within)
	defer cancel()
	return e.decided(ctx, fence{}, func(c *change) error {
		was, err := e.read(ctx, c, key)
		if err != nil {
			return err
		}
		switch is, changed := decide(was); {
		case !changed:
		case is == "":
			c.do("DEL", key)
		case life == 0:
			c.do("SET", key, is)
		default:
			c.do("SET", key, is, "PX", life.Milliseconds())
		}
		return nil
	})
}
