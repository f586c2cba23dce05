package redis

import (
	"context"

	"switchboard/handoff"
	"switchboard/sessions"
)

var (
	setScript   = fenced("set")
	clearScript = fenced("clear")
)

// stickies stores the sticky threads of callers.
type stickies struct{ *engine }

// List returns the sticky threads of a caller, newest first.
func (s stickies) List(ctx context.Context, c handoff.Caller) ([]handoff.Sticky, error) {
	_, key, err := s.stickyKey(c)
	if err != nil {
		return nil, err
	}
	fields, err := s.client.HGetAll(ctx, key).Result()
	if err != nil {
		return nil, s.fault(err)
	}
	all := make([]handoff.Sticky, 0, len(fields))
	for field, value := range fields {
		sticky, ok := sessions.DecodeSticky(field, value)
		if !ok { // one bad entry must not hide the others
			s.badEntry(key + " " + field)
			continue
		}
		all = append(all, sticky)
	}
	sessions.SortStickies(all)
	return all, nil
}

// Set stores the sticky thread of its server and project. It renews the life of all stickies of the caller.
func (s stickies) Set(ctx context.Context, c handoff.Caller, sticky handoff.Sticky) error {
	name, key, err := s.stickyKey(c)
	if err != nil {
		return err
	}
	field, value, err := sessions.EncodeSticky(sticky)
	if err != nil {
		return err
	}
	err = s.runFenced(ctx, name, setScript, []string{key}, field, value, sessions.StickyFor.Milliseconds()).Err()
	return s.fault(err)
}

// Clear forgets the sticky thread of exactly this server and project, if there is one. The target's thread is ignored.
func (s stickies) Clear(ctx context.Context, c handoff.Caller, t handoff.Target) error {
	name, key, err := s.stickyKey(c)
	if err != nil {
		return err
	}
	return s.fault(s.runFenced(ctx, name, clearScript, []string{key}, sessions.StickyField(t)).Err())
}

// stickyKey returns the name of a caller and the key of their stickies.
func (s stickies) stickyKey(c handoff.Caller) (name, key string, err error) {
	name, err = sessions.CallerName(c)
	return name, s.key(name, "sticky"), err
}
