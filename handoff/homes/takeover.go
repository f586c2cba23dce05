package homes

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
)

// takeOver takes the homes of an instance that is gone, or those that one which drains has let go of: those first which
// are this one's to take, and a moment later what the others have not taken.
func (s *Homes) takeOver(ctx context.Context, gone ledger.Beat) {
	dead, of := s.Dead(gone.ID), gone.ID
	if !dead {
		of = ""
	}
	defer func() {
		s.in.mu.Lock()
		defer s.in.mu.Unlock()
		delete(s.in.heir, gone.ID)
	}()
	had, err := s.in.Store.Callers(ctx, gone.ID)
	if err != nil {
		return
	}
	var mine, others []handoff.Caller
	s.in.mu.Lock()
	for _, c := range had {
		if s.in.near.Taker(c) == s.in.Self.ID {
			mine = append(mine, c)
		} else {
			others = append(others, c)
		}
	}
	s.in.mu.Unlock()
	if !s.inherit(ctx, of, mine) {
		return
	}
	if len(others) > 0 {
		select {
		case <-time.After(yieldFor):
		case <-ctx.Done():
			return
		}
	}
	if s.inherit(ctx, of, others) && dead {
		s.each.Log.Info("the callers of an instance that is gone are taken over", zap.String("instance", gone.ID),
			zap.Int("callers", len(had)))
		_ = s.in.Store.Forget(ctx, gone, had) // else it is tried again
	}
}

// inherit takes those homes which are free, or which an instance still has that is gone; "": none is. False: some could
// not be taken.
func (s *Homes) inherit(ctx context.Context, gone string, of []handoff.Caller) bool {
	stored, err := s.in.Store.Claims(ctx, of)
	if err != nil {
		return false
	}
	var all sync.WaitGroup
	room := make(chan struct{}, recovering)
	failed := make(chan struct{}, 1)
	for i, c := range of {
		if stored[i].ID != gone && stored[i].ID != "" {
			continue
		}
		room <- struct{}{}
		all.Go(func() {
			defer func() { <-room }()
			if _, err := s.locate(ctx, c); err != nil {
				select {
				case failed <- struct{}{}:
				default:
				}
				return
			}
			if h := s.had(c); h != nil {
				_ = h.Recovered(ctx, knownWithin)
			}
		})
	}
	all.Wait()
	return len(failed) == 0
}
