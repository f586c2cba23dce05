package handoff

import (
	"testing"
	"time"
)

// TestWishes: what a browser is told, and what of it rings.
func TestWishes(t *testing.T) {
	question := Notice{Kind: NoticeQuestion}
	failure := Notice{Kind: NoticeOutcome, Failed: true}
	done := Notice{Kind: NoticeOutcome}
	machine := Notice{Kind: NoticeMachine}
	for wish, want := range map[string][4]string{
		"":          {"rings", "rings", "told", "told"},
		"failures":  {"rings", "rings", "", ""},
		"questions": {"rings", "", "", ""},
	} {
		w := Wishes{For: wish}
		for i, n := range []Notice{question, failure, done, machine} {
			got := ""
			switch {
			case w.Wants(n) && w.Rings(n):
				got = "rings"
			case w.Wants(n):
				got = "told"
			}
			if got != want[i] {
				t.Errorf("%q, %s, failed: %t: %q, want %q", wish, n.Kind, n.Failed, got, want[i])
			}
		}
	}
}

// TestQuietHours: they may go over midnight.
func TestQuietHours(t *testing.T) {
	night, noon, always := &Hours{22 * 60, 7 * 60}, &Hours{12 * 60, 13 * 60}, &Hours{0, 0}
	for _, c := range []struct {
		hours *Hours
		at    string
		want  bool
	}{
		{nil, "23:00", false}, {night, "21:59", false}, {night, "22:00", true}, {night, "00:10", true}, {night, "06:59", true},
		{night, "07:00", false}, {noon, "12:00", true}, {noon, "12:59", true}, {noon, "13:00", false}, {noon, "11:59", false},
		{always, "05:00", true},
	} {
		at, err := time.Parse("15:04", c.at)
		if err != nil {
			t.Fatal(err)
		}
		if got := (Wishes{Quiet: c.hours}).Silent(at); got != c.want {
			t.Errorf("%+v at %s: %t", c.hours, c.at, got)
		}
	}
	for _, bad := range []Wishes{{For: "some"}, {Quiet: &Hours{-1, 5}}, {Quiet: &Hours{0, 1440}}} {
		if bad.Valid() {
			t.Errorf("%+v is taken", bad)
		}
	}
}
