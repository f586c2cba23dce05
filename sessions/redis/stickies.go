package redis

import (
	"context"
	_ "embed"

	goredis "github.com/redis/go-redis/v9"
	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/sessions"
)

//go:embed set.lua
var setSource string

var setScript = goredis.NewScript(setSource)

// List returns the sticky threads of a caller, the newest first.
func (s *Store) List(ctx context.Context, c handoff.Caller) ([]handoff.Sticky, error) {
	key, err := s.stickyKey(c)
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
			s.counts.badEntries.Add(1)
			s.log.Warn("unreadable sticky thread left out", zap.String("key", key), zap.String("field", field))
			continue
		}
		all = append(all, sticky)
	}
	sessions.SortStickies(all)
	return all, nil
}

// Set makes a thread the sticky one of its server and project. Setting it again renews its life.
func (s *Store) Set(ctx context.Context, c handoff.Caller, sticky handoff.Sticky) error {
	key, err := s.stickyKey(c)
	if err != nil {
		return err
	}
	field, value, err := sessions.EncodeSticky(sticky)
	if err != nil {
		return err
	}
	err = setScript.Run(ctx, s.client, []string{key}, field, value, sessions.StickyFor.Milliseconds()).Err()
	return s.fault(err)
}

// Clear forgets the sticky thread of exactly this server and project; the target's thread does not
// matter. Clearing what is not there is fine.
func (s *Store) Clear(ctx context.Context, c handoff.Caller, t handoff.Target) error {
	key, err := s.stickyKey(c)
	if err != nil {
		return err
	}
	return s.fault(s.client.HDel(ctx, key, sessions.StickyField(t)).Err())
}

// stickyKey names the hash of a caller.
func (s *Store) stickyKey(c handoff.Caller) (string, error) {
	name, err := sessions.CallerName(c)
	if err != nil {
		return "", err
	}
	return s.prefix + ":{" + name + "}:sticky", nil
}
