package realtime

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"

	"switchboard/handoff"
	"switchboard/realtime/models"
	"switchboard/realtime/rtc/rtctest"
)

// book is a [Spending] in memory.
type book struct {
	mu   sync.Mutex
	days map[string]int64 // Guarded by mu: by name and day
	down bool             // Guarded by mu
	mute bool             // Guarded by mu: it writes, and its answers are lost
}

func (b *book) Spend(_ context.Context, name, day, call string, soFar int64) (int64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.down {
		return 0, errors.New("away")
	}
	if b.days == nil {
		b.days = map[string]int64{}
	}
	of := name + " " + day + " " + call
	b.days[name+" "+day] += max(0, soFar-b.days[of])
	b.days[of] = max(soFar, b.days[of])
	if b.mute {
		return 0, errors.New("no answer")
	}
	return b.days[name+" "+day], nil
}

func (b *book) set(down bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.down = down
}

func quotaOf(m Spending) *quota {
	return newQuota(Config{Spending: m, Partings: func(string) Partings { return Partings{} }, Log: nopLog()})
}

// TestOpenCalls: the open calls of a caller are limited, and those of a key with all its callers.
func TestOpenCalls(t *testing.T) {
	q := quotaOf(nil)
	grant := func(user string) handoff.Grant {
		return handoff.Grant{
			Caller: handoff.Caller{Principal: "many", User: user}, Key: "k", Limits: handoff.Limits{Calls: 1},
			KeyLimits: handoff.Limits{Calls: 2},
		}
	}
	alice, fault := q.enter(t.Context(), grant("alice"))
	if fault != nil {
		t.Fatal(fault)
	}
	if _, fault := q.enter(t.Context(), grant("alice")); fault == nil || fault.Code != handoff.CodeLimited ||
		fault.Retry <= 0 {
		t.Errorf("a second call of alice: %v", fault)
	}
	if _, fault := q.enter(t.Context(), grant("bob")); fault != nil {
		t.Errorf("bob: %v", fault)
	}
	if _, fault := q.enter(t.Context(), grant("carol")); fault == nil ||
		!strings.Contains(fault.Spoken(), "2 calls are open") {
		t.Errorf("a third call of the key: %v", fault)
	}
	if _, fault := q.enter(t.Context(), handoff.Grant{Caller: handoff.NamelessCaller("many", "1"), Key: "k",
		KeyLimits: handoff.Limits{Calls: 2}}); fault == nil {
		t.Error("who has no name is not counted")
	}
	alice.leave()
	if _, fault := q.enter(t.Context(), grant("carol")); fault != nil {
		t.Errorf("carol, when alice has left: %v", fault)
	}
	for range 100 { // no limit
		if _, fault := q.enter(t.Context(), handoff.Grant{Caller: handoff.Caller{Principal: "owner"}}); fault != nil {
			t.Fatal(fault)
		}
	}
}

// TestMinutes: a call is told a minute before the day's minutes run out, and ends when they have; the next one
// is refused until the day is over. The time is written down while the call lasts.
func TestMinutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &book{}
		q := quotaOf(b)
		g := handoff.Grant{Caller: someone.Caller, Key: "k", Limits: handoff.Limits{MinutesPerDay: 3}}
		p, fault := q.enter(t.Context(), g)
		if fault != nil {
			t.Fatal(fault)
		}
		s := newStage(t)
		s.open(freshSession)
		began := time.Now()
		metering, over := context.WithCancel(t.Context())
		metered := make(chan struct{})
		go func() { defer close(metered); p.meter(metering, s.call) }()

		time.Sleep(100 * time.Second)
		if total, _ := b.Spend(t.Context(), "caller owner", began.UTC().Format(time.DateOnly), "", 0); time.Duration(total) < 80*time.Second {
			t.Errorf("%v written down after 100 s", time.Duration(total))
		}
		b.set(true) // it is away for a while: the call goes on
		time.Sleep(15 * time.Second)
		b.set(false)
		said := func() bool {
			return strings.Contains(strings.Join(s.model.sent(), "\n"), "time for calls is nearly used up")
		}
		if said() {
			t.Error("told too early")
		}
		time.Sleep(20 * time.Second)
		if !said() {
			t.Error("not told a minute before")
		}
		err := <-s.ended
		if took := time.Since(began); took < 179*time.Second || took > 182*time.Second {
			t.Errorf("it ended after %v", took)
		}
		if err == nil || handoff.AsError(err).Code != handoff.CodeLimited || handoff.AsError(err).Meaning().Close != 4429 {
			t.Errorf("it ended with %v", err)
		}
		over()
		<-metered
		p.leave()
		if len(q.open) != 0 {
			t.Errorf("still open: %v", q.open)
		}
		_, fault = q.enter(t.Context(), g)
		if fault == nil || fault.Code != handoff.CodeLimited || fault.Retry <= 0 || fault.Retry > 24*time.Hour ||
			len(q.open) != 0 {
			t.Errorf("the next call: %v, open %v", fault, q.open)
		}
		time.Sleep(fault.Retry)
		if p, fault = q.enter(t.Context(), g); fault != nil {
			t.Errorf("the next day: %v", fault)
		}
		b.set(true)
		if _, fault = q.enter(t.Context(), g); fault == nil || fault.Code != handoff.CodeStoreDown {
			t.Errorf("without a store: %v", fault)
		}
	})
}

