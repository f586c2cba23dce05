package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"switchboard/servers/joined"
	"switchboard/sessions"
	"switchboard/sessions/redis"
	"switchboard/web"
)

const (
	madeKeysFile = "keys" // a line for each: SHA-256 in hex, a space, the principal
	maxMadeKeys  = 100    // more are probably a mistake
	madeKeyBytes = 24     // 32 characters
)

// A madeKey is a key that `switchboard key` made, as it is stored: without its text.
type madeKey struct {
	principal string
	sum       [sha256.Size]byte
}

// madeKeysKind is the kind of the records with the made keys of several instances. A record's body is the principal,
// its name the SHA-256 of the key.
const madeKeysKind = "made keys"

// madeKeys are the made keys of a state directory: those in its file, and for several instances, those in the records
// of their shared store. A service moves its file's keys there when it starts with `peers`; one that began before that
// reads the file alone.
type madeKeys struct {
	file   keysFile
	shared sessions.Records // nil for a single instance
}

func (m madeKeys) read(ctx context.Context) ([]madeKey, error) {
	keys, err := m.file.read()
	if err != nil || m.shared == nil {
		return keys, err
	}
	records, err := m.shared.Records(ctx, madeKeysKind)
	if err != nil {
		return nil, fmt.Errorf("read the made keys: %w", err)
	}
	for _, r := range records {
		k, ok := madeKeyOf(r.Name, string(r.Body))
		if !ok {
			return nil, fmt.Errorf("the record %q of the made keys is none of `switchboard key`: remove it", r.Name)
		}
		keys = append(keys, k)
	}
	return keys, nil
}

func (m madeKeys) add(ctx context.Context, k madeKey) error {
	if m.shared == nil {
		return m.file.change(func(keys []madeKey) []madeKey { return append(keys, k) })
	}
	return m.shared.PutRecord(ctx, sessions.Record{
		Kind: madeKeysKind, Name: hex.EncodeToString(k.sum[:]), Body: []byte(k.principal),
	})
}

func (m madeKeys) drop(ctx context.Context, k madeKey) error {
	own, err := m.file.read()
	if slices.Contains(own, k) {
		err = m.file.change(func(keys []madeKey) []madeKey {
			return slices.DeleteFunc(keys, func(other madeKey) bool { return other == k })
		})
	}
	if m.shared != nil {
		_, dropErr := m.shared.DropRecord(ctx, madeKeysKind, hex.EncodeToString(k.sum[:]))
		err = cmp.Or(err, dropErr)
	}
	return err
}

// move moves the keys of the file to the shared store, if there is one.
func (m madeKeys) move(ctx context.Context) error {
	own, err := m.file.read()
	if err != nil || len(own) == 0 || m.shared == nil {
		return err
	}
	for _, k := range own {
		if err := m.add(ctx, k); err != nil {
			return err
		}
	}
	return os.Remove(m.file.path()) // otherwise a revoked key would come back
}

// A keysFile stores made keys in a file of the state directory, whose path it is.
type keysFile string

func (f keysFile) read() (keys []madeKey, err error) {
	text, err := os.ReadFile(f.path())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the made keys: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		digits, principal, _ := strings.Cut(strings.TrimSpace(line), " ")
		k, ok := madeKeyOf(digits, principal)
		if !ok {
			return nil, fmt.Errorf("line %d of %s is none of `switchboard key`: remove it", len(keys)+1, f.path())
		}
		keys = append(keys, k)
	}
	return keys, nil
}

func (f keysFile) path() string { return filepath.Join(string(f), madeKeysFile) }

// madeKeyOf decodes a stored key, and reports whether it is valid.
func madeKeyOf(digits, principal string) (madeKey, bool) {
	sum, err := hex.DecodeString(digits)
	if err != nil || len(sum) != sha256.Size || !plainName.MatchString(principal) {
		return madeKey{}, false
	}
	return madeKey{principal, [sha256.Size]byte(sum)}, true
}

