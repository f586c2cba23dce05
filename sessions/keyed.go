package sessions

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"time"

	"switchboard/handoff"
)

// The kinds of values.
const (
	loginKind   = "login"   // by the sum of the token; a group is a principal's
	secretKind  = "secret"  // by the sum of the text; a group is a principal's
	appKind     = "app"     // by id; a group is a principal's
	codeKind    = "code"    // by the sum of the text; a group is those of one principal and key
	machineKind = "machine" // by key, all in one group
	recordKind  = "record " // the kind of the record follows; by name, all in one group
)

// Keyed has what belongs to no caller, over a store of values. It implements [Logins] except Spend, the secrets of the
// HTTP edge, [Apps], [Codes], [Machines] and [Records].
type Keyed struct {
	values Values            // Set once
	bad    func(name string) // Set once; counts and logs a value that cannot be read
}

// NewKeyed returns what belongs to no caller over a store. bad is told of each value that is left out, since it cannot
// be read: one bad value must not hide the others.
func NewKeyed(values Values, bad func(name string)) *Keyed { return &Keyed{values, bad} }

// named returns the name of a sum.
func named(sum [sha256.Size]byte) string { return hex.EncodeToString(sum[:]) }

// one returns the value with a name, decoded; false when there is none, or it cannot be read.
func one[T any](ctx context.Context, k *Keyed, kind, name string) (into T, _ bool, err error) {
	v, err := k.values.Value(ctx, kind, name)
	if err != nil || !v.There() {
		return into, false, err
	}
	if json.Unmarshal(v.Body, &into) != nil {
		k.bad(kind + " " + name)
		return into, false, nil
	}
	return into, true, nil
}

// group returns the values of a group, decoded.
func group[T any](ctx context.Context, k *Keyed, kind, name string) ([]T, error) {
	values, err := k.values.Values(ctx, kind, name)
	all := make([]T, 0, len(values))
	for _, v := range values {
		var one T
		if json.Unmarshal(v.Body, &one) != nil {
			k.bad(kind + " " + v.Name)
			continue
		}
		all = append(all, one)
	}
	return all, err
}

// add stores a new value of at most most in its group. It returns false if there is one with this name, or there are
// too many.
func (k *Keyed) add(ctx context.Context, kind, name, group string, most int, ends time.Time, of any) (bool, error) {
	done, err := k.values.Change(ctx, Change{Most: most,
		Is: Value{Kind: kind, Name: name, Group: group, Ends: ends, Body: []byte(handoff.Encode(of))}})
	if handoff.CodeOf(err) == handoff.CodeLimited {
		return false, nil
	}
	return done, err
}

// change replaces a value by what do makes of it; do returns false to leave it as it is. It reports whether it was
// changed.
func change[T any](
	ctx context.Context, k *Keyed, kind, name string, do func(*T, *Value) bool,
) (changed bool, err error) {
	err = update(ctx, k.values, kind, name, 0, func(v *Value) (bool, error) {
		changed = false
		var was T
		if !v.There() || json.Unmarshal(v.Body, &was) != nil || !do(&was, v) {
			return false, nil
		}
		changed = true
		if v.Body != nil {
			v.Body = []byte(handoff.Encode(was))
		}
		return true, nil
	})
	return changed && err == nil, err
}

// drop makes [change] drop a value.
func drop(v *Value) bool {
	v.Body = nil
	return true
}

// PutLogin implements [Logins].
func (k *Keyed) PutLogin(ctx context.Context, l Login) error {
	former, err := group[Login](ctx, k, loginKind, l.Principal)
	for _, f := range former {
		if f.ID == l.ID && f.Sum != l.Sum && err == nil {
			_, err = change(ctx, k, loginKind, named(f.Sum), func(_ *Login, v *Value) bool { return drop(v) })
		}
	}
	if err != nil {
		return err
	}
	return update(ctx, k.values, loginKind, named(l.Sum), 0, func(v *Value) (bool, error) {
		v.Group, v.Ends, v.Body = l.Principal, l.Ends, []byte(handoff.Encode(l))
		return true, nil
	})
}

// UseLogin implements [Logins].
func (k *Keyed) UseLogin(ctx context.Context, l Login, at time.Time) error {
	_, err := change(ctx, k, loginKind, named(l.Sum), func(l *Login, _ *Value) bool { l.Used = at; return true })
	return err
}

// Login implements [Logins].
func (k *Keyed) Login(ctx context.Context, sum [sha256.Size]byte) (Login, bool, error) {
	return one[Login](ctx, k, loginKind, named(sum))
}

// Logins implements [Logins].
func (k *Keyed) Logins(ctx context.Context, principal string) ([]Login, error) {
	all, err := group[Login](ctx, k, loginKind, principal)
	sortLogins(all)
	return all, err
}

// DropLogin implements [Logins].
func (k *Keyed) DropLogin(ctx context.Context, principal, id string) (bool, error) {
	all, err := group[Login](ctx, k, loginKind, principal)
	i := slices.IndexFunc(all, func(l Login) bool { return l.ID == id })
	if i < 0 || err != nil {
		return false, err
	}
	return change(ctx, k, loginKind, named(all[i].Sum), func(_ *Login, v *Value) bool { return drop(v) })
}

// PutSecret stores a client secret. It stores nothing and returns false while the principal has [MaxSecrets] that have
// not ended.
func (k *Keyed) PutSecret(ctx context.Context, s Secret) (bool, error) {
	return k.add(ctx, secretKind, named(s.Sum), s.Principal, MaxSecrets, s.Ends, s)
}

// Secret returns the client secret whose text has a sum; false when there is none or it has ended.
func (k *Keyed) Secret(ctx context.Context, sum [sha256.Size]byte) (Secret, bool, error) {
	return one[Secret](ctx, k, secretKind, named(sum))
}

// PutCode implements [Codes].
func (k *Keyed) PutCode(ctx context.Context, c Code) error {
	maker := sha256.Sum256(append(c.Key[:], c.Principal...))
	waiting, err := group[Code](ctx, k, codeKind, named(maker))
	slices.SortFunc(waiting, func(a, b Code) int { return a.Ends.Compare(b.Ends) })
	for _, old := range waiting[:max(0, len(waiting)+1-MaxCodes)] {
		if err == nil {
			_, _, err = k.SpendCode(ctx, old.Sum)
		}
	}
	if err != nil {
		return err
	}
	_, err = k.add(ctx, codeKind, named(c.Sum), named(maker), 0, c.Ends, c)
	return err
}

// SpendCode implements [Codes].
func (k *Keyed) SpendCode(ctx context.Context, sum [sha256.Size]byte) (code Code, ok bool, err error) {
	ok, err = change(ctx, k, codeKind, named(sum), func(c *Code, v *Value) bool { code = *c; return drop(v) })
	if !ok {
		code = Code{}
	}
	return code, ok, err
}
