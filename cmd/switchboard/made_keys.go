package main

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"switchboard/handoff"
	"switchboard/web"
)

const (
	madeKeysFile = "keys"   // a line for each: SHA-256 in hex, a space, the principal
	maxMadeKeys  = 100      // more are a mistake
	madeKeyBytes = 24       // 32 characters
	oldKeyFile   = "key"    // earlier versions kept the text of a key here,
	oldCookie    = "cookie" // and what signed their cookies
)

// A madeKey is what is kept of a key that `switchboard key` made: never its text.
type madeKey struct {
	principal string
	sum       [sha256.Size]byte
}

// readMadeKeys reads the keys that were made for this state directory.
func readMadeKeys(dir string) ([]madeKey, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open the state directory: %w", err)
	}
	defer func() { _ = root.Close() }() // only read from
	text, err := root.ReadFile(madeKeysFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the made keys: %w", err)
	}
	var keys []madeKey
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		digits, principal, _ := strings.Cut(lines.Text(), " ")
		sum, err := hex.DecodeString(digits)
		if err != nil || len(sum) != sha256.Size || !plainName.MatchString(principal) {
			return nil, fmt.Errorf("line %d of %s/%s is none of `switchboard key`: remove it", len(keys)+1, dir, madeKeysFile)
		}
		keys = append(keys, madeKey{principal, [sha256.Size]byte(sum)})
	}
	return keys, lines.Err()
}

// writeMadeKeys replaces the made keys: whoever reads finds the old or the new ones.
func writeMadeKeys(dir string, keys []madeKey) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("open the state directory: %w", err)
	}
	defer func() { _ = root.Close() }() // nothing is buffered
	var text bytes.Buffer
	for _, k := range keys {
		fmt.Fprintf(&text, "%x %s\n", k.sum, k.principal)
	}
	temp := madeKeysFile + "." + rand.Text()
	if err := root.WriteFile(temp, text.Bytes(), 0o600); err != nil {
		return fmt.Errorf("write the made keys: %w", err)
	}
	return root.Rename(temp, madeKeysFile)
}

// makeKey makes a key for a principal, keeps its sum and returns its text, which is nowhere else.
func makeKey(dir, principal string) (string, error) {
	if !plainName.MatchString(principal) {
		return "", fmt.Errorf("%q is no name: use A-Z a-z 0-9 . _ -", principal)
	}
	keys, err := readMadeKeys(dir)
	if err != nil {
		return "", err
	}
	if len(keys) >= maxMadeKeys {
		return "", fmt.Errorf("there are %d made keys already: revoke some", len(keys))
	}
	raw := make([]byte, madeKeyBytes)
	_, _ = rand.Read(raw) // never fails
	text := base64.RawURLEncoding.EncodeToString(raw)
	return text, writeMadeKeys(dir, append(keys, madeKey{principal, sha256.Sum256([]byte(text))}))
}

// revokeKeys drops every made key of a principal and returns how many there were.
func revokeKeys(dir, principal string) (int, error) {
	keys, err := readMadeKeys(dir)
	if err != nil {
		return 0, err
	}
	kept := slices.DeleteFunc(slices.Clone(keys), func(k madeKey) bool { return k.principal == principal })
	if len(kept) == len(keys) {
		return 0, nil
	}
	return len(keys) - len(kept), writeMadeKeys(dir, kept)
}

// removeOldKeys removes what earlier versions kept in plain text, and reports whether a key was among it.
func removeOldKeys(dir string) (bool, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return false, fmt.Errorf("open the state directory: %w", err)
	}
	defer func() { _ = root.Close() }() // nothing is buffered
	removed := root.Remove(oldKeyFile)
	for _, err := range []error{removed, root.Remove(oldCookie)} {
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false, fmt.Errorf("remove the key of an earlier version: %w", err)
		}
	}
	return removed == nil, nil
}

// withMade returns every key that lets in: first the owner's of this machine, which no text has and which its links and
// verbs use; then those of the configuration; then the made ones.
func (s *settings) withMade(made []madeKey) []web.Key {
	owner := s.ownersKey("")
	owner.Sum = [sha256.Size]byte{}
	keys := append([]web.Key{owner}, s.Access...)
	for _, m := range made {
		keys = append(keys, s.termsOf(m))
	}
	return keys
}

// termsOf is what a made key may do: what the first key of its principal in the configuration may, and without one
// use what is for the principal, with a yes in its calls.
func (s *settings) termsOf(m madeKey) web.Key {
	key := web.Key{Principal: m.principal, Approve: handoff.ApproveVoice, Instructions: usualInstructions(false),
		Barred: s.barred(m.principal), Limits: s.Limits.limits(), KeyLimits: s.Limits.limits()}
	if i := slices.IndexFunc(s.Access, func(k web.Key) bool { return k.Principal == m.principal }); i >= 0 {
		key = s.Access[i]
	} else if m.principal == ownerName {
		key = s.ownersKey("")
	}
	key.Sum = m.sum
	return key
}
