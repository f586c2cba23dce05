package servers

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/handoff"
)

// Sessions are listed to the oldest one, however many a server has.
func TestSessionsBeyondTheWindow(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := &fakeServer{}
		for i := range 2*listWindow + 50 {
			s.threads = append(s.threads, Thread{ID: fmt.Sprintf("t%03d", i), Title: fmt.Sprintf("Number %d", i),
				Updated: time.Now().Add(-time.Duration(i) * time.Minute)})
		}
		f := run(t, Spec{Name: "a", Dial: s.dial})
		synctest.Wait()
		for _, limit := range []int{0, 7, 40} {
			seen := 0
			for more := 1; more > 0; {
				list, err := f.Sessions(t.Context(), nobody, handoff.SessionQuery{Limit: limit, Skip: seen})
				must(t, err)
				for i, it := range list.Items {
					if want := fmt.Sprintf("t%03d", seen+i); it.ID != want {
						t.Fatalf("limit %d: %s, want %s", limit, it.ID, want)
					}
				}
				seen, more = seen+len(list.Items), list.More
			}
			if seen != len(s.threads) {
				t.Errorf("limit %d: %d sessions of %d", limit, seen, len(s.threads))
			}
		}
	})
}

// If a server reports changes, its older threads are listed anew after a change, and otherwise seldom.
func TestListedAnewWhenTold(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := &fakeServer{changed: make(chan struct{}, 1)}
		for i := range 150 {
			s.threads = append(s.threads, Thread{ID: fmt.Sprint(i), Title: fmt.Sprintf("Number %d", i),
				Updated: time.Now().Add(-time.Duration(i) * time.Minute)})
		}
		f := run(t, Spec{Name: "a", Dial: s.dial})
		synctest.Wait()
		found := func(what string) bool {
			list, err := f.Sessions(t.Context(), nobody, handoff.SessionQuery{Text: what})
			return err == nil && len(list.Items) == 1 && list.Items[0].ID == "149"
		}
		if !found("number 149") {
			t.Fatal("an old one was not found")
		}
		s.set(func() { s.threads[149].Title = "Invoices" })
		time.Sleep(2 * searchFreshFor)
		if found("invoices") {
			t.Error("all were listed anew, unasked")
		}
		s.changed <- struct{}{}
		synctest.Wait()
		if !found("invoices") {
			t.Error("its new name was not found")
		}
		s.set(func() { s.threads[149].Title = "Receipts" })
		s.drop() // nobody tells what changes meanwhile
		time.Sleep(time.Second)
		if !found("receipts") {
			t.Error("what changed while the connection was lost was not found")
		}
		s.set(func() { s.slow = time.Minute })
		s.changed <- struct{}{}
		synctest.Wait()
		if !found("receipts") {
			t.Error("an old one is not found any more once something changed, as it is slow to list them")
		}
	})
}
