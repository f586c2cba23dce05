package redis

import (
	"context"
	"slices"

	goredis "github.com/redis/go-redis/v9"
)

var changeScript = fenced("change")

// A change is what one script writes if what it was decided from is still the same. All its keys are in one slot.
type change struct {
	seen     []seen
	commands [][]any // each with its key as the second word
}

// A seen is a value that a change was decided from.
type seen struct {
	key, field string // field "": the value is that of the key
	value      string // "": there is none
}

// do adds a command.
func (c *change) do(command, key string, words ...any) {
	c.commands = append(c.commands, append([]any{command, key}, words...))
}

// write writes a change of data of the caller with a name. It fails with [handoff.CodeShutdown] after a newer life of
// the service has begun, or while another instance has the caller. promise is that of
// [switchboard/handoff/ledger.Batch]. It returns the reply of the last command, or -n if the nth seen value is another
// one.
func (e *engine) write(ctx context.Context, name string, c change, promise bool) (int, error) {
	newest, epoch, err := e.fence(name)
	if err != nil {
		return 0, err
	}
	return e.writeBehind(ctx, newest, epoch, c, promise)
}

// writeBehind writes a change in an epoch. newest is the key of the newest epoch.
func (e *engine) writeBehind(ctx context.Context, newest string, epoch int64, c change, promise bool) (int, error) {
	var keys []string
	args := append(make([]any, 0, 6*(len(c.commands)+1)), epoch, len(c.seen))
	for _, s := range c.seen {
		keys, args = append(keys, s.key), append(args, s.key, s.field, s.value)
	}
	for _, words := range c.commands {
		keys, args = append(keys, words[1].(string)), append(append(args, len(words)), words...)
	}
	slices.Sort(keys)
	keys = slices.Insert(slices.Compact(keys), 0, newest)
	var n *goredis.Cmd
	if promise {
		n = e.promised(ctx, changeScript, keys, args...)
	} else {
		n = changeScript.Run(ctx, e.client, keys, args...)
	}
	did, err := n.Int()
	return did, e.fault(err)
}
