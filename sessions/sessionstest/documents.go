package sessionstest

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"switchboard/handoff"
	"switchboard/sessions"
)

func document(owner handoff.Caller, id, body string) sessions.Document {
	return sessions.Document{Owner: owner, ID: id, Body: []byte(body),
		Ends: time.Now().Add(24 * time.Hour).UTC().Truncate(time.Millisecond)}
}

func putDocument(t *testing.T, s sessions.Documents, d sessions.Document) {
	t.Helper()
	Must(t, s.PutDocument(t.Context(), d))
}

func wantDocument(t *testing.T, s sessions.Documents, want sessions.Document) {
	t.Helper()
	if got, ok, err := s.Document(t.Context(), want.Owner, want.ID); err != nil || !ok || !reflect.DeepEqual(got, want) {
		t.Fatalf("found %.80v, %v, %v, want %.80v", got, ok, err, want)
	}
}

func wantNoDocument(t *testing.T, s sessions.Documents, owner handoff.Caller, id string) {
	t.Helper()
	if got, ok, err := s.Document(t.Context(), owner, id); ok || err != nil {
		t.Fatalf("found %v, %v, %v", got, ok, err)
	}
}

func testDocumentOwned(t *testing.T, s Store) {
	var all []sessions.Document
	for _, c := range hostile() {
		all = append(all, document(c, "resp_1", "of "+c.String()+"\x00{}"))
	}
	for _, d := range all {
		putDocument(t, s, d)
	}
	for _, d := range all {
		wantDocument(t, s, d)
	}
	wantNoDocument(t, s, handoff.Caller{Principal: "nobody"}, "resp_1")
	changed := all[0]
	changed.Body, changed.Ends = []byte(strings.Repeat("x", sessions.MaxDocument)), changed.Ends.Add(time.Hour)
	putDocument(t, s, changed)
	wantDocument(t, s, changed)
	wantDocument(t, s, all[1])
	for _, want := range []bool{true, false} {
		if dropped, err := s.DropDocument(t.Context(), changed.Owner, changed.ID); err != nil || dropped != want {
			t.Fatalf("dropped: %v, %v, want %v", dropped, err, want)
		}
	}
	wantNoDocument(t, s, changed.Owner, changed.ID)
	wantDocument(t, s, all[1])
	large := document(owner, "large", strings.Repeat("x", sessions.MaxDocument+1))
	for _, d := range []sessions.Document{large, document(owner, "", "x"), document(handoff.Caller{}, "resp_1", "x")} {
		if err := s.PutDocument(t.Context(), d); err == nil {
			t.Errorf("kept a document %q of %q with %d bytes", d.ID, d.Owner, len(d.Body))
		}
	}
}

func testLevels(t *testing.T, s Store) {
	levels := sessions.Levels{Documents: s}
	other := handoff.Caller{Principal: "nobody"}
	for _, level := range []handoff.SpeechLevel{"", handoff.LevelQuiet, handoff.LevelChatty} {
		if level != "" {
			Must(t, levels.SetLevel(t.Context(), owner, level))
		}
		for c, want := range map[handoff.Caller]handoff.SpeechLevel{owner: level, other: ""} {
			if got, err := levels.Level(t.Context(), c); got != want || err != nil {
				t.Errorf("of %s: %q, %v, want %q", c, got, err, want)
			}
		}
	}
}

func testDocumentEnds(t *testing.T, s Store) {
	ended := document(owner, "ended", "x")
	ended.Ends = time.Now().Add(-time.Second)
	putDocument(t, s, ended)
	wantNoDocument(t, s, owner, "ended")
}

// testDocumentsBounded: an owner has at most MaxDocuments; beyond it those that end first are dropped. Brief documents
// do not displace long ones or the documents of other owners, nor the other way round.
func testDocumentsBounded(t *testing.T, s Store) {
	many := func(name string, d sessions.Document) {
		for n := range sessions.MaxDocuments {
			d.ID, d.Ends = fmt.Sprint(name, n), d.Ends.Add(time.Millisecond)
			putDocument(t, s, d)
		}
	}
	others := document(handoff.Caller{Principal: "other"}, "first", "x")
	putDocument(t, s, others)
	brief, long := document(owner, "brief", "x"), document(owner, "long", "x")
	brief.Ends = time.Now().Add(sessions.Brief / 6).UTC().Truncate(time.Millisecond)
	putDocument(t, s, brief)
	many("long", long)
	wantDocument(t, s, brief)
	many("brief", brief)
	wantNoDocument(t, s, owner, brief.ID)
	first, last := long, long
	first.ID, first.Ends = "long0", long.Ends.Add(time.Millisecond)
	wantDocument(t, s, first)
	last.ID, last.Ends = "last", long.Ends.Add(time.Hour)
	putDocument(t, s, last)
	wantNoDocument(t, s, owner, first.ID)
	wantDocument(t, s, last)
	wantDocument(t, s, others)
}
