package web

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/handoff"
)

// A waiter is a Responses API whose one answer never comes.
type waiter struct{ ended chan error } // why its requests ended

func (w waiter) Patterns() []string { return []string{"GET /v1/responses/{id}"} }
func (w waiter) Close()             {}

func (w waiter) Serve(_ http.ResponseWriter, r *http.Request, _ handoff.Grant) error {
	<-r.Context().Done()
	w.ended <- context.Cause(r.Context())
	return nil
}

// TestRevokedKeyEndsRequests: a request of the Responses API ends within a heartbeat after its key was revoked, with
// that as the cause; if the client leaves, there is no such cause.
func TestRevokedKeyEndsRequests(t *testing.T) {
	for _, revoke := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			w := waiter{make(chan error, 1)}
			s := newServer(t, newWorld(), func(c *Config) { c.Responses = w })
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			var work sync.WaitGroup
			work.Go(func() {
				r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/v1/responses/resp_1", nil)
				r.Header.Set("Authorization", "Bearer "+ownerKey)
				s.ServeHTTP(httptest.NewRecorder(), r)
			})
			time.Sleep(time.Hour)
			if len(w.ended) > 0 {
				t.Fatalf("it ended by itself: %v", <-w.ended)
			}
			if revoke {
				s.SetKeys([]Key{NewKey("owner", "another key")})
				time.Sleep(s.times.asks)
			} else {
				leave()
			}
			work.Wait()
			if err := <-w.ended; (handoff.AsError(err).Code == handoff.CodeUnauthorized) != revoke {
				t.Errorf("revoked %t: it ended with %v", revoke, err)
			}
		})
	}
}
