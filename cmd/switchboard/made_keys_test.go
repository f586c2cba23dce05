package main

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"sync"
	"testing"
)

// TestKeysFileIsChangedOnce: keys that are made and revoked at the same moment all stay made and revoked.
func TestKeysFileIsChangedOnce(t *testing.T) {
	f := keysFile(t.TempDir())
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
