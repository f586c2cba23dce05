package realtime

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"

	"switchboard/handoff"
)

// successors are the further sessions of a stage's model.
type successors struct {
	s    *stage
	made []*successor
	deny *handoff.Error // instead of the next ones
}

// A successor is a wire that the call runs.
type successor struct {
	*wire
	over chan struct{}
	end  sync.Once
}

func (h *successor) Run(func([]byte)) {
	select {
	case <-h.gone:
	case <-h.over:
	}
}

func (h *successor) Close(why *handoff.Error) {
	h.wire.Close(why)
	h.end.Do(func() { close(h.over) })
}

func (h *successor) Abandon() { h.Close(nil) }

// renewed enables renewal for a stage's call.
func renewed(s *stage) *successors {
	all := &successors{s: s}
	ctx, cancel := context.WithCancel(s.t.Context())
	s.t.Cleanup(cancel)
	s.call.do(func() {
		s.call.renewal.spawn = func(work func(context.Context)) { go work(ctx) }
		s.call.renewal.enable(func(context.Context) (connection, *handoff.Error) {
			if all.deny != nil {
				return nil, all.deny
			}
			h := &successor{wire: newWire(), over: make(chan struct{})}
			all.made = append(all.made, h)
			return h, nil
		})
	})
	return all
}

// newest returns the wire of the newest session, which is the model's leg once it has begun.
func (h *successors) newest() *successor { return h.made[len(h.made)-1] }

// begin lets the newest session begin, and the stage go on with it.
func (h *successors) begin(created string) {
	h.s.t.Helper()
	next := h.newest()
	h.s.feed(h.s.call.takeFrom(next), []string{created})
	h.s.model, h.s.successor = next.wire, next
}

// from sends events of the newest session.
func (h *successors) from(events ...string) {
	h.s.t.Helper()
	h.s.feed(h.s.call.takeFrom(h.newest()), events)
}

// lose closes the model's session.
func (h *successors) lose() {
	h.s.t.Helper()
	close(h.s.model.gone)
	synctest.Wait()
}

// playRenewed runs a test on a stage whose model has further sessions.
func playRenewed(t *testing.T, fn func(*stage, *successors)) {
	playFresh(t, func(s *stage) {
		h := renewed(s)
		s.open(freshSession)
		fn(s, h)
	})
}
