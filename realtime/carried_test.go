package realtime

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"

	"switchboard/realtime/rtc/rtctest"
)

// A carriedList is a [Carried] in memory, which outlives a front.
type carriedList struct {
	mu   sync.Mutex
	ids  []string // Guarded by mu
	away int      // Guarded by mu: how often it cannot be read yet
}

func (l *carriedList) Left(context.Context) ([]string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.away > 0 {
		l.away--
		return nil, errors.New("away")
	}
	return l.ids, nil
}

func (l *carriedList) Keep(_ context.Context, ids []string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ids = ids
	return nil
}

func (l *carriedList) has(ids ...string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Equal(l.ids, ids)
}

// TestLeftAtTheProvider: calls that a killed process left at the provider are hung up there by the next one, also where
// its store can be read only later, and those of its own are kept as long as they last.
func TestLeftAtTheProvider(t *testing.T) {
	hungUp := make(chan string, 10)
	provider := answersOffers(t, "rtc_3", func(conn *websocket.Conn) { _, _, _ = conn.ReadMessage() },
		func(_ http.ResponseWriter, r *http.Request) { hungUp <- r.PathValue("id") })
	kept := &carriedList{ids: []string{"rtc_1", "rtc_2"}, away: 1}
	front, err := NewFront(Config{ModelURL: "ws" + strings.TrimPrefix(provider, "http") + "/v1/realtime", Model: "m",
		Router: &listener{}, Tools: ours, Direct: true, Carried: kept})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- front.Run(ctx) }()
	all := []string{rtctest.Take(t, hungUp, "a hang-up"), rtctest.Take(t, hungUp, "another")}
	if slices.Sort(all); !slices.Equal(all, []string{"rtc_1", "rtc_2"}) {
		t.Errorf("hung up %q", all)
	}
	rtctest.Eventually(t, "nothing to be left", func() bool { return kept.has() })
	response, answer := post(t, serves(t, front.ServeCalls)+"?media=direct", "application/sdp", rtctest.NewWide(t, rtctest.Label).Offer())
	if response.StatusCode != http.StatusCreated {
		t.Fatalf("%d %s", response.StatusCode, answer)
	}
	rtctest.Eventually(t, "the call to be kept", func() bool { return kept.has("rtc_3") })
	stop()
	if err := <-ran; err != nil {
		t.Error(err)
	}
	if id := rtctest.Take(t, hungUp, "its end"); id != "rtc_3" || !kept.has() {
		t.Errorf("hung up %s, kept %q", id, kept.ids)
	}
}

// leaving has the client of a request go as the answer comes.
type leaving struct {
	http.RoundTripper
	leave func()
}

func (l leaving) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := l.RoundTripper.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(response.Body)
	_ = response.Body.Close()
	response.Body = io.NopCloser(bytes.NewReader(text))
	l.leave()
	return response, err
}

// TestHungUpInTheEnd: a call that cannot be hung up at the provider, as it is down, is hung up when it is back, as long
// as that may take. Its caller may begin another meanwhile.
func TestHungUpInTheEnd(t *testing.T) {
	for name, goes := range map[string]bool{"it was not joined": false, "its client has gone": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var down atomic.Bool
				down.Store(true)
				asking, leave := context.WithCancel(t.Context())
				defer leave()
				mux := http.NewServeMux()
				mux.HandleFunc("POST /v1/realtime/calls", func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Location", callPath+"rtc_1")
					w.WriteHeader(http.StatusCreated)
					_, _ = w.Write([]byte("v=0\r\n"))
				})
				mux.HandleFunc("POST /v1/realtime/calls/rtc_1/hangup", func(w http.ResponseWriter, _ *http.Request) {
					if down.Load() {
						w.WriteHeader(http.StatusServiceUnavailable)
					}
				})
				lines, provider := rtctest.NewPipes(), &http.Server{Handler: mux}
				go func() { _ = provider.Serve(lines) }()
				defer provider.Close()
				front, err := NewFront(Config{ModelURL: "ws://127.0.0.1:1/v1/realtime", Router: &listener{}, Dial: lines.Dial})
				if err != nil {
					t.Fatal(err)
				}
				defer front.Close()
				defer front.provider.http.CloseIdleConnections()
				grant := someone
				grant.Limits.Calls = 1
				if goes {
					front.provider.http.Transport = leaving{front.provider.http.Transport, leave}
				}
				r := httptest.NewRequestWithContext(asking, http.MethodPost, "/", nil)
				ctx, stop := context.WithCancel(t.Context())
				defer front.carried.hangups.Wait()
				defer stop()
				_ = front.serveDirect(ctx, httptest.NewRecorder(), r, grant, rtcOffer{}, func() {})
				pass, fault := front.quota.enter(ctx, grant)
				if fault != nil {
					t.Fatal(fault)
				}
				pass.leave()
				time.Sleep(time.Hour)
				if !slices.Equal(front.carried.all(), []string{"rtc_1"}) {
					t.Error("it is given up")
				}
				down.Store(false)
				time.Sleep(hangupSeldom)
				synctest.Wait()
				if all := front.carried.all(); len(all) > 0 {
					t.Errorf("not hung up: %q", all)
				}
			})
		})
	}
}
