package homes

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
	"unsafe"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
)

// second is a moment of the tests.
func second(s float64) time.Time {
	return time.Unix(1_000_000, 0).Add(time.Duration(s * float64(time.Second)))
}

// TestDead: an instance is dead once it was seen not to beat for four seconds. Time in which the table was not read
// does not count.
func TestDead(t *testing.T) {
	for name, test := range map[string]struct {
		ends  float64                   // when the instance ceases to beat
		reads func(yield func(float64)) // when the table is read
		dead  float64                   // when it is; 0: never
	}{
		"it goes on": {100, every(0, 60, 0.5), 0},
		"it ends":    {10, every(0, 60, 0.5), 13}, // its last beat was at 9
		"the store is away for all": {100, func(yield func(float64)) {
			every(0, 10, 0.5)(yield)
			every(40, 60, 0.5)(yield)
		}, 0},
		"it ends while the store is away": {10, func(yield func(float64)) {
			every(0, 10, 0.5)(yield)
			every(40, 60, 0.5)(yield)
		}, 43}, // a second of it was before
		"the table is hardly read": {10, every(0, 60, 2), 0},
		"it was never seen":        {0, every(20, 60, 0.5), 24},
	} {
		n, died := Neighbours{}, 0.0
		test.reads(func(at float64) {
			var table []ledger.Beat
			if test.ends > 0 {
				table = []ledger.Beat{{ID: "a", N: 1 + uint64(min(at, test.ends-1))}}
			}
			n.Read(table, second(at), second(at))
			if n.Dead("a") && died == 0 {
				died = at
			}
		})
		if died != test.dead {
			t.Errorf("%s: it is dead at %v, not at %v", name, died, test.dead)
		}
	}
}

// TestSuspended: an instance that was suspended for longer than it may act has to verify its homes, although its
// monotonic clock stood still meanwhile.
func TestSuspended(t *testing.T) {
	var n Neighbours
	now := time.Now()
	n.Acknowledged(now)
	later := now.Add(time.Second + time.Hour)
	(*struct {
		wall uint64
		mono int64
	})(unsafe.Pointer(&later)).mono -= int64(time.Hour)
	if n.MayAct(later) {
		t.Error("it acts right after it wakes")
	}
	if n.Acknowledged(later); n.MayAct(later) {
		t.Error("it acts before it has verified its homes")
	}
	if n.Verified(later); !n.MayAct(later) {
		t.Error("it never acts again")
	}
}

// TestDeadOfLateAnswers: time counts from when an answer came, which may have seen a beat of that moment, until the
// next question.
func TestDeadOfLateAnswers(t *testing.T) {
	var n Neighbours
	table := []ledger.Beat{{ID: "a", N: 1}}
	n.Read(table, second(0), second(2))
	for at := 2.0; at < 10; at++ { // of each second a quarter goes by until the answer
		n.Read(table, second(at), second(at+0.25))
		if dead := at >= 8; n.Dead("a") != dead {
			t.Errorf("at %v it is dead: %v", at, !dead)
		}
	}
}

// TestForgotten: instances that are gone from the table are not known for ever.
func TestForgotten(t *testing.T) {
	var n Neighbours
	every(0, 2*forgetAfter.Seconds(), 0.5)(func(at float64) {
		n.Read([]ledger.Beat{{ID: fmt.Sprint("life ", int(at)/60), N: uint64(at)}}, second(at), second(at))
	})
	if len(n.byID) > 62 || n.Dead("life 120") || !n.Dead("life 118") {
		t.Errorf("%d are known", len(n.byID))
	}
}

// every yields the times from first to last.
func every(first, last, step float64) func(func(float64)) {
	return func(yield func(float64)) {
		for at := first; at <= last; at += step {
			yield(at)
		}
	}
}

// TestMayAct: an instance acts for three seconds from the sending of its last beat. After that it looks first whether
// others have taken its homes.
func TestMayAct(t *testing.T) {
	var n Neighbours
	may := func(at float64, want bool) {
		t.Helper()
		if got := n.MayAct(second(at)); got != want {
			t.Errorf("at %v it may act: %v", at, got)
		}
	}
	may(0, false)
	n.Acknowledged(second(1))
	may(3.9, true)
	may(4, false)
	n.Acknowledged(second(3.5)) // whose answer took long
	may(6.4, true)
	n.Acknowledged(second(6.5))
	may(6.6, false)
	n.Verified(second(6.4)) // it was asked before
	may(6.6, false)
	n.Acknowledged(second(7.5))
	may(7.6, false)
	n.Verified(second(7.5))
	may(7.6, true)
	may(10.5, false)
}

