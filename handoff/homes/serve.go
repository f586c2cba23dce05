package homes

import (
	"context"
	"iter"
	"slices"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/router"
)

// NextID returns an id that was never given; see [router.IDs].
func (s *Homes) NextID() string { return s.each.IDs.Next() }

// ServersChanged tells every page that the health of the fleet changed.
func (s *Homes) ServersChanged() {
	for _, h := range s.all() {
		h.ServersChanged()
	}
}

// Working reports whether work of anybody is under way on a server.
func (s *Homes) Working(server string) bool {
	return slices.ContainsFunc(s.all(), func(h *home) bool { return h.Working(server) })
}

// Waiting counts the work that waits for a server which was lost at a time, by caller.
func (s *Homes) Waiting(server string, lost time.Time) map[handoff.Caller]int {
	waiting := map[handoff.Caller]int{}
	for _, h := range s.all() {
		if n := h.Waiting(server, lost); n > 0 {
			waiting[h.Caller()] = n
		}
	}
	return waiting
}

// Recovered waits until it is known, and taken up, what a former life of the process left, for at most within; 0 does
// not wait. It gives [handoff.CodeStoreDown] while that is not so.
func (s *Homes) Recovered(ctx context.Context, within time.Duration) error {
	return router.Known(ctx, s.known, within)
}

// Start is [router.Router.Start] of the caller's home.
func (s *Homes) Start(ctx context.Context, g handoff.Grant, req handoff.Request) (handoff.RunID, error) {
	return s.of(g.Caller).Start(ctx, g, req)
}

// Give is [router.Router.Give] of the caller's home.
func (s *Homes) Give(ctx context.Context, g handoff.Grant, req handoff.Request) (handoff.Record, error) {
	return s.of(g.Caller).Give(ctx, g, req)
}

// Steer is [router.Router.Steer] of the caller's home.
func (s *Homes) Steer(ctx context.Context, g handoff.Grant, id string, req handoff.Request) (handoff.Record, error) {
	return s.of(g.Caller).Steer(ctx, g, id, req)
}

// Stop is [router.Router.Stop] of the caller's home.
func (s *Homes) Stop(ctx context.Context, g handoff.Grant, id string) error {
	return s.of(g.Caller).Stop(ctx, g, id)
}

// Move is [router.Router.Move] of the caller's home.
func (s *Homes) Move(ctx context.Context, g handoff.Grant, id, before string) error {
	return s.of(g.Caller).Move(ctx, g, id, before)
}

// MayGive is [router.Router.MayGive] of the caller's home.
func (s *Homes) MayGive(g handoff.Grant) error { return s.of(g.Caller).MayGive(g) }

// Prefetch is [router.Router.Prefetch] of the caller's home.
func (s *Homes) Prefetch(g handoff.Grant, key string, t handoff.Target) {
	s.of(g.Caller).Prefetch(g, key, t)
}

// Attend is [router.Router.Attend] of the caller's home.
func (s *Homes) Attend(g handoff.Grant, l handoff.Listener) (leave func()) {
	return s.of(g.Caller).Attend(g, l)
}

// Feed is [router.Router.Feed] of the caller's home.
func (s *Homes) Feed(g handoff.Grant) *handoff.Feed { return s.of(g.Caller).Feed(g) }

// Shown is [router.Router.Shown] of the caller's home.
func (s *Homes) Shown(g handoff.Grant) bool { return s.of(g.Caller).Shown(g) }

// Follow is [router.Router.Follow] of the caller's home.
func (s *Homes) Follow(
	ctx context.Context, c handoff.Caller, id handoff.RunID, after uint64,
) iter.Seq2[handoff.RunEvent, error] {
	return s.of(c).Follow(ctx, c, id, after)
}

// Heard is [router.Router.Heard] of the caller's home.
func (s *Homes) Heard(ctx context.Context, c handoff.Caller, id handoff.RunID) error {
	return s.of(c).Heard(ctx, c, id)
}

// HeardForGood is [router.Router.HeardForGood] of the caller's home.
func (s *Homes) HeardForGood(ctx context.Context, c handoff.Caller, id handoff.RunID) error {
	return s.of(c).HeardForGood(ctx, c, id)
}

// Handoff is [router.Router.Handoff] of the caller's home.
func (s *Homes) Handoff(g handoff.Grant, id string) (handoff.Record, error) {
	return s.of(g.Caller).Handoff(g, id)
}

// Handoffs is [router.Router.Handoffs] of the caller's home.
func (s *Homes) Handoffs(g handoff.Grant) ([]handoff.Record, error) {
	return s.of(g.Caller).Handoffs(g)
}

// Recall is [router.Router.Recall] of the caller's home.
func (s *Homes) Recall(ctx context.Context, c handoff.Caller) error { return s.of(c).Recall(ctx, c) }

// Past is [router.Router.Past] of the caller's home.
func (s *Homes) Past(ctx context.Context, c handoff.Caller, key string) (handoff.Record, bool, error) {
	return s.of(c).Past(ctx, c, key)
}

// Questions is [router.Router.Questions] of the caller's home.
func (s *Homes) Questions(g handoff.Grant) []handoff.RecordQuestion {
	return s.of(g.Caller).Questions(g)
}

// Question is [router.Router.Question] of the caller's home.
func (s *Homes) Question(g handoff.Grant, name string) (handoff.OpenQuestion, error) {
	return s.of(g.Caller).Question(g, name)
}

// Answer is [router.Router.Answer] of the caller's home.
func (s *Homes) Answer(ctx context.Context, g handoff.Grant, id handoff.QuestionID, a handoff.SpokenAnswer) error {
	return s.of(g.Caller).Answer(ctx, g, id, a)
}

// Unanswered is [router.Router.Unanswered] of the caller's home.
func (s *Homes) Unanswered(g handoff.Grant, id handoff.QuestionID) {
	s.of(g.Caller).Unanswered(g, id)
}

// Decide is [router.Router.Decide] of the caller's home.
func (s *Homes) Decide(ctx context.Context, g handoff.Grant, id handoff.QuestionID, d handoff.Decision) error {
	return s.of(g.Caller).Decide(ctx, g, id, d)
}

// Reply is [router.Router.Reply] of the caller's home.
func (s *Homes) Reply(ctx context.Context, g handoff.Grant, id handoff.QuestionID, words string) error {
	return s.of(g.Caller).Reply(ctx, g, id, words)
}

// Stickies is [router.Router.Stickies] of the caller's home.
func (s *Homes) Stickies(ctx context.Context, g handoff.Grant) ([]handoff.RecordSticky, error) {
	return s.of(g.Caller).Stickies(ctx, g)
}

// PutSticky is [router.Router.PutSticky] of the caller's home.
func (s *Homes) PutSticky(ctx context.Context, g handoff.Grant, server, thread, title string) error {
	return s.of(g.Caller).PutSticky(ctx, g, server, thread, title)
}

// ClearSticky is [router.Router.ClearSticky] of the caller's home.
func (s *Homes) ClearSticky(ctx context.Context, g handoff.Grant, server string) error {
	return s.of(g.Caller).ClearSticky(ctx, g, server)
}
