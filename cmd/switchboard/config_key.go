package main

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

const (
	ownKeyFile  = "key"
	cookieFile  = "cookie" // signs the page's logins
	ownKeyBytes = 24       // 32 characters
)

// ownKey returns the key that is made when the configuration has none: kept in the state directory, so
// that a bookmark works again after a restart.
func ownKey(stateDir string) (secret, error) { return kept(stateDir, ownKeyFile) }

// kept returns a secret that is made once and stays in a file of the state directory.
func kept(stateDir, name string) (secret, error) {
	root, err := os.OpenRoot(stateDir)
	if err != nil {
		return secret{}, fmt.Errorf("open the state directory: %w", err)
	}
	defer func() { _ = root.Close() }() // nothing is buffered
	if _, err := root.Stat(name); errors.Is(err, fs.ErrNotExist) {
		if err := makeKey(root, name); err != nil {
			return secret{}, fmt.Errorf("make a key in %s: %w", stateDir, err)
		}
	}
	path := filepath.Join(stateDir, name)
	info, err := root.Stat(name)
	if err != nil {
		return secret{}, fmt.Errorf("find the key: %w", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return secret{}, fmt.Errorf("others can read the key in %s: take that away (chmod 600), or remove the file to get a new key", path)
	}
	text, err := readSecret(path)
	if err == nil && !keyText.MatchString(text) {
		err = errors.New(keyRule)
	}
	if err != nil {
		return secret{}, fmt.Errorf("the key in %s cannot be used: %w; remove the file to get a new one", path, err)
	}
	return newSecret(text), nil
}

// makeKey writes a new key beside its place and links it there: another process that does the same at the
// same time finds one whole key, and the first one stays.
func makeKey(root *os.Root, name string) error {
	raw := make([]byte, ownKeyBytes)
	_, _ = rand.Read(raw) // never fails
	temp := name + "." + rand.Text()
	if err := root.WriteFile(temp, []byte(base64.RawURLEncoding.EncodeToString(raw)+"\n"), 0o600); err != nil {
		return err
	}
	err := root.Link(temp, name)
	if errors.Is(err, fs.ErrExist) {
		err = nil
	}
	return errors.Join(err, root.Remove(temp))
}
