package joined

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/servers"
)

// patience bounds a wait. Only a failed test waits so long.
const patience = time.Minute

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A memory is a store, an audit and a fleet.
type memory struct {
	mu       sync.Mutex
	kept     map[string]Record   // Guarded by mu
	invited  []Invited           // Guarded by mu
	servers  []string            // Guarded by mu
	acts     []string            // Guarded by mu: acts that were audited
	refuse   error               // Guarded by mu: the error of the store; nil: none
	unread   error               // Guarded by mu: its error where machines are read; nil: none
	putting  func()              // Guarded by mu: called while a machine is stored; nil: nothing
	changing func(server string) // Guarded by mu: called for each server that is added; nil: nothing
}

func (s *memory) ChangeMachine(_ context.Context, was, is Record) (bool, error) {
	s.mu.Lock()
	putting := s.putting
	s.mu.Unlock()
	if putting != nil {
		putting()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	there := s.kept[string(is.Key)]
	if s.refuse != nil || there.Name != was.Name || !bytes.Equal(there.Body, was.Body) {
		return false, s.refuse
	}
	s.kept[string(is.Key)] = is
	return true, nil
}

func (s *memory) Machines(context.Context) (all []Record, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.kept {
		all = append(all, r)
	}
	return all, s.unread
}

func (s *memory) DropMachine(_ context.Context, key []byte) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, was := s.kept[string(key)]
	delete(s.kept, string(key))
	return was, nil
}

func (s *memory) PutInvitation(_ context.Context, i Invited) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.invited = append(s.invited, i)
	return nil
}

func (s *memory) Invitation(_ context.Context, sum [sha256.Size]byte) (Invited, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.invited, func(one Invited) bool { return one.Sum == sum })
	if i < 0 {
		return Invited{}, false, nil
	}
	return s.invited[i], true, nil
}

func (s *memory) SpendInvitation(_ context.Context, sum [sha256.Size]byte) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := len(s.invited)
	s.invited = slices.DeleteFunc(s.invited, func(one Invited) bool { return one.Sum == sum })
	return len(s.invited) < before, nil
}

func (s *memory) Audit(_ context.Context, r handoff.AuditRecord) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	who, _, _ := strings.Cut(r.Who, " ")
	s.acts = append(s.acts, strings.TrimSpace(who+" "+r.Server)+": "+r.Act)
	return nil
}

func (s *memory) Check(_ []string, put []servers.Spec) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, spec := range put {
		if spec.Name == "bigpc" {
			return errors.New("bigpc is there")
		}
	}
	return nil
}

func (s *memory) Change(drop []string, put []servers.Spec) error {
	if err := s.Check(drop, put); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, spec := range put {
		if drop = append(drop, spec.Name); s.changing != nil {
			s.changing(spec.Name)
		}
	}
	s.servers = slices.DeleteFunc(s.servers, func(name string) bool { return slices.Contains(drop, name) })
	for _, spec := range put {
		s.servers = append(s.servers, spec.Name)
	}
	slices.Sort(s.servers)
	return nil
}

func (s *memory) Retry(string) {}

func (s *memory) names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.servers)
}

func (s *memory) audited() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.acts)
}

// A service takes lines in a test.
type service struct {
	*Machines
	lines  *Lines
	memory *memory
	key    ed25519.PrivateKey
	url    string
}

// newService starts a service on a memory.
func newService(t *testing.T, with *memory, key ed25519.PrivateKey) *service {
	t.Helper()
	return newInstance(t, with, with, key, false)
}

// newInstance starts a service with its own fleet. shared: other services use the memory too.
func newInstance(t *testing.T, with *memory, fleet Fleet, key ed25519.PrivateKey, shared bool) *service {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	lines := new(Lines)
	m, err := Open(ctx, Config{Key: key, Store: with, Invited: with, Shared: shared, Fleet: fleet, Auditor: with,
		Log: zap.NewNop(), Spec: func(s Server) (servers.Spec, error) { return servers.Spec{Name: s.Name, Aliases: s.Aliases}, nil },
	}, lines)
	must(t, err)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := m.ServeHTTP(w, r, netip.Addr{}, func() {}); err != nil {
			handoff.AsError(err).Reply(w, false)
		}
	}))
	ended := make(chan error, 1)
	go func() { ended <- m.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		must(t, <-ended)
		web.Close()
	})
	return &service{m, lines, with, key, web.URL}
}

