package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/servers"
	"switchboard/servers/joined"
	"switchboard/web"
)

// reloading has the settings of a running service, and puts others into their place. It is safe for concurrent use.
type reloading struct {
	made  madeKeys                  // Set once
	again func() (*settings, error) // Set once: reads the settings; nil: they cannot change
	first *settings                 // Set once: what the service was made of
	there *roster                   // Set once
	put   func([]web.Key)           // Set once

	mu   sync.Mutex
	now  *settings // Guarded by mu
	lets []madeKey // Guarded by mu: the made keys that let in
}

// reload reads the settings again. Servers, keys and limits take effect, all or none of them: an error of code
// [handoff.CodeSettings] says what is wrong, and where.
func (l *reloading) reload(ctx context.Context) (web.Reloaded, error) {
	told := web.Reloaded{Did: []string{}}
	err := l.there.machines.Settle(ctx, func(all []joined.Server) error {
		if l.again == nil {
			return nil
		}
		next, err := l.again()
		if err != nil {
			return err
		}
		made, err := l.made.read(ctx)
		if err != nil {
			return err
		}
		did, restart, err := l.there.settle(next.Servers, all)
		if err != nil {
			return next.placed(err)
		}
		l.mu.Lock()
		was := l.now
		l.now, l.lets = next, made
		l.mu.Unlock()
		l.put(next.withMade(made))
		told.Did = append(append(told.Did, did...), keysChanged(was.Access, next.Access)...)
		told.Restart = append(unlike("", reflect.ValueOf(*l.first), reflect.ValueOf(*next)), restart...)
		if next.File != "" {
			told.File, err = filepath.Abs(next.File)
		}
		return err
	})
	if _, wrong := errors.AsType[problems](err); wrong {
		err = handoff.Fault(handoff.CodeSettings, err.Error(), "")
	}
	return told, err
}

// keys reads the made keys again. It takes its turn with the reloads: one that has read them before would bring back
// what was revoked since.
func (l *reloading) keys(ctx context.Context) error {
	return l.there.machines.Settle(ctx, func([]joined.Server) error {
		made, err := l.made.read(ctx)
		if err != nil {
			return err
		}
		l.mu.Lock()
		now, same := l.now, slices.Equal(l.lets, made)
		l.lets = made
		l.mu.Unlock()
		if !same {
			l.put(now.withMade(made))
		}
		return nil
	})
}

// keysEvery is how often it is looked for keys that were made or revoked at another instance.
const keysEvery = 2 * time.Second

// follow reads the made keys again and again until ctx ends. Those that cannot be read are as they were.
func (l *reloading) follow(ctx context.Context) error {
	ticker := time.NewTicker(keysEvery)
	defer ticker.Stop()
	for unread := false; ; {
		select {
		case <-ticker.C:
			err := l.keys(ctx)
			if err != nil && !unread && ctx.Err() == nil {
				l.there.log.Warn("made keys cannot be read: who has one that is revoked meanwhile stays in", zap.Error(err))
			}
			unread = err != nil
		case <-ctx.Done():
			return nil
		}
	}
}

// placed says where in the file what is wrong with its servers stands.
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
		if !ok { // a machine that joined: none of the file's, though what it clashes with is
			at = place{name: cmp.Or(s.File, defaultFile)}
		}
		found = append(found, problem{at, wrong.Server + ": " + wrong.Why})
	}
	return found.sorted()
}

// keysChanged says which keys have come, gone or changed.
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

// unlike returns the settings that two structs have unlike, but for those that take effect at once.
func unlike(path string, was, is reflect.Value) (names []string) {
	for field, value := range was.Fields() {
		name := field.Tag.Get("yaml")
		if name == "" || name == "-" || path == "" && slices.Contains([]string{"servers", "keys", "limits"}, name) {
			continue
		}
		other := is.FieldByName(field.Name)
		switch {
		case field.Type.Kind() == reflect.Struct && !isText(field.Type):
			names = append(names, unlike(join(path, name), value, other)...)
		case !reflect.DeepEqual(value.Interface(), other.Interface()):
			names = append(names, join(path, name))
		}
	}
	return names
}

// entriesOf returns what a file that was decoded says of each server, by name, in one form whatever its layout.
func entriesOf(data []byte) map[string]string {
	all := map[string]string{}
	parsed, err := parse(data)
	if err != nil {
		return all
	}
	for _, doc := range parsed.Docs {
		top, _ := mapping(doc.Body)
		for _, e := range top {
			list, ok := e.Value.(*ast.SequenceNode)
			if !ok || e.Key.GetToken().Value != "servers" {
				continue
			}
			for _, item := range list.Values {
				var entry map[string]any
				if err := yaml.NodeToValue(item, &entry); err != nil {
					continue // it was decoded, so that it has no part in which this could fail
				}
				name, _ := entry["name"].(string)
				text, _ := json.Marshal(entry) // maps in the order of their keys
				all[name] = string(text)
			}
		}
	}
	return all
}
