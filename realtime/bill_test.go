package realtime

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidwall/gjson"

	"switchboard/handoff"
	"switchboard/realtime/models"
)

// tenth is a usage that costs ten cents.
const tenth = `{"total_tokens":100,"input_tokens":0,"output_tokens":100,"output_token_details":{"audio_tokens":100}}`

// costly returns a response.done with a usage.
func costly(id, tag, usage string) string {
	return strings.Replace(done(id, tag, "completed"), `"status"`, `"usage":`+usage+`,"status"`, 1)
}

// A till is a stage whose responses cost something.
type till struct {
	*stage
	quota *quota
	book  *book
	bills []Bill
	pass  *admission
}

// newTill returns a call with these limits, in which nothing was used yet.
func newTill(t *testing.T, caller, key handoff.Limits) *till {
	s := newStage(t)
	l := newTillOf(t, s, caller, key)
	s.open(freshSession)
	return l
}

// newTillOf makes the responses of a stage cost something.
func newTillOf(t *testing.T, s *stage, caller, key handoff.Limits) *till {
	b := &book{}
	l := &till{book: b, quota: quotaOf(b)}
	l.quota.tariff = models.Tariff{Else: &models.Prices{TextOut: 100, AudioOut: 1000}}
	l.quota.billed = func(_ context.Context, b Bill) error {
		l.bills = append(l.bills, b)
		return nil
	}
	pass, fault := l.quota.enter(t.Context(), grantOf(caller, key))
	if fault != nil {
		t.Fatal(fault)
	}
	l.pass, l.stage = pass, s
	l.call.do(func() { l.call.pass = pass })
	return l
}

func grantOf(caller, key handoff.Limits) handoff.Grant {
	return handoff.Grant{Caller: someone.Caller, Key: "k", Limits: caller, KeyLimits: key}
}

// meter lets the call be metered until the function that it returns is called.
func (l *till) meter() (over func()) {
	metering, end := context.WithCancel(l.t.Context())
	metered := make(chan struct{})
	go func() { defer close(metered); l.pass.meter(metering, l.call) }()
	return func() {
		end()
		<-metered
		l.pass.leave()
	}
}

func (l *till) buy(id, usage string) {
	l.t.Helper()
	l.fromModel(began(id, ""), costly(id, "", usage))
}

func (l *till) asked() []string {
	var all []string
	for _, e := range l.model.sent() {
		if gjson.Get(e, "type").String() == "response.create" {
			all = append(all, e)
		}
	}
	return all
}

// TestMoney: a call whose money is used up tells its caller in one sentence, buys nothing but that, and ends when it
// was heard. What it cost is written down for the caller and the key, and the next call is refused until the day is
// over.
func TestMoney(t *testing.T) {
	day := handoff.Limits{DollarsPerDay: 0.25}
	for name, c := range map[string]struct {
		caller, key handoff.Limits
		why         string
		refused     bool // the next call
	}{
		"a day":           {day, handoff.Limits{}, "the money of today is used up", true},
		"a day of a key":  {handoff.Limits{DollarsPerDay: 9}, day, "the money of today is used up", true},
		"a call":          {handoff.Limits{DollarsPerCall: 0.25}, handoff.Limits{}, "the money for this call is used up", false},
		"a call by a key": {handoff.Limits{DollarsPerCall: 9}, handoff.Limits{DollarsPerCall: 0.25}, "the money for this call is used up", false},
		"the least":       {handoff.Limits{DollarsPerCall: 0.25, DollarsPerDay: 0.3}, day, "the money of today is used up", true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newTill(t, c.caller, c.key)
				over := l.meter()
				l.model.sent()
				l.buy("r1", tenth)
				l.buy("r2", tenth)
				l.wait(time.Minute)
				if got := l.asked(); len(got) > 0 {
					t.Fatalf("asked at 20 of 25 cents: %v", got)
				}
				l.buy("r3", tenth)
				began3 := time.Now()
				asked := l.asked()
				if len(asked) != 1 {
					t.Fatalf("at 30 of 25 cents it was asked %d times", len(asked))
				}
				l.fromModel(began("r4", "")) // the caller said something meanwhile
				l.wantSent(l.model, "response.cancel")
				l.fromModel(done("r4", "", "cancelled"))
				tag := tagIn(asked[0])
				if again := l.asked(); len(again) > 0 { // the floor asks anew once it is free
					tag = tagIn(again[0])
				}
				l.fromModel(began("r5", tag), audio("r5", time.Second), costly("r5", tag, tenth))
				l.wantSent(l.model, "")
				err := <-l.ended
				if took := time.Since(began3); took < time.Second || took > 2*time.Second {
					t.Errorf("it ended after %v", took)
				}
				if err == nil || !strings.Contains(handoff.AsError(err).Spoken(), c.why) {
					t.Errorf("it ended with %v", err)
				}
				over()
				if len(l.bills) != 1 || l.bills[0].Cost != models.Dollars(0.4) || l.bills[0].Tokens.AudioOut != 400 ||
					!l.bills[0].Priced || l.bills[0].Took < time.Minute || l.bills[0].Call != "rtc_test" {
					t.Errorf("the bill is %+v", l.bills)
				}
				_, fault := l.quota.enter(t.Context(), grantOf(c.caller, c.key))
				if (fault != nil) != c.refused || fault != nil && (fault.Code != handoff.CodeLimited || fault.Retry <= 0) {
					t.Fatalf("the next call: %v", fault)
				}
				if fault != nil {
					time.Sleep(fault.Retry)
					if _, fault = l.quota.enter(t.Context(), grantOf(c.caller, c.key)); fault != nil {
						t.Errorf("the next day: %v", fault)
					}
				}
			})
		})
	}
}