// TestNobodyActsOnWhatIsTaken: whatever is delayed, lost or paused, and although clocks run up to a fifth faster or
// slower, an instance never acts at a moment at which another one holds it for dead.
func TestNobodyActsOnWhatIsTaken(t *testing.T) {
	dead := 0
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(26, seed))
		var a, b Neighbours
		rate := 1 / 1.2
		if seed%2 == 0 {
			rate = 1.2
		}
		clock := func(now float64) time.Time { return second(now * rate) } // a's; b's is that of the world
		type event struct {
			at float64
			do func(at float64)
		}
		var events []event // by when they happen
		after := func(at float64, do func(at float64)) {
			i, _ := slices.BinarySearchFunc(events, at, func(e event, at float64) int { return cmp.Compare(e.at, at) })
			events = slices.Insert(events, i, event{at, do})
		}
		late := func() float64 {
			if random.IntN(8) > 0 {
				return 0.01
			}
			return 2 * random.Float64()
		}
		away := func() bool { return random.IntN(12) == 0 }
		stored := uint64(0)
		for at := random.Float64(); at < 60; at += rate {
			if at > 20 && seed%3 == 0 && at < 30 { // a stands still
				continue
			}
			after(at, func(sent float64) {
				if away() {
					return
				}
				after(sent+late(), func(written float64) {
					stored++
					after(written+late(), func(float64) { a.Acknowledged(clock(sent)) })
				})
			})
		}
		for at := random.Float64(); at < 60; at += 0.5 {
			after(at, func(asked float64) {
				if away() {
					return
				}
				after(asked+late(), func(seen float64) {
					table := []ledger.Beat{{ID: "a", N: stored}}
					after(seen+late(), func(answered float64) {
						if second(asked).Before(b.read) {
							return // it asks once at a time
						}
						b.Read(table, second(asked), second(answered))
					})
				})
			})
		}
		for len(events) > 0 {
			next := events[0]
			events = events[1:]
			next.do(next.at)
			if b.Dead("a") {
				dead++
				if a.MayAct(clock(next.at)) {
					t.Fatalf("seed %d: at %v it acts, and is held for dead", seed, next.at)
				}
			}
		}
	}
	if dead == 0 {
		t.Error("nobody was ever held for dead")
	}
}

// TestTaker: all who see the same name the same taker, each gets its share, and what one had goes to all others.
func TestTaker(t *testing.T) {
	var n, other Neighbours
	table := []ledger.Beat{{ID: "a", N: 1}, {ID: "b", N: 1}, {ID: "c", N: 1}, {ID: "drains", N: 1, Draining: true}}
	n.Read(table, second(0), second(0))
	slices.Reverse(table)
	other.Read(table, second(7), second(7))
	share, without := map[string]int{}, map[string]int{}
	of := map[handoff.Caller]string{}
	for i := range 3000 {
		c := handoff.Caller{Principal: "many", User: fmt.Sprint(i)}
		of[c] = n.Taker(c)
		share[of[c]]++
		if there := other.Taker(c); there != of[c] {
			t.Fatalf("of %v it is %q here and %q there", c, of[c], there)
		}
	}
	other.Read([]ledger.Beat{{ID: "b", N: 2}, {ID: "c", N: 2}}, second(8), second(8))
	for c, was := range of {
		now := other.Taker(c)
		if was != "a" && now != was {
			t.Fatalf("of %v it was %q and is %q although that one is there", c, was, now)
		}
		if was == "a" {
			without[now]++
		}
	}
	if len(share) != 3 || len(without) != 2 || min(share["a"], share["b"], share["c"]) < 900 ||
		min(without["b"], without["c"]) < 400 {
		t.Errorf("the shares are %v, and those of a went %v", share, without)
	}
	if taker := new(Neighbours).Taker(handoff.Caller{Principal: "owner"}); taker != "" {
		t.Errorf("of nobody %q takes", taker)
	}
}

func TestVerify(t *testing.T) {
	mine := ledger.Claim{ID: "a", Epoch: 7}
	for _, test := range []struct {
		stored ledger.Claim
		want   Measure
	}{
		{mine, Keep}, {ledger.Claim{}, Assert},
		{ledger.Claim{ID: "b", Epoch: 6}, Assert}, {ledger.Claim{ID: "a", Epoch: 6}, Assert},
		{ledger.Claim{ID: "b", Epoch: 8}, Evict}, {ledger.Claim{Epoch: 8}, Evict}, {ledger.Claim{ID: "b", Epoch: 7}, Evict},
	} {
		if got := Verify(mine, test.stored); got != test.want {
			t.Errorf("of %+v the measure is %v", test.stored, got)
		}
	}
}
