package responses

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strconv"
	"sync"

	"switchboard/handoff"
)

const idempotencyKey = "Idempotency-Key"

// identify returns a request for work with what says which other requests are equal to this one, whose body has the
// hash sum. SDKs repeat a POST whose connection broke, most of them without an Idempotency-Key.
func identify(h http.Header, g handoff.Grant, sum string) handoff.Request {
	if g.Caller.Nameless() { // nobody else has their name
		return handoff.Request{}
	}
	if key := h.Get(idempotencyKey); key != "" {
		name := sha256.Sum256([]byte(handoff.Encode([]string{g.Caller.String(), g.Key}) + "key " + key))
		return handoff.Request{Key: "response " + hex.EncodeToString(name[:16]), Again: true, Args: sum}
	}
	n, err := strconv.Atoi(h.Get("X-Stainless-Retry-Count"))
	marked := err == nil // most clients that are no SDKs do not say whether they repeat a request
	return handoff.Request{
		Print: handoff.PrintOf("responses", g.Caller, g.Key, sum), Waits: true,
		First: marked && n <= 0, Again: marked && n > 0,
	}
}

// makings has the requests whose responses are being made, by what equal ones have in common: the newest of each. The
// router does not know them yet.
type makings struct{ newest sync.Map }

// A making is a request whose response is being made.
type making struct {
	ctx  context.Context // Set once: of its request
	over chan struct{}   // closed when the router knows it, or it has failed
}

// enter adds a request until leave is called. One that repeats another, or equals one whose client has left, waits
// until that is over.
func (s *makings) enter(ctx context.Context, run handoff.Request) (leave func()) {
	name := run.Key + run.Print
	if name == "" {
		return func() {}
	}
	m := &making{ctx, make(chan struct{})}
	if before, is := s.newest.Swap(name, m); is {
		if before := before.(*making); run.Again || before.ctx.Err() != nil && !run.First {
			<-before.over
		}
	}
	return func() {
		s.newest.CompareAndDelete(name, m)
		close(m.over)
	}
}
