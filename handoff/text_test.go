package handoff

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func TestClip(t *testing.T) {
	for _, tc := range []struct {
		name  string
		fn    func(string, int) string
		in    string
		limit int
		want  string
	}{
		{"Clip", Clip, "abc", 3, "abc"},
		{"Clip", Clip, "abcdef", 5, "ab…"},
		{"Clip", Clip, "äöü", 5, "ä…"},
		{"Clip", Clip, "日本語", 7, "日…"},
		{"Clip", Clip, "日本語", 3, "…"},
		{"ClipRunes", ClipRunes, "abc", 3, "abc"},
		{"ClipRunes", ClipRunes, "abcd", 3, "ab…"},
		{"ClipRunes", ClipRunes, "ééé", 3, "ééé"},
		{"ClipRunes", ClipRunes, "éééé", 3, "éé…"},
		{"ClipRunes", ClipRunes, "", 3, ""},
		{"Cut", Cut, "abc", 3, "abc"},
		{"Cut", Cut, "abcd", 3, "abc"},
		{"Cut", Cut, "日本語", 5, "日"},
		{"Cut", Cut, "日本語", 2, ""},
		{"Tail", Tail, "abc", 3, "abc"},
		{"Tail", Tail, "abcd", 3, "bcd"},
		{"Tail", Tail, "aéé", 3, "é"},
		{"Tail", Tail, "日本語", 4, "語"},
		{"Tail", Tail, "日本語", 2, ""},
	} {
		if got := tc.fn(tc.in, tc.limit); got != tc.want {
			t.Errorf("%s(%q, %d) = %q, want %q", tc.name, tc.in, tc.limit, got, tc.want)
		}
	}
}

func FuzzClip(f *testing.F) {
	f.Add("äöü日本語", 7)
	f.Add("abc\x80\x80\x80\x80\x80\x80", 4)
	f.Fuzz(func(t *testing.T, text string, limit int) {
		if limit < len(ellipsis) || limit > 1<<20 {
			return
		}
		clipped, cut, tail, runes := Clip(text, limit), Cut(text, limit), Tail(text, limit), ClipRunes(text, limit)
		if max(len(clipped), len(cut), len(tail)) > limit ||
			!strings.HasPrefix(text, cut) || !strings.HasSuffix(text, tail) {
			t.Fatalf("%q %d: %q %q %q", text, limit, clipped, cut, tail)
		}
		if n := utf8.RuneCountInString(text); utf8.RuneCountInString(runes) > limit || n <= limit && runes != text {
			t.Fatalf("%q %d runes: %q", text, limit, runes)
		}
		whole := utf8.ValidString(clipped) && utf8.ValidString(cut) && utf8.ValidString(tail) && utf8.ValidString(runes)
		if utf8.ValidString(text) && !whole {
			t.Fatalf("%q %d is cut within a rune: %q %q %q %q", text, limit, clipped, cut, tail, runes)
		}
	})
}

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