func newKey(t *testing.T) ed25519.PrivateKey {
	t.Helper()
	_, key, err := ed25519.GenerateKey(nil)
	must(t, err)
	return key
}

func fresh(t *testing.T) *service {
	t.Helper()
	return newService(t, &memory{kept: map[string]Record{}}, newKey(t))
}

// invite makes an invitation for a name.
func (s *service) invite(t *testing.T, name string) *Invitation {
	t.Helper()
	text, err := s.Invite(t.Context(), handoff.Caller{Principal: "owner"}, name)
	must(t, err)
	i, err := ParseInvitation(text)
	must(t, err)
	return &i
}

var codex = About{Agents: []Agent{{Name: "codex", Kind: "codex"}}}

// open opens a line that is closed with the test.
func (s *service) open(t *testing.T, v Visit) *Door {
	t.Helper()
	v.URL = s.url
	door, err := v.Open(t.Context())
	must(t, err)
	t.Cleanup(func() { _ = door.Close() })
	return door
}

// serve serves echoes of its agents on a line until the test ends.
func serve(t *testing.T, door *Door) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		var work sync.WaitGroup
		defer work.Wait()
		_ = door.Serve(ctx, &work, func(_ context.Context, to Opening) (serve func(net.Conn), err error) {
			if to.Agent != "codex" {
				return nil, errors.New("no agent " + to.Agent)
			}
			return func(conn net.Conn) {
				_, _ = conn.Write([]byte("I am " + to.Agent + ". "))
				_, _ = io.Copy(conn, conn)
			}, nil
		})
	}()
	t.Cleanup(func() { cancel(); <-ended })
}

func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

func (s *service) says(t *testing.T, server, words string) {
	t.Helper()
	conn, err := s.lines.Dial(t.Context(), server, false)
	must(t, err)
	defer conn.Close()
	_, err = conn.Write([]byte(words))
	must(t, err)
	want := "I am codex. " + words
	got := make([]byte, len(want))
	if _, err := io.ReadFull(conn, got); err != nil || string(got) != want {
		t.Errorf("%s says %q, %v", server, got, err)
	}
}

// TestJoin: a machine joins with an invitation, its agent is dialled through its line, and the machine comes back
// without an invitation, also after a restart of the service.
func TestJoin(t *testing.T) {
	t.Parallel()
	s, key := fresh(t), newKey(t)
	door := s.open(t, Visit{Key: key, Invitation: s.invite(t, "mini"), About: codex})
	serve(t, door)
	if door.Name != "mini" || !bytes.Equal(door.Service, s.key.Public().(ed25519.PublicKey)) {
		t.Fatalf("it is %q", door.Name)
	}
	until(t, "mini", func() bool { return slices.Equal(s.memory.names(), []string{"mini"}) })
	until(t, "its line", func() bool {
		conn, err := s.lines.Dial(t.Context(), "mini", false)
		return err == nil && conn.Close() == nil
	})
	s.says(t, "mini", strings.Repeat("0123456789", 100_000))
	must(t, door.Close())
	until(t, "the loss", func() bool {
		_, err := s.lines.Dial(t.Context(), "mini", false)
		return err != nil && strings.HasPrefix(handoff.AsError(err).Detail, "its machine is asleep or offline since ")
	})
	next := newService(t, s.memory, s.key)
	if specs := next.serversOf(next.sorted()[0]); len(specs) != 1 || specs[0].Name != "mini" {
		t.Errorf("the next life has %v", specs)
	}
	serve(t, next.open(t, Visit{Key: key, Service: door.Service, Name: "mini", About: codex}))
	until(t, "its line", func() bool {
		conn, err := next.lines.Dial(t.Context(), "mini", false)
		return err == nil && conn.Close() == nil
	})
	next.says(t, "mini", "again")
	want := []string{"owner mini: invited", "machine mini: joined"}
	if got := s.memory.audited(); !slices.Equal(got, want) {
		t.Errorf("audited %q, want %q", got, want)
	}
}

