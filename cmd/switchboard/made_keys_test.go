package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
)

// TestKeysFileIsChangedOnce: keys that are made and revoked at the same moment all stay made and revoked.
func TestKeysFileIsChangedOnce(t *testing.T) {
	f := madeKeys{file: keysFile(t.TempDir())}
	key := func(name string) madeKey { return madeKey{name, sha256.Sum256([]byte(name))} }
	const many = 20
	for n := range many {
		must(t, f.add(t.Context(), key(fmt.Sprint("old-", n))))
	}
	var all sync.WaitGroup
	for n := range many {
		all.Go(func() {
			if err := f.add(t.Context(), key(fmt.Sprint("new-", n))); err != nil {
				t.Error(err)
			}
		})
		all.Go(func() {
			if err := f.drop(t.Context(), key(fmt.Sprint("old-", n))); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	left, err := f.read(t.Context())
	must(t, err)
	if len(left) != many || slices.ContainsFunc(left, func(k madeKey) bool { return k.principal[:4] == "old-" }) {
		t.Errorf("%d keys are left: %v", len(left), left)
	}
}

// TestKeysBeforeTheMove: while a service runs with its keys in a file, a key that is made with peers in the settings
// leaves that file as it is, and whoever made it is told from when it counts. A key of the file is revoked there, so
// that the next start does not bring it back.
func TestKeysBeforeTheMove(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	_, err := makeKey(t.Context(), madeKeys{file: keysFile(state)}, "guest")
	must(t, err)
	s := &settings{Redis: newSecret(startRedis(t)), Peers: peerSettings{Listen: "127.0.0.1:0"}}
	var out bytes.Buffer
	l, err := listenControl(state)
	must(t, err)
	served := &http.Server{Handler: control{keys: func(context.Context) error { return nil }, api: http.NotFoundHandler(), alone: true}.handler()}
	go func() { _ = served.Serve(l) }()
	defer func() { _ = served.Close() }()
	if err := changeKeys(t.Context(), s, state, "robot", false, &out); err == nil || !strings.Contains(err.Error(), "from the next start") {
		t.Errorf("a key that the service does not know yet: %v", err)
	}
	if left, err := keysFile(state).read(); err != nil || len(left) != 1 || left[0].principal != "guest" {
		t.Errorf("the file has %v, %v", left, err)
	}
	out.Reset()
	must(t, changeKeys(t.Context(), s, state, "guest", true, &out))
	left, err := keysFile(state).read()
	if err != nil || len(left) != 0 || out.String() != "the made key of guest is revoked\n" {
		t.Errorf("%q: the file has %v, %v", out.String(), left, err)
	}
}
