package sessions

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"time"
)

// PutApp implements [Apps].
func (k *Keyed) PutApp(ctx context.Context, a App) (bool, error) {
	return k.add(ctx, appKind, a.ID, a.Principal, MaxApps, a.Ends, a)
}

// ChangeApp implements [Apps].
func (k *Keyed) ChangeApp(ctx context.Context, a App, from [sha256.Size]byte) (bool, error) {
	return change(ctx, k, appKind, a.ID, func(was *App, v *Value) bool {
		if was.Principal != a.Principal || was.Next != from {
			return false
		}
		*was, v.Ends = a, a.Ends
		return true
	})
}

// App implements [Apps].
func (k *Keyed) App(ctx context.Context, id string) (App, bool, error) {
	return one[App](ctx, k, appKind, id)
}

// Apps implements [Apps].
func (k *Keyed) Apps(ctx context.Context, principal string) ([]App, error) {
	all, err := group[App](ctx, k, appKind, principal)
	sortApps(all)
	return all, err
}

// DropApp implements [Apps].
func (k *Keyed) DropApp(ctx context.Context, principal, id string) (bool, error) {
	return change(ctx, k, appKind, id, func(a *App, v *Value) bool { return a.Principal == principal && drop(v) })
}

// ChangeMachine implements [Machines].
func (k *Keyed) ChangeMachine(ctx context.Context, was, is Machine) (bool, error) {
	if err := is.Check(); err != nil {
		return false, err
	}
	name := hex.EncodeToString(is.Key)
	if was.Key == nil {
		return k.add(ctx, machineKind, name, "", 0, time.Time{}, is)
	}
	return change(ctx, k, machineKind, name, func(now *Machine, _ *Value) bool {
		if now.Name != was.Name || !bytes.Equal(now.Body, was.Body) {
			return false
		}
		now.Name, now.Body = is.Name, is.Body
		return true
	})
}

// Machines implements [Machines].
func (k *Keyed) Machines(ctx context.Context) ([]Machine, error) {
	all, err := group[Machine](ctx, k, machineKind, "")
	all = slices.DeleteFunc(all, func(m Machine) bool {
		bad := m.Check() != nil
		if bad {
			k.bad(machineKind + " " + m.Name)
		}
		return bad
	})
	slices.SortFunc(all, func(a, b Machine) int {
		return cmp.Or(a.Joined.Compare(b.Joined), cmp.Compare(a.Name, b.Name))
	})
	return all, err
}

// DropMachine implements [Machines].
func (k *Keyed) DropMachine(ctx context.Context, key []byte) (bool, error) {
	return change(ctx, k, machineKind, hex.EncodeToString(key), func(_ *Machine, v *Value) bool { return drop(v) })
}

// PutRecord implements [Records].
func (k *Keyed) PutRecord(ctx context.Context, r Record) error {
	_, err := k.putRecord(ctx, r, true)
	return err
}

// KeepRecord implements [Records].
func (k *Keyed) KeepRecord(ctx context.Context, r Record) (Record, error) {
	return k.putRecord(ctx, r, false)
}

// putRecord makes a record, or replaces the one that is there, and returns the record that is stored then.
func (k *Keyed) putRecord(ctx context.Context, r Record, replace bool) (Record, error) {
	if err := r.Check(); err != nil {
		return r, err
	}
	body := append([]byte{}, r.Body...)
	err := update(ctx, k.values, recordKind+r.Kind, r.Name, MaxRecords, func(v *Value) (bool, error) {
		if v.There() && !replace {
			r.Body = v.Body
			return false, nil
		}
		r.Body, v.Body = body, body
		return true, nil
	})
	return r, err
}

// Records implements [Records].
func (k *Keyed) Records(ctx context.Context, kind string) ([]Record, error) {
	values, err := k.values.Values(ctx, recordKind+kind, "")
	all := make([]Record, 0, len(values))
	for _, v := range values {
		all = append(all, Record{Kind: kind, Name: v.Name, Body: v.Body})
	}
	return all, err
}

// DropRecord implements [Records].
func (k *Keyed) DropRecord(ctx context.Context, kind, name string) (bool, error) {
	return k.dropRecord(ctx, kind, name, func([]byte) bool { return true })
}

// DropRecordAs implements [Records].
func (k *Keyed) DropRecordAs(ctx context.Context, was Record) (bool, error) {
	return k.dropRecord(ctx, was.Kind, was.Name, func(body []byte) bool { return bytes.Equal(body, was.Body) })
}

func (k *Keyed) dropRecord(
	ctx context.Context, kind, name string, is func(body []byte) bool,
) (dropped bool, err error) {
	err = update(ctx, k.values, recordKind+kind, name, 0, func(v *Value) (bool, error) {
		dropped = v.There() && is(v.Body) && drop(v)
		return dropped, nil
	})
	return dropped && err == nil, err
}