// TestOnlyItsAgents: through a line only the agents of its machine are reached.
func TestOnlyItsAgents(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	serve(t, s.open(t, Visit{Key: newKey(t), Invitation: s.invite(t, "mini"), About: codex}))
	until(t, "its line", func() bool { return s.counts.lines.Load() == 1 })
	s.mu.Lock()
	own := s.all[slices.Collect(func(yield func(string) bool) {
		for key := range s.all {
			yield(key)
		}
	})[0]].line
	s.mu.Unlock()
	for _, name := range []string{"", "claude", "127.0.0.1:22", "/var/run/docker.sock", "../codex", strings.Repeat("x", maxFrame)} {
		if conn, err := own.open(t.Context(), Opening{Agent: name}); err == nil {
			_ = conn.Close()
			t.Errorf("%.40q was reached", name)
		}
	}
	s.says(t, "mini", "still here")
}

// TestAgentsKeepTheirNames: the first agent's server has the machine's name, and other agents that come and go do not
// change it.
func TestAgentsKeepTheirNames(t *testing.T) {
	t.Parallel()
	s, key := fresh(t), newKey(t)
	claude := Agent{Name: "claude", Kind: "acp"}
	door := s.open(t, Visit{Key: key, Invitation: s.invite(t, "mini"), About: About{Agents: []Agent{claude}}})
	serve(t, door)
	both := About{Agents: []Agent{codex.Agents[0], claude}}
	for _, step := range []struct {
		about About
		want  []string
	}{
		{both, []string{"mini", "mini-codex"}}, {codex, []string{"mini-codex"}}, {About{}, nil}, {both, []string{"mini", "mini-codex"}},
		{About{Agents: []Agent{claude, claude, {Name: "../x", Kind: "acp"}}}, []string{"mini"}},
	} {
		must(t, door.Tell(step.about))
		until(t, strings.Join(step.want, ", "), func() bool { return slices.Equal(s.memory.names(), step.want) })
	}
}

// TestAnAgentIsNotItsMachine: a machine is removed and renamed by its own name, not by that of an agent's server.
func TestAnAgentIsNotItsMachine(t *testing.T) {
	t.Parallel()
	s, owner := fresh(t), handoff.Caller{Principal: "owner"}
	both := About{Agents: []Agent{codex.Agents[0], {Name: "claude", Kind: "acp"}}}
	s.open(t, Visit{Key: newKey(t), Invitation: s.invite(t, "mini"), About: both})
	for did, err := range map[string]error{
		"removed": s.Remove(t.Context(), owner, "mini-claude"), "renamed": s.Rename(t.Context(), owner, "mini-claude", "x"),
	} {
		if handoff.CodeOf(err) != handoff.CodeNotFound ||
			!strings.Contains(handoff.AsError(err).Spoken(), "mini-claude is an agent of mini") {
			t.Errorf("%s: %v", did, err)
		}
	}
	if names := s.memory.names(); !slices.Equal(names, []string{"mini", "mini-claude"}) {
		t.Errorf("there are %v", names)
	}
}

