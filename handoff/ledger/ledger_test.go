package ledger_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
)

var entry = ledger.Entry{
	Key: "key", Caller: handoff.Caller{Principal: "owner"}, Owner: "a", Args: "args", Status: handoff.StatusCompleted,
	Attempt: 1, Accepted: time.UnixMilli(1764000000123).UTC(),
}

// TestUnreadable: a document that is no entry is left out and named, and hides no other one.
func TestUnreadable(t *testing.T) {
	docs := map[string]string{"handoff:key": handoff.Encode(entry), "sticky:bigpc": "{}"}
	want := []string{}
	for i, lost := range []string{"Key", "Owner", "Status", "Accepted", "Principal", "}"} {
		name := fmt.Sprint("handoff:bad-", i)
		docs[name] = strings.Replace(handoff.Encode(entry), lost, "", 1)
		want = append(want, name)
	}
	var bad []string
	all := ledger.Entries(docs, func(name string) { bad = append(bad, name) })
	if slices.Sort(bad); !slices.Equal(bad, want) || len(all) != 1 || all[0] != entry {
		t.Errorf("there are %+v, and unreadable are %q", all, bad)
	}
}

// TestEntryTexts: the texts of an entry are such that JSON has them, those of the history have about a kilobyte, and
// one of which no words are kept has none.
func TestEntryTexts(t *testing.T) {
	e, long := entry, strings.Repeat("wörter ", 1000)
	e.Prompt, e.Spoken, e.Title, e.Target.Thread = long, long, "\xff", "quote \" \x00 t\xbf1"
	e = e.Bounded()
	back, err := ledger.DecodeEntry(handoff.Encode(e))
	if err != nil || back != e || e.Title != "\ufffd" || e.Target.Thread != "quote \" \x00 t\ufffd1" {
		t.Errorf("it is %+v, %v, was %+v", back, err, e)
	}
	row := e.History().Row(time.UnixMilli(7))
	if row.At != 7 || len(row.Row) > 1200 || !slices.Contains(row.Words, "wörter") {
		t.Errorf("the row of %d bytes is %+v", len(row.Row), row)
	}
	e.Unkept = true
	if e = e.Bounded(); e.Prompt+e.Title+e.Spoken != "" || e.Row(time.Now()).Words != nil {
		t.Errorf("words are kept: %+v", e)
	}
}

// TestSticky: a current thread is what it was when it was stored, whatever its words, and one that cannot be read is
// none.
func TestSticky(t *testing.T) {
	now := time.UnixMilli(1764000000123).UTC()
	is := handoff.Sticky{Target: handoff.Target{Server: "big pc/ü*", Project: "a/b\x00:{}", Thread: "thread 1\n"},
		Title: "quote \" backslash \\ </script> 日本語\r\n", Named: true, Since: now.Add(-time.Nanosecond)}
	field, good, err := ledger.EncodeSticky(is, now)
	if back, set, ok := ledger.DecodeSticky(field, good); err != nil || back != is || !set.Equal(now) || !ok {
		t.Errorf("%q is %+v, set %v, %v", field, back, set, err)
	}
	for _, bad := range [][2]string{{field, `{"thread":"t1"`}, {field, "[]"}, {field, "{}"}, {field, `{"thread":7}`},
		{"", good}, {"%zz", good}, {"a/", good}, {"a/%zz", good}, {"/b", good}} {
		if s, _, ok := ledger.DecodeSticky(bad[0], bad[1]); ok {
			t.Errorf("%q is %+v", bad, s)
		}
	}
	for _, none := range []handoff.Target{{Thread: "t"}, {Server: "bigpc"}, {Server: "bigpc", Thread: handoff.NewThread}} {
		if _, _, err := ledger.EncodeSticky(handoff.Sticky{Target: none}, now); err == nil {
			t.Errorf("%+v is taken", none)
		}
	}
}
