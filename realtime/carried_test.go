package realtime

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

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
