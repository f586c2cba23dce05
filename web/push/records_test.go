package push

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	webpush "github.com/SherClockHolmes/webpush-go"

	"switchboard/handoff"
	"switchboard/sessions"
)

// memory keeps records as a store does.
type memory struct {
	mu   sync.Mutex
	all  map[string]sessions.Record // Guarded by mu: by kind and name
	down error                      // Guarded by mu: what every call returns
}

func newMemory() *memory { return &memory{all: map[string]sessions.Record{}} }

func (m *memory) PutRecord(_ context.Context, r sessions.Record) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all[r.Kind+" "+r.Name] = r
	return m.down
}

func (m *memory) KeepRecord(_ context.Context, r sessions.Record) (sessions.Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if was, ok := m.all[r.Kind+" "+r.Name]; ok {
		return was, m.down
	}
	m.all[r.Kind+" "+r.Name] = r
	return r, m.down
}

func (m *memory) Records(_ context.Context, kind string) (all []sessions.Record, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range m.all {
		if r.Kind == kind {
			all = append(all, r)
		}
	}
	slices.SortFunc(all, func(a, b sessions.Record) int { return strings.Compare(a.Name, b.Name) })
	return all, m.down
}

func (m *memory) DropRecordAs(ctx context.Context, was sessions.Record) (bool, error) {
	m.mu.Lock()
	same := bytes.Equal(m.all[was.Kind+" "+was.Name].Body, was.Body)
	m.mu.Unlock()
	if !same {
		return false, nil
	}
	return m.DropRecord(ctx, was.Kind, was.Name)
}

func (m *memory) DropRecord(_ context.Context, kind, name string) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, was := m.all[kind+" "+name]
	delete(m.all, kind+" "+name)
	return was, m.down
}

// TestOldFile: the file of an earlier version is moved into the store, once. If another instance has stored its keys
// first, those are used, and the subscriptions of the file are dropped.
func TestOldFile(t *testing.T) {
	private, public, err := webpush.GenerateVAPIDKeys()
	must(t, err)
	file := func() string {
		dir := t.TempDir()
		was := oldFile{keys: keys{private, public}, Subscriptions: []subscription{{Caller: owner, Login: "l",
			To: webpush.Subscription{Endpoint: "https://push.example.com/x", Keys: webpush.Keys{P256dh: "p", Auth: "a"}}}}}
		must(t, os.WriteFile(filepath.Join(dir, oldFileName), []byte(handoff.Encode(was)), 0o600))
		return dir
	}
	here, elsewhere := newMemory(), newMemory()
	_, err = Open(t.Context(), Config{Store: elsewhere, Dir: t.TempDir()})
	must(t, err)
	for name, tt := range map[string]struct {
		store *memory
		taken bool
	}{"the first": {here, true}, "another was first": {elsewhere, false}} {
		dir := file()
		for range 2 {
			s, err := Open(t.Context(), Config{Store: tt.store, Dir: dir})
			must(t, err)
			all, err := s.subscriptions(t.Context())
			if err != nil || (s.Key() == public) != tt.taken || (len(all) == 1 && all[0].Login == "l") != tt.taken {
				t.Errorf("%s: key %q of %q, subscriptions %+v, %v", name, s.Key(), public, all, err)
			}
			if _, err := os.Stat(filepath.Join(dir, oldFileName)); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("%s: the file stays: %v", name, err)
			}
		}
	}
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, oldFileName), []byte("{"), 0o600))
	if _, err := Open(t.Context(), Config{Store: newMemory(), Dir: dir}); err == nil || !strings.Contains(err.Error(), "move it away") {
		t.Errorf("a damaged file: %v", err)
	}
}

// TestBesideEachOther: two senders over one store sign with the same key, and each sends to subscriptions made at the
// other.
func TestBesideEachOther(t *testing.T) {
	store := newMemory()
	b := newBrowser(t)
	one, other := running(t, Config{Store: store, Dir: t.TempDir()}), running(t, Config{Store: store, Dir: t.TempDir()})
	if one.Key() != other.Key() {
		t.Errorf("keys %q and %q", one.Key(), other.Key())
	}
	must(t, b.subscribe(one, "l"))
	other.Notify(handoff.Notice{Caller: owner, Text: "told by the other"})
	waitFor(t, func() bool { return len(b.messages()) == 1 })
	must(t, other.Unsubscribe(t.Context(), owner, b.url))
	if all, err := one.subscriptions(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("after it left: %+v, %v", all, err)
	}
}

// TestStoreIsAway: while the store does not answer, a notice counts as failed.
func TestStoreIsAway(t *testing.T) {
	store := newMemory()
	s := running(t, Config{Store: store, Dir: t.TempDir()})
	store.mu.Lock()
	store.down = errors.New("away")
	store.mu.Unlock()
	s.Notify(handoff.Notice{Caller: owner, Text: "a"})
	waitFor(t, func() bool { return s.failed.Load() == 1 })
}
