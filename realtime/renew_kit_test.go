package realtime

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"

	"switchboard/handoff"
)

// heirs are the further sessions of a stage's model: each is a wire that somebody runs.
type heirs struct {
	s    *stage
	made []*heir
	deny *handoff.Error // instead of the next ones
}

// An heir is one of them.
type heir struct {
	*wire
	over chan struct{}
	end  sync.Once
}

func (h *heir) Run(func([]byte)) {
	select {
	case <-h.gone:
	case <-h.over:
	}
}

func (h *heir) Close(why *handoff.Error) {
	h.wire.Close(why)
	h.end.Do(func() { close(h.over) })
}

func (h *heir) Abandon() { h.Close(nil) }

// renewed lets a stage's call go on in other sessions.
func renewed(s *stage) *heirs {
	all := &heirs{s: s}
	ctx, cancel := context.WithCancel(s.t.Context())
	s.t.Cleanup(cancel)
	s.call.do(func() {
		s.call.renewal.spawn = func(work func(context.Context)) { go work(ctx) }
		s.call.renewal.enable(func(context.Context) (connection, *handoff.Error) {
			if all.deny != nil {
				return nil, all.deny
			}
			h := &heir{wire: newWire(), over: make(chan struct{})}
			all.made = append(all.made, h)
			return h, nil
		})
	})
	return all
}

// newest returns the wire of the newest session, which has the model's place once it has begun.
func (h *heirs) newest() *heir { return h.made[len(h.made)-1] }

// begin lets the newest session begin, and the stage go on with it.
func (h *heirs) begin(created string) {
	h.s.t.Helper()
	next := h.newest()
	h.s.feed(h.s.call.takeFrom(next), []string{created})
	h.s.model, h.s.heir = next.wire, next
}

// from sends events of the newest session.
func (h *heirs) from(events ...string) {
	h.s.t.Helper()
	h.s.feed(h.s.call.takeFrom(h.newest()), events)
}

// lose closes the model's session.
func (h *heirs) lose() {
	h.s.t.Helper()
	close(h.s.model.gone)
	synctest.Wait()
}

// playRenewed runs a test on a stage whose model has further sessions.
func playRenewed(t *testing.T, fn func(*stage, *heirs)) {
	playFresh(t, func(s *stage) {
		h := renewed(s)
		s.open(freshSession)
		fn(s, h)
	})
}
