package ticks

import (
	"testing"
	"time"
)

// TestLog holds that equal ticks are one line.
func TestLog(t *testing.T) {
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	l := New(began)
	for i, tick := range []Tick{
		{}, {}, {Caller: true}, {Caller: true, Open: 1}, {Voice: true, Tells: "h-1,h-2"}, {Voice: true, Tells: "h-1,h-2"}, {},
	} {
		now := began.Add(time.Duration(i) * Every)
		if i == 3 {
			l.Note(now, "request", "c1")
		}
		l.Add(now, tick)
	}
	l.Note(began.Add(200*time.Millisecond), "heard", "h-1")
	text := string(l.Text())
	if golden := "0 x2 - - 0 -\n40 x1 caller - 0 -\n60 ! request c1\n60 x1 caller - 1 -\n80 x2 - voice 0 h-1,h-2\n120 x1 - - 0 -\n" +
		"200 ! heard h-1\n"; text != golden {
		t.Errorf("%s\nnot\n%s", text, golden)
	}
}

// TestLogIsBounded holds that a log does not grow without end.
func TestLogIsBounded(t *testing.T) {
	l := New(time.Time{})
	for i := range maxLog / 10 {
		l.Add(time.Time{}.Add(time.Duration(i)*Every), Tick{Open: i})
	}
	if n := len(l.Text()); n > maxLog+100 {
		t.Errorf("%d bytes", n)
	}
}
