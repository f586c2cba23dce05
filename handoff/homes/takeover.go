package homes

import (
	"context"
	"time"

	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
)

// takeOver takes the homes of a dead instance, or those that a draining one has given up. First it takes the homes for
// which it is the [Neighbours.Taker]; a moment later, those that the other takers have not taken.
func (s *Homes) takeOver(ctx context.Context, gone ledger.Beat) {
	dead, of := s.Dead(gone.ID), gone.ID
	if !dead {
		of = ""
	}
	defer func() {
		s.cluster.mu.Lock()
		defer s.cluster.mu.Unlock()
		delete(s.cluster.inheriting, gone.ID)
	}()
	had, err := s.cluster.Store.Callers(ctx, gone.ID)
	if err != nil {
		return
	}
	var mine, others []handoff.Caller
	s.cluster.mu.Lock()
	for _, c := range had {
		if s.cluster.neighbours.Taker(c) == s.cluster.Self.ID {
			mine = append(mine, c)
		} else {
			others = append(others, c)
		}
	}
	s.cluster.mu.Unlock()
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
		s.config.Log.Info("the callers of an instance that is gone are taken over", zap.String("instance", gone.ID),
			zap.Int("callers", len(had)))
		_ = s.cluster.Store.Forget(ctx, gone, had) // else it is tried again
	}
}

// inherit takes those of the homes that are free or belong to the dead instance gone; "": only free ones. It returns
// false if it could not take all of these.
func (s *Homes) inherit(ctx context.Context, gone string, of []handoff.Caller) bool {
	stored, err := s.cluster.Store.Claims(ctx, of)
	if err != nil {
		return false
	}
	claim := map[handoff.Caller]string{}
	for i, c := range of {
		claim[c] = stored[i].ID
	}
	return forEach(of, func(c handoff.Caller) error {
		if id := claim[c]; id != gone && id != "" {
			return nil
		}
		_, err := s.locate(ctx, c)
		if h := s.get(c); h != nil && err == nil {
			_ = h.Recovered(ctx, knownWithin)
		}
		return err
	}) == nil
}