// write replaces all keys in one step: a reader finds the old or the new ones.
func (f keysFile) write(keys []madeKey) error {
	var text bytes.Buffer
	for _, k := range keys {
		fmt.Fprintf(&text, "%x %s\n", k.sum, k.principal)
	}
	if err := joined.WriteWhole(f.path(), text.Bytes()); err != nil {
		return fmt.Errorf("write the made keys: %w", err)
	}
	return nil
}

// change changes the keys as no other process does at that moment: what one has revoked, another would write back.
func (f keysFile) change(do func([]madeKey) []madeKey) error {
	dir, err := os.Open(string(f))
	if err != nil {
		return fmt.Errorf("open the state directory: %w", err)
	}
	defer func() { _ = dir.Close() }() // nothing is buffered
	if err := syscall.Flock(int(dir.Fd()), syscall.LOCK_EX); err != nil {
		return fmt.Errorf("lock the state directory: %w", err)
	}
	defer func() { _ = syscall.Flock(int(dir.Fd()), syscall.LOCK_UN) }() // a child may have the file open, too
	keys, err := f.read()
	if err != nil {
		return err
	}
	return f.write(do(keys))
}

// openMadeKeys opens the made keys for a verb, whether a service runs or not.
func openMadeKeys(ctx context.Context, s *settings, state string) (keys madeKeys, done func(), err error) {
	keys, done = madeKeys{file: keysFile(state)}, func() {}
	if s.Peers.set() {
		keys.shared, done, err = redis.OpenRecords(ctx, redis.Config{URL: s.Redis.Reveal()})
	}
	return keys, done, err
}

// letIn opens the made keys, and returns all keys of the settings, those that were made, and the owner's.
func (s *service) letIn(ctx context.Context) ([]web.Key, error) {
	l := s.settings
	l.made.file = keysFile(s.plan.StateDir)
	if s.plan.Peers.set() {
		l.made.shared = s.store
	}
	err := l.made.move(ctx)
	if err == nil {
		l.accepted, err = l.made.read(ctx)
	}
	return l.initial.withMade(l.accepted), err
}

// makeKey makes a key for a principal, stores its SHA-256 and returns its text, which is stored nowhere.
func makeKey(ctx context.Context, in madeKeys, principal string) (string, error) {
	if !plainName.MatchString(principal) {
		return "", fmt.Errorf("%q is no name: use A-Z a-z 0-9 . _ -", principal)
	}
	keys, err := in.read(ctx)
	if err != nil {
		return "", err
	}
	if len(keys) >= maxMadeKeys {
		return "", fmt.Errorf("there are %d made keys already: revoke some", len(keys))
	}
	raw := make([]byte, madeKeyBytes)
	_, _ = rand.Read(raw) // never fails
	text := base64.RawURLEncoding.EncodeToString(raw)
	return text, in.add(ctx, madeKey{principal, sha256.Sum256([]byte(text))})
}

// revokeKeys drops every made key of a principal, and says in words how many there were.
func revokeKeys(ctx context.Context, in madeKeys, principal string) (string, error) {
	keys, err := in.read(ctx)
	n := 0
	for _, k := range keys {
		if err == nil && k.principal == principal {
			n++
			err = in.drop(ctx, k)
		}
	}
	switch n {
	case 0:
		return principal + " has no made key", err
	case 1:
		return "the made key of " + principal + " is revoked", err
	}
	return fmt.Sprintf("%d made keys of %s are revoked", n, principal), err
}

// withMade returns all keys: first the owner's key of this machine, which login links and verbs use and which no text
// matches, then those of the configuration, then the made ones. The holder of a made key may do what the first key of
// the same principal in the configuration allows, or else what is usual.
func (s *settings) withMade(made []madeKey) []web.Key {
	keys := append([]web.Key{s.usualKey(ownerName, true)}, s.Access...)
	for _, m := range made {
		key := s.usualKey(m.principal, m.principal == ownerName)
		if i := slices.IndexFunc(s.Access, func(k web.Key) bool { return k.Principal == m.principal }); i >= 0 {
			key = s.Access[i]
		}
		key.Sum = m.sum
		keys = append(keys, key)
	}
	return keys
}
