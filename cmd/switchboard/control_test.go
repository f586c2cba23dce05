package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"switchboard/handoff"
	"switchboard/sessions/sqlite"
	"switchboard/web"
)

func TestMadeKeys(t *testing.T) {
	dir := t.TempDir()
	if keys, err := keysFile(dir).read(); err != nil || len(keys) != 0 {
		t.Fatalf("none yet: %v %v", keys, err)
	}
	owner, err := makeKey(t.Context(), madeKeys{file: keysFile(dir)}, ownerName)
	if err != nil || !keyText.MatchString(owner) {
		t.Fatalf("made %q, %v", owner, err)
	}
	robot, err := makeKey(t.Context(), madeKeys{file: keysFile(dir)}, "robot")
	must(t, err)
	made, err := keysFile(dir).read()
	if err != nil || len(made) != 2 {
		t.Fatalf("kept %v %v", made, err)
	}
	text, err := os.ReadFile(filepath.Join(dir, madeKeysFile))
	if err != nil || strings.Contains(string(text), owner) || strings.Contains(string(text), robot) {
		t.Errorf("the file holds a key: %v", err)
	}
	if about, err := os.Stat(filepath.Join(dir, madeKeysFile)); err != nil || about.Mode().Perm() != 0o600 {
		t.Errorf("mode %v %v", about.Mode(), err)
	}
	for _, bad := range []string{"", "a b", "a\nb", "-x"} {
		if _, err := makeKey(t.Context(), madeKeys{file: keysFile(dir)}, bad); err == nil {
			t.Errorf("%q is a name", bad)
		}
	}
	listed := web.NewKey("robot", strings.Repeat("r", 16))
	listed.Tools = []string{"status"}
	listed.Approve, listed.Metrics = handoff.ApproveNone, true
	for name, tc := range map[string]struct {
		access  []web.Key
		want    int // keys in all
		tools   int // of the made key of the robot
		approve handoff.Approval
		metrics bool
	}{
		"no key configured":    {nil, 3, 0, handoff.ApproveVoice, false},
		"one of the same name": {[]web.Key{listed}, 4, 1, handoff.ApproveNone, true},
		"another one":          {[]web.Key{web.NewKey("me", strings.Repeat("m", 16))}, 4, 0, handoff.ApproveVoice, false},
	} {
		keys := (&settings{Access: tc.access}).withMade(made)
		last, owners := keys[len(keys)-1], keys[len(keys)-2]
		if len(keys) != tc.want || last.Sum != web.NewKey("", robot).Sum || last.Principal != "robot" || len(last.Tools) != tc.tools || last.Approve != tc.approve || last.Metrics != tc.metrics || last.Instructions == handoff.InstructAll {
			t.Errorf("%s: %+v", name, last)
		}
		for of, k := range map[string]web.Key{"made": owners, "this machine's": keys[0]} {
			if k.Principal != ownerName || k.Approve != handoff.ApproveAll || !k.Metrics || k.Instructions != handoff.InstructAll || k.Tools != nil || (of == "made") != (k.Sum == web.NewKey("", owner).Sum) {
				t.Errorf("%s, the owner's, %s: %+v", name, of, k)
			}
		}
	}
	if did, err := revokeKeys(t.Context(), madeKeys{file: keysFile(dir)}, "robot"); did != "the made key of robot is revoked" || err != nil {
		t.Errorf("%q, %v", did, err)
	}
	if made, _ := keysFile(dir).read(); len(made) != 1 || made[0].principal != ownerName {
		t.Errorf("left %v", made)
	}
	for _, broken := range []string{"zz owner\n", strings.Repeat("0", 64) + "\n", strings.Repeat("0", 66) + " owner\n"} {
		write(t, filepath.Join(dir, madeKeysFile), broken)
		if _, err := keysFile(dir).read(); err == nil || !strings.Contains(err.Error(), "line 1") {
			t.Errorf("%q: %v", broken, err)
		}
	}
}