// TestMinutesOfARedial: a call that the provider carries goes on while its lost socket is dialled again: so does its
// time.
func TestMinutesOfARedial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &book{}
		p, fault := quotaOf(b).enter(t.Context(), handoff.Grant{Caller: someone.Caller, Limits: handoff.Limits{MinutesPerDay: 3}})
		if fault != nil {
			t.Fatal(fault)
		}
		time.Sleep(time.Minute) // it is not metered before it begins
		s := newStage(t)
		for range 2 {
			socket, lost := context.WithTimeout(t.Context(), 10*time.Second)
			p.meter(socket, s.call)
			lost()
			time.Sleep(5 * time.Second)
		}
		today := time.Now().UTC().Format(time.DateOnly)
		if total, _ := b.Spend(t.Context(), "caller owner", today, "", 0); time.Duration(total) != 25*time.Second {
			t.Errorf("%v were written down", time.Duration(total))
		}
		p.leave()
		s.close()
	})
}

// TestLostAnswersCountOnce: what a store has written down counts once, also if its answers are lost.
func TestLostAnswersCountOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &book{}
		q := quotaOf(b)
		p, fault := q.enter(t.Context(), handoff.Grant{Caller: someone.Caller,
			Limits: handoff.Limits{MinutesPerDay: 60, DollarsPerDay: 100}})
		if fault != nil {
			t.Fatal(fault)
		}
		spend := func(mute bool) {
			b.mu.Lock()
			b.mute = mute
			b.mu.Unlock()
			p.bill.mu.Lock()
			p.bill.bill.Cost += models.Dollars(1)
			p.bill.mu.Unlock()
			_, _ = p.spend(t.Context(), time.Minute)
			_, _ = p.pay(t.Context())
		}
		check := func(minutes, dollars int) {
			t.Helper()
			today := time.Now().UTC().Format(time.DateOnly)
			if got := time.Duration(b.days["caller owner "+today]); got != time.Duration(minutes)*time.Minute {
				t.Errorf("%v, want %d minutes", got, minutes)
			}
			if got := models.Money(b.days["dollars of caller owner "+today]); got != models.Dollars(float64(dollars)) {
				t.Errorf("%v dollars, want %d", got.Dollars(), dollars)
			}
		}
		for range 5 {
			spend(true)
		}
		check(5, 5)
		spend(false)
		check(6, 6)
		time.Sleep(24 * time.Hour) // the next day begins with what it brings
		spend(false)
		check(1, 1)
		p.leave()
	})
}

// TestLimitedOnTheWire: a call over a limit is refused before the upgrade, and before the voice model is dialled.
func TestLimitedOnTheWire(t *testing.T) {
	h := newHouse(t)
	limited := someone
	limited.Limits.Calls = 1
	p, fault := h.front.quota.enter(t.Context(), limited)
	if fault != nil {
		t.Fatal(fault)
	}
	h.grant = limited
	_, response, err := websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(h.edge.URL, "http")+"/v1/realtime", nil)
	if err == nil || response == nil || response.StatusCode != http.StatusTooManyRequests ||
		response.Header.Get("Retry-After") != "30" {
		t.Fatalf("not refused: %v %v", response, err)
	}
	_ = response.Body.Close()
	select {
	case <-h.model.conns:
		t.Error("the voice model was dialled")
	default:
	}
	p.leave()
	client, model := h.call("")
	_ = model.Close()
	_ = client.Close()
	rtctest.Eventually(t, "the call to be counted no more", func() bool {
		h.front.quota.mu.Lock()
		defer h.front.quota.mu.Unlock()
		return len(h.front.quota.open) == 0
	})
}
