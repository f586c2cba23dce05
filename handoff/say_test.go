package handoff

import (
	"testing"
	"time"
)

func TestListWords(t *testing.T) {
	for want, names := range map[string][]string{
		"": nil, "a": {"a"}, "a and b": {"a", "b"}, "a, b and c": {"a", "b", "c"},
	} {
		if got := ListWords(names); got != want {
			t.Errorf("%q: %q, want %q", names, got, want)
		}
	}
}

func TestAgo(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for _, row := range []struct {
		ago  time.Duration
		want string
	}{
		{-time.Hour, "just now"}, {0, "just now"}, {59 * time.Second, "just now"},
		{time.Minute, "1 minute ago"}, {119 * time.Second, "1 minute ago"}, {12 * time.Minute, "12 minutes ago"},
		{59 * time.Minute, "59 minutes ago"}, {time.Hour, "1 hour ago"}, {3*time.Hour + 50*time.Minute, "3 hours ago"},
		{23 * time.Hour, "23 hours ago"}, {24 * time.Hour, "yesterday"}, {47 * time.Hour, "yesterday"},
		{48 * time.Hour, "2 days ago"}, {13 * 24 * time.Hour, "13 days ago"}, {14 * 24 * time.Hour, "2 weeks ago"},
		{59 * 24 * time.Hour, "8 weeks ago"}, {60 * 24 * time.Hour, "2 months ago"}, {729 * 24 * time.Hour, "24 months ago"},
		{730 * 24 * time.Hour, "2 years ago"},
	} {
		if got := Ago(now, now.Add(-row.ago)); got != row.want {
			t.Errorf("%v: %q, want %q", row.ago, got, row.want)
		}
	}
	if got := Ago(now, time.Time{}); got != "" {
		t.Errorf("no time: %q", got)
	}
}
