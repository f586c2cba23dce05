package sessions_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"switchboard/handoff"
	"switchboard/sessions"
)

// A shelf is a store with one document and no conversations, which can be made unreachable.
type shelf struct {
	sessions.Conversations
	document *sessions.Document
	unread   error // of reading
	unkept   error // of writing
}

func (s *shelf) PutDocument(_ context.Context, d sessions.Document) error {
	if s.unkept == nil {
		s.document = &d
	}
	return s.unkept
}

func (s *shelf) Document(context.Context, handoff.Caller, string) (sessions.Document, bool, error) {
	if s.unread != nil || s.document == nil {
		return sessions.Document{}, false, s.unread
	}
	return *s.document, true, nil
}

func (s *shelf) DropDocument(context.Context, handoff.Caller, string) (bool, error) {
	s.document = nil
	return true, nil
}

// TestBrokenCallsOfAStoreThatWasAway: a call that broke off is reported once, also if the store was unreachable when
// the next call began: to that call if the store could be read, else to the one after it.
func TestBrokenCallsOfAStoreThatWasAway(t *testing.T) {
	away, caller := errors.New("away"), handoff.Caller{Principal: "p"}
	left := func(words string) *handoff.BrokenCall {
		return &handoff.BrokenCall{Began: time.Now(), Ended: time.Now(), Lines: []handoff.SaidLine{{Text: words}}}
	}
	for name, test := range map[string]struct {
		unread, unkept error
		ends           *handoff.BrokenCall
		told, next     string // what the next call is told, and the one after it
	}{
		"read":                        {nil, nil, nil, "One fails.", ""},
		"not read":                    {away, away, nil, "", "One fails."},
		"not read, and breaks off":    {away, away, left("It is fixed."), "", "One fails.It is fixed."},
		"not written":                 {nil, away, nil, "One fails.", ""},
		"not written, and breaks off": {nil, away, left("It is fixed."), "One fails.", "It is fixed."},
	} {
		t.Run(name, func(t *testing.T) {
			s := &shelf{}
			b := sessions.NewBrokenCalls(s, s)
			begins := func(want string) {
				t.Helper()
				last, _, err := b.Begin(t.Context(), caller, time.Now())
				if failed := s.unread != nil || s.unkept != nil; (err != nil) != failed {
					t.Errorf("began with %v", err)
				}
				var text strings.Builder
				for _, l := range last.Lines {
					text.WriteString(l.Text)
				}
				if text.String() != want {
					t.Errorf("told %q, want %q", text.String(), want)
				}
			}
			begins("")
			if err := b.End(t.Context(), caller, left("One fails.")); err != nil {
				t.Fatal(err)
			}
			s.unread, s.unkept = test.unread, test.unkept
			begins(test.told)
			s.unread, s.unkept = nil, nil
			if err := b.End(t.Context(), caller, test.ends); err != nil {
				t.Fatal(err)
			}
			begins(test.next)
		})
	}
}
