package main

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/servers"
	"switchboard/servers/joined"
	"switchboard/web"
)

// reloading keeps the settings of a running service, and replaces them. It is safe for concurrent use.
type reloading struct {
	made    madeKeys                  // Set once: the store of the made keys
	load    func() (*settings, error) // Set once: reads the settings; nil: they cannot change
	initial *settings                 // Set once: those that the service was built from
	roster  *roster                   // Set once
	setKeys func([]web.Key)           // Set once: replaces the keys of the edge

	mu       sync.Mutex
	current  *settings // Guarded by mu
	accepted []madeKey // Guarded by mu: the made keys that the edge accepts
}

// reload reads the settings again. Servers, keys and limits take effect, all of them or none: an error with
// [handoff.CodeSettings] lists what is wrong in the settings, and where.
func (l *reloading) reload(ctx context.Context) (web.Reloaded, error) {
	result := web.Reloaded{Did: []string{}}
	err := l.roster.machines.Settle(ctx, func(all []joined.Server) error {
		if l.load == nil {
			return nil
		}
		next, err := l.load()
		if err != nil {
			return err
		}
		file := next.File
		if file != "" {
			if file, err = filepath.Abs(file); err != nil {
				return err
			}
		}
		made, err := l.made.read(ctx)
		if err != nil {
			return err
		}
		did, restart, err := l.roster.settle(next.Servers, all)
		if err != nil {
			return next.placed(err)
		}
		l.mu.Lock()
		was := l.current
		l.current, l.accepted = next, made
		l.mu.Unlock()
		l.setKeys(next.withMade(made))
		result.Did = append(append(result.Did, did...), keysChanged(was.Access, next.Access)...)
		result.Restart = append(changedPaths("", reflect.ValueOf(*l.initial), reflect.ValueOf(*next)), restart...)
		result.File = file
		return nil
	})
	if _, wrong := errors.AsType[problems](err); wrong {
		err = handoff.Fault(handoff.CodeSettings, err.Error(), "")
	}
	return result, err
}

// ours returns the files that no agent may reach.
func (l *reloading) ours() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.current.Ours)
}

// keys reads the made keys again. It never runs beside a reload, which might have read the keys earlier and would
// accept a key again that was revoked since.
func (l *reloading) keys(ctx context.Context) error {
	return l.roster.machines.Settle(ctx, func([]joined.Server) error {
		made, err := l.made.read(ctx)
		if err != nil {
			return err
		}
		l.mu.Lock()
		now, same := l.current, slices.Equal(l.accepted, made)
		l.accepted = made
		l.mu.Unlock()
		if !same {
			l.setKeys(now.withMade(made))
		}
		return nil
	})
}

// keysEvery is the interval of reading the keys that other instances made or revoked.
const keysEvery = 2 * time.Second

// follow reads the made keys every [keysEvery] until ctx ends. While they cannot be read, the keys stay as they were.
func (l *reloading) follow(ctx context.Context) error {
	ticker := time.NewTicker(keysEvery)
	defer ticker.Stop()
	for unread := false; ; {
		select {
		case <-ticker.C:
			err := l.keys(ctx)
			if err != nil && !unread && ctx.Err() == nil {
				l.roster.log.Warn("made keys cannot be read: who has one that is revoked meanwhile stays in", zap.Error(err))
			}
			unread = err != nil
		case <-ctx.Done():
			return nil
		}
	}
}

// placed adds the places in the file to errors about its servers.
func (s *settings) placed(err error) error {
	all := []error{err}
	if several, ok := err.(interface{ Unwrap() []error }); ok {
		all = several.Unwrap()
	}
	var found problems
	for _, one := range all {
		wrong, ok := errors.AsType[servers.SpecError](one)
		if !ok {
			return err
		}
		i := slices.IndexFunc(s.Servers, func(spec servers.Spec) bool { return spec.Name == wrong.Server })
		at, ok := s.places[elem("servers", i)]
		if !ok { // a machine that joined, and clashes with a server of the file
			at = place{name: cmp.Or(s.File, defaultFile)}
		}
		found = append(found, problem{at, wrong.Server + ": " + wrong.Why})
	}
	return found.sorted()
}

// keysChanged describes which keys were added, removed or changed, for people.
func keysChanged(was, is []web.Key) (did []string) {
	find := func(all []web.Key, k web.Key) (web.Key, bool) {
		i := slices.IndexFunc(all, func(other web.Key) bool { return other.Sum == k.Sum && other.Principal == k.Principal })
		if i < 0 {
			return web.Key{}, false
		}
		return all[i], true
	}
	for _, k := range is {
		if before, there := find(was, k); !there {
			did = append(did, "a key of "+k.Principal+" is added")
		} else if !reflect.DeepEqual(before, k) {
			did = append(did, "what a key of "+k.Principal+" may do is changed")
		}
	}
	for _, k := range was {
		if _, there := find(is, k); !there {
			did = append(did, "a key of "+k.Principal+" is removed")
		}
	}
	return did
}

// changedPaths returns the paths of the settings that differ between two structs, except those that take effect without
// a restart.
func changedPaths(path string, was, is reflect.Value) (names []string) {
	now := maps.Collect(rows(is))
	for row, value := range rows(was) {
		switch {
		case path == "" && slices.Contains([]string{"servers", "keys", "limits"}, row):
		case isGroup(value.Type()):
			names = append(names, changedPaths(join(path, row), value, now[row])...)
		case !reflect.DeepEqual(value.Interface(), now[row].Interface()):
			names = append(names, join(path, row))
		}
	}
	return names
}