// TestSharedKeys: where several instances have a store, the keys that one had made for itself are in it too, once; who
// revokes a key revokes it for all, and it does not come back with the start of another one.
func TestSharedKeys(t *testing.T) {
	t.Parallel()
	store, err := sqlite.Open(t.Context(), sqlite.Config{Dir: t.TempDir()})
	must(t, err)
	defer func() { must(t, store.Close()) }()
	a, b := t.TempDir(), t.TempDir()
	for _, dir := range []string{a, b} {
		_, err := makeKey(t.Context(), madeKeys{file: keysFile(dir)}, "guest")
		must(t, err)
	}
	principals := func(dir string) (all []string) {
		t.Helper()
		keys := madeKeys{file: keysFile(dir), shared: store}
		must(t, keys.move(t.Context()))
		made, err := keys.read(t.Context())
		must(t, err)
		for _, k := range made {
			all = append(all, k.principal)
		}
		slices.Sort(all)
		return all
	}
	if got := principals(a); !slices.Equal(got, []string{"guest"}) {
		t.Errorf("the first has %v", got)
	}
	if got := principals(b); !slices.Equal(got, []string{"guest", "guest"}) {
		t.Errorf("the second has %v", got)
	}
	shared := madeKeys{file: keysFile(b), shared: store}
	text, err := makeKey(t.Context(), shared, "robot")
	must(t, err)
	records, err := store.Records(t.Context(), madeKeysKind)
	if err != nil || strings.Contains(fmt.Sprintf("%s", records), text) {
		t.Errorf("the store holds a key: %v", err)
	}
	if did, err := revokeKeys(t.Context(), shared, "guest"); did != "2 made keys of guest are revoked" || err != nil {
		t.Errorf("%q, %v", did, err)
	}
	if got := principals(a); !slices.Equal(got, []string{"robot"}) {
		t.Errorf("the first has %v in the end", got)
	}
}

// The socket is for its user alone; a dead one is replaced, a living one is not.
func TestControlSocket(t *testing.T) {
	dir := t.TempDir()
	first, err := listenControl(dir)
	must(t, err)
	path := filepath.Join(dir, controlFile)
	if about, err := os.Stat(path); err != nil || about.Mode().Perm() != 0o600 {
		t.Errorf("mode %v %v", about.Mode(), err)
	}
	if _, err := listenControl(dir); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("a second one: %v", err)
	}
	_ = first.Close()
	if err := os.WriteFile(path, nil, 0o600); err != nil { // as a killed process leaves it: nobody answers
		t.Fatal(err)
	}
	second, err := listenControl(dir)
	must(t, err)
	served := &http.Server{Handler: control{link: func(_ context.Context, name string) (string, error) { return "to " + name, nil }, keys: func(context.Context) error { return errors.New("no keys") }, api: http.NotFoundHandler()}.handler()}
	go func() { _ = served.Serve(second) }()
	defer func() { _ = served.Close() }()
	here := hereClient(dir, "")
	if link, err := here.Login(t.Context(), "me"); link != "to me" || err != nil {
		t.Errorf("got %q, %v", link, err)
	}
	if _, err := here.ReadKeys(t.Context()); err == nil || err.Error() != "no keys" {
		t.Errorf("got %v", err)
	}
	if _, err := hereClient(t.TempDir(), "").Login(t.Context(), ""); !errors.Is(asNotRunning(err), errNotRunning) {
		t.Errorf("nobody there: %v", err)
	}
	busy := &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.EAGAIN)} // it takes no connection now
	if err := asNotRunning(busy); errors.Is(err, errNotRunning) {
		t.Error("a service that is busy counts as none")
	}
	if _, err := listenControl(filepath.Join(dir, strings.Repeat("long", 30))); err == nil || !strings.Contains(err.Error(), "too long") {
		t.Errorf("a long path: %v", err)
	}
}

// TestOlderService: a service that answered the verbs in another way, and still runs after an update, is told as that:
// neither an empty link nor keys that it did not read count as done.
func TestOlderService(t *testing.T) {
	dir := t.TempDir()
	l, err := listenControl(dir)
	must(t, err)
	old := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"error":"there is no key of that name"}`)
	})}
	go func() { _ = old.Serve(l) }()
	defer func() { _ = old.Close() }()
	here := hereClient(dir, "")
	_, login := here.Login(t.Context(), "")
	_, keys := here.ReadKeys(t.Context())
	for what, err := range map[string]error{"login": login, "keys": keys} {
		if err == nil || !strings.Contains(err.Error(), "older than this program: restart it") {
			t.Errorf("%s: %v", what, err)
		}
	}
}