// TestMoneyUnsaid: a caller who goes on speaking, a client that asks for no response, and a model that says nothing do
// not keep a call open whose money is used up.
func TestMoneyUnsaid(t *testing.T) {
	for name, then := range map[string]func(l *till){
		"the caller speaks": func(l *till) { l.fromModel(speechStarted("u1")) },
		"the model is mute": func(*till) {},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newTill(t, handoff.Limits{DollarsPerCall: 0.05}, handoff.Limits{})
				over := l.meter()
				then(l)
				l.buy("r1", tenth)
				at := time.Now()
				if err := <-l.ended; err == nil || time.Since(at) != partingLimit {
					t.Errorf("it ended with %v after %v", err, time.Since(at))
				}
				over()
			})
		})
	}
}

// TestMoneyOfADirectCall: also where the provider carries the sound, a call whose money is used up ends when its caller
// has heard so, and not before.
func TestMoneyOfADirectCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newTillOf(t, newAttached(t), handoff.Limits{DollarsPerCall: 0.05}, handoff.Limits{})
		over := l.meter()
		l.model.sent()
		l.buy("r1", tenth)
		asked := l.asked()
		if len(asked) != 1 {
			t.Fatalf("asked %d times", len(asked))
		}
		tag := tagIn(asked[0])
		l.fromModel(began("r2", tag), `{"type":"output_audio_buffer.started","response_id":"r2"}`, spoken("r2"),
			costly("r2", tag, tenth))
		l.wait(2 * time.Second)
		select {
		case err := <-l.ended:
			t.Fatalf("it ended in the middle of its last sentence: %v", err)
		default:
		}
		at := time.Now()
		l.fromModel(`{"type":"output_audio_buffer.stopped","response_id":"r2"}`)
		err := <-l.ended
		if err == nil || !strings.Contains(handoff.AsError(err).Spoken(), "the money for this call is used up") ||
			time.Since(at) > 0 {
			t.Errorf("it ended with %v after %v", err, time.Since(at))
		}
		over()
	})
}

// TestMoneyInALanguage: the voice model gets the sentence of the settings' language.
func TestMoneyInALanguage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newTill(t, handoff.Limits{DollarsPerCall: 0.05}, handoff.Limits{})
		l.quota.partings = func(string) Partings { return Partings{Money: "Das Geld ist aufgebraucht."} }
		over := l.meter()
		l.buy("r1", tenth)
		synctest.Wait()
		if sent := strings.Join(l.model.sent(), "\n"); !strings.Contains(sent, `\"say\":\"Das Geld ist aufgebraucht.\"`) {
			t.Errorf("the model got %s", sent)
		}
		<-l.ended
		over()
	})
}

// TestMoneyOfOthers: what other calls of the same caller cost counts, and so does what the store could not take.
func TestMoneyOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limits := handoff.Limits{DollarsPerDay: 0.25}
		l := newTill(t, limits, handoff.Limits{})
		over := l.meter()
		l.buy("r1", tenth)
		name, today := "dollars of caller owner", time.Now().UTC().Format(time.DateOnly)
		if total, _ := l.book.Spend(t.Context(), name, today, "earlier", int64(models.Dollars(0.12))); models.Money(
			total,
		) != models.Dollars(
			0.22,
		) {
			t.Errorf("written down: %d", total)
		}
		l.model.sent()
		l.buy("r2", `{"output_token_details":{"text_tokens":1}}`)
		if got := l.asked(); len(got) > 0 { // $0.2201
			t.Fatalf("asked: %v", got)
		}
		l.book.set(true) // the store is away
		l.buy("r3", tenth)
		if got := l.asked(); len(got) != 1 {
			t.Fatalf("without a store it was asked %d times", len(got))
		}
		<-l.ended
		l.book.set(false)
		over()
		if total, _ := l.book.Spend(t.Context(), name, today, "", 0); models.Money(total) != models.Dollars(0.3201) {
			t.Errorf("written down in the end: %d", total)
		}
		l.book.set(true)
		if _, fault := l.quota.enter(t.Context(), grantOf(limits, handoff.Limits{})); fault == nil ||
			fault.Code != handoff.CodeStoreDown {
			t.Errorf("without a store: %v", fault)
		}
	})
}

// TestUsedMetrics: what all calls used is shown by kind, and what it cost as far as prices are known.
func TestUsedMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newTill(t, handoff.Limits{}, handoff.Limits{})
		over := l.meter()
		l.buy("r1", tenth)
		l.buy("r2", `{"input_tokens":7,"input_token_details":{"text_tokens":7,"cached_tokens":2}}`)
		l.buy("r3", `null`)
		l.quota.tariff = models.Tariff{}
		l.buy("r4", tenth)
		l.close()
		over()
		got := map[string]float64{}
		for m := range l.quota.used.metrics() {
			got[fmt.Sprint(m.Name, m.Labels)] = m.Value
		}
		for name, want := range map[string]float64{
			"switchboard_voice_cost_dollars_total[]":             0.1,
			"switchboard_voice_tokens_total[{kind audio_out}]":   200,
			"switchboard_voice_tokens_total[{kind text_in}]":     5,
			"switchboard_voice_tokens_total[{kind text_cached}]": 2,
			"switchboard_voice_tokens_total[{kind image_in}]":    0,
		} {
			if v, is := got[name]; !is || v != want {
				t.Errorf("%s is %v, want %v", name, v, want)
			}
		}
		if len(l.bills) != 1 || l.bills[0].Priced || l.bills[0].Tokens.Sum() != 207 {
			t.Errorf("the bill is %+v", l.bills)
		}
	})
}
