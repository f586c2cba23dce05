package servers

import (
	"context"
	"errors"
	"iter"
	"regexp"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/handoff"
)

// A fakeServer is one end that a fleet dials in tests.
type fakeServer struct {
	mu       sync.Mutex
	refuse   error                         // Guarded by mu: the error of dialling
	out      bool                          // Guarded by mu: nobody is signed in
	delay    time.Duration                 // Guarded by mu: of dialing
	slow     time.Duration                 // Guarded by mu: of listing
	threads  []Thread                      // Guarded by mu
	links    []*fakeLink                   // Guarded by mu: every connection made
	attempts []time.Time                   // Guarded by mu
	dirs     []string                      // Guarded by mu: of threads made
	asked    []ForeignQuestion             // Guarded by mu
	changed  chan struct{}                 // Set once: [Link.Changed]
	unfit    atomic.Pointer[handoff.Error] // [Link.Unfit]
	onAttach func(*fakeLink, string) (handoff.Attached, error)
	onCreate func(*fakeLink) error
	onCheck  func()
	onList   func(ctx context.Context, limit int) error
}

// A fakeLink is one connection.
type fakeLink struct {
	server *fakeServer
	done   chan struct{}
	once   sync.Once
}

func (s *fakeServer) dial(ctx context.Context) (*Link, error) {
	s.mu.Lock()
	s.attempts = append(s.attempts, time.Now())
	refuse, delay := s.refuse, s.delay
	s.mu.Unlock()
	if delay > 0 {
		select {
		case <-time.After(delay):
		case <-ctx.Done():
			return nil, handoff.Fault(handoff.CodeUnreachable, "", ctx.Err().Error())
		}
	}
	if refuse != nil {
		return nil, refuse
	}
	l := &fakeLink{server: s, done: make(chan struct{})}
	s.mu.Lock()
	s.links = append(s.links, l)
	s.mu.Unlock()
	return &Link{Conn: l, Catalog: l, Done: l.done, Version: "0.169.0", Note: "It edits.", Check: s.signedIn, Changed: s.changed,
		Unfit: func() *handoff.Error { return s.unfit.Load() }}, nil
}

// signedIn is [Link.Check].
func (s *fakeServer) signedIn(context.Context) error {
	if s.onCheck != nil {
		s.onCheck()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.out {
		return handoff.Fault(handoff.CodeNotSignedIn, "bigpc", "")
	}
	return nil
}

func (s *fakeServer) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// drop loses the newest connection.
func (s *fakeServer) drop() {
	s.set(func() { s.links[len(s.links)-1].lose() })
}

func (s *fakeServer) connections() (open, all int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.links {
		if !closed(l.done) {
			open++
		}
	}
	return open, len(s.links)
}

func (s *fakeServer) tried() []time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]time.Time(nil), s.attempts...)
}

func (l *fakeLink) lose() { l.once.Do(func() { close(l.done) }) }

func (l *fakeLink) Close() error {
	l.lose()
	return nil
}

func (l *fakeLink) Attach(_ context.Context, thread string) (handoff.Attached, error) {
	if f := l.server.onAttach; f != nil {
		return f(l, thread)
	}
	return handoff.Attached{Agent: &fakeAgent{}, Target: handoff.Target{Thread: thread}}, nil
}

func (l *fakeLink) Create(_ context.Context, dir string) (handoff.Attached, error) {
	l.server.set(func() { l.server.dirs = append(l.server.dirs, dir) })
	if f := l.server.onCreate; f != nil {
		if err := f(l); err != nil {
			return handoff.Attached{}, err
		}
	}
	return handoff.Attached{Agent: &fakeAgent{}, Target: handoff.Target{Thread: idAuth}}, nil
}

func (l *fakeLink) List(ctx context.Context, limit int) ([]Thread, error) {
	l.server.mu.Lock()
	slow, threads := l.server.slow, l.server.threads
	l.server.mu.Unlock()
	if slow > 0 {
		select {
		case <-time.After(slow):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if f := l.server.onList; f != nil {
		if err := f(ctx, limit); err != nil {
			return nil, err
		}
	}
	return threads[:min(limit, len(threads))], nil
}

func (l *fakeLink) ForeignQuestions() []ForeignQuestion {
	l.server.mu.Lock()
	defer l.server.mu.Unlock()
	return l.server.asked
}

func (l *fakeLink) Read(ctx context.Context, thread string, lines int) (Text, error) {
	if time.Sleep(l.server.slow); ctx.Err() != nil {
		return Text{}, ctx.Err()
	}
	for _, t := range l.server.threads {
		if t.ID == thread {
			return Text{Thread: t, Lines: slices.Repeat([]handoff.Line{{Role: "command", Text: "\x1b[32mok\x1b[0m"}}, lines), More: 3}, nil
		}
	}
	return Text{}, handoff.Fault(handoff.CodeSessionGone, thread, "")
}

// fakeAgent counts how often it is closed.
type fakeAgent struct{ closed int }

func (a *fakeAgent) Start(context.Context, handoff.Turn) (handoff.TurnID, error) {
	return "", errors.New("not in these tests")
}

func (a *fakeAgent) Follow(context.Context, handoff.TurnID) iter.Seq2[handoff.Update, error] {
	return func(func(handoff.Update, error) bool) {}
}

func (a *fakeAgent) Close() error { a.closed++; return nil }

// isThread is the form of the ids in these tests.
var isThread = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`).MatchString

// bubble plays in a bubble of fake time, beside other tests.
func bubble(t *testing.T, play func(*testing.T)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, play)
}

// must ends a test that cannot go on after err.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
