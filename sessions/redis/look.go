package redis

import (
	"context"
	"errors"
	"fmt"
	"strings"

	goredis "github.com/redis/go-redis/v9"
)

// Look asks a Redis whether it answers, and who holds the lease there: "host:process", or "" for nobody. It writes
// nothing. Its errors are those of [Open].
func Look(ctx context.Context, cfg Config) (holder string, err error) {
	s := newStore(cfg)
	if err := s.connect(ctx, cfg.URL); err != nil {
		return "", err
	}
	defer func() { _ = s.client.Close() }() // nothing was written
	value, err := s.client.Get(ctx, s.leaseKey()).Result()
	if errors.Is(err, goredis.Nil) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read the lease %s on %s: %w", s.leaseKey(), s.where, err)
	}
	holder, _, _ = strings.Cut(value, " ")
	return holder, nil
}