// TestRenameAndRemove: a renamed machine is found by its former name too, also when it comes back, and a machine that
// was removed is refused.
func TestRenameAndRemove(t *testing.T) {
	t.Parallel()
	s, key, owner := fresh(t), newKey(t), handoff.Caller{Principal: "owner"}
	door := s.open(t, Visit{Key: key, Invitation: s.invite(t, "mini"), About: codex})
	serve(t, door)
	until(t, "its line", func() bool { return s.counts.lines.Load() == 1 })
	s.memory.mu.Lock()
	s.memory.changing = func(server string) { s.says(t, server, "at once") } // as the fleet dials it
	s.memory.mu.Unlock()
	must(t, s.Rename(t.Context(), owner, "mini", "studio"))
	if got := s.serversOf(s.sorted()[0]); len(got) != 1 || got[0].Name != "studio" || !slices.Equal(got[0].Aliases, []string{"mini"}) {
		t.Errorf("it is %+v", got)
	}
	s.says(t, "studio", "renamed")
	for _, name := range []string{"bigpc", "", "a/b", strings.Repeat("x", 41)} {
		if err := s.Rename(t.Context(), owner, "studio", name); err == nil {
			t.Errorf("renamed %q", name)
		}
	}
	if _, err := s.Invite(t.Context(), owner, "mini"); err == nil {
		t.Error("its former name was given away")
	}
	if again := s.open(t, Visit{Key: key, Service: door.Service, Name: "mini", About: codex}); again.Name != "studio" {
		t.Errorf("it is told %q", again.Name)
	}
	must(t, s.Remove(t.Context(), owner, "studio"))
	if _, err := (Visit{URL: s.url, Key: key, Service: door.Service, Name: "studio", About: codex}).Open(t.Context()); !errors.Is(err, RefusedKey) {
		t.Errorf("after it was removed: %v", err)
	}
	if names := s.memory.names(); len(names) > 0 {
		t.Errorf("there are %v", names)
	}
	if err := s.Remove(t.Context(), owner, "studio"); handoff.AsError(err).Code != handoff.CodeNotFound {
		t.Errorf("removed again: %v", err)
	}
}

// TestLeave: a machine that leaves is forgotten.
func TestLeave(t *testing.T) {
	t.Parallel()
	s, key := fresh(t), newKey(t)
	door := s.open(t, Visit{Key: key, Invitation: s.invite(t, "mini"), About: codex})
	must(t, door.Close())
	s.open(t, Visit{Key: key, Service: door.Service, Leave: true})
	if names, all := s.memory.names(), s.sorted(); len(names)+len(all) > 0 {
		t.Errorf("there are %v, %v", names, all)
	}
	if n := s.counts.refused.Load(); n > 0 {
		t.Errorf("%d were refused", n)
	}
	who := "machine mini: left"
	if got := s.memory.audited(); !slices.Contains(got, who) {
		t.Errorf("audited %q, not %q", got, who)
	}
}

// TestJoinedAgain: a machine that has not got the answer may join again, and no machine joins with a name that is
// taken.
func TestJoinedAgain(t *testing.T) {
	t.Parallel()
	s, key := fresh(t), newKey(t)
	i := s.invite(t, "mini")
	s.open(t, Visit{Key: key, Invitation: i, About: codex})
	if door := s.open(t, Visit{Key: key, Invitation: i, About: codex}); door.Name != "mini" {
		t.Errorf("it is %q", door.Name)
	}
	v := Visit{URL: s.url, Key: key, Invitation: s.invite(t, "studio"), About: codex}
	if _, err := v.Open(t.Context()); !errors.Is(err, RefusedTwice) {
		t.Errorf("under another name: %v", err)
	}
	if _, err := s.Invite(t.Context(), handoff.Caller{}, "bigpc"); handoff.AsError(err).Code != handoff.CodeMalformed {
		t.Errorf("the name of another server: %v", err)
	}
}

func TestLoadKey(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "key.pem")
	made, err := LoadKey(path)
	must(t, err)
	if read, err := LoadKey(path); err != nil || !read.Equal(made) {
		t.Errorf("read another key, %v", err)
	}
}

func TestCheckURL(t *testing.T) {
	t.Parallel()
	for address, ok := range map[string]bool{
		"https://bigpc.ts.net": true, "https://bigpc:8443/": true, "http://127.0.0.1:8080": true, "http://[::1]:8080": true,
		"http://localhost:1": true, "http://bigpc:8080": false, "ws://127.0.0.1:1": false, "bigpc": false,
		"https://me@bigpc": false, "": false, "http://127.0.0.1.example.com": false,
	} {
		if err := CheckURL(address); (err == nil) != ok {
			t.Errorf("%q: %v", address, err)
		}
	}
}

func FuzzParseInvitation(f *testing.F) {
	f.Add(Invitation{}.String())
	f.Add(hex.EncodeToString(make([]byte, 26)))
	f.Fuzz(func(t *testing.T, code string) {
		i, err := ParseInvitation(code)
		if back, again := ParseInvitation(i.String()); err == nil && (again != nil || back != i) {
			t.Errorf("%q is %v and then %v", code, i, back)
		}
	})
}
