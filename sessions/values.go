package sessions

import (
	"context"
	"crypto/rand"
	"time"

	"switchboard/handoff"
)

// A Value is stored data that belongs to no caller: a login, a machine, a key. Only the code that writes values of a
// kind knows the content of their bodies.
type Value struct {
	Kind  string // a few words of our own, one kind for each use
	Name  string // unique within its kind
	Group string // by which values of a kind are listed and counted; it never changes
	Body  []byte
	Ends  time.Time // when it is forgotten, to the millisecond; zero: never

	// Version is that of the stored value; "" means that there is none. Each change gives it a new one, so that a value
	// that was dropped and made again differs from the first.
	Version string
}

// There reports whether the value is stored.
func (v Value) There() bool { return v.Version != "" }

// MaxValue bounds the body of a value in bytes; a larger one is refused with code too_large.
const MaxValue = 128 << 10

// Values stores values. A change says what it was made from, so nothing that was dropped or changed meanwhile is put
// back. Implementations are safe for concurrent use.
type Values interface {
	// Value returns the value with a name. If there is none, or it has ended, its Version is "".
	Value(ctx context.Context, kind, name string) (Value, error)
	// Values returns the values of a group in the order of their names.
	Values(ctx context.Context, kind, group string) ([]Value, error)
	// Change stores a value if what is stored under its name is still as it was read, and reports whether it did. A
	// value whose Body is nil is dropped.
	Change(ctx context.Context, c Change) (bool, error)
}

// A Change of a value; see [Values].
type Change struct {
	Was string // the Version that was read
	Is  Value  // its Version is ignored
	// Most bounds the values of its kind and group; beyond it, a new one is refused with code limited. 0: no bound.
	Most int
}

// Check returns why a change is refused, and gives the new value its version. Stores call it.
func (c *Change) Check() error {
	v := &c.Is
	switch {
	case v.Kind == "" || v.Name == "" || len(v.Kind)+len(v.Name)+len(v.Group) > 3*maxDocumentID:
		return handoff.Fault(handoff.CodeMalformed, "a value has a kind and a name", "")
	case len(v.Body) > MaxValue:
		return handoff.Fault(handoff.CodeTooLarge, v.Kind, "")
	}
	v.Version = ""
	if v.Body != nil {
		v.Version = rand.Text()
	}
	return nil
}

// maxTries bounds how often [update] reads a value that others change at the same time.
const maxTries = 50

// update changes a value from what it is now. do gets the stored value, or one without a version, and returns the
// new one; nil as its body drops it. do returns false to leave the value as it is.
func update(ctx context.Context, in Values, kind, name string, most int, do func(*Value) (bool, error)) error {
	for range maxTries {
		v, err := in.Value(ctx, kind, name)
		if err != nil {
			return err
		}
		v.Kind, v.Name = kind, name
		was := v.Version
		if change, err := do(&v); !change || err != nil {
			return err
		}
		if done, err := in.Change(ctx, Change{Was: was, Is: v, Most: most}); done || err != nil {
			return err
		}
	}
	return handoff.Fault(handoff.CodeUnreachable, "the store", "others change the same "+kind+" all the time")
}
