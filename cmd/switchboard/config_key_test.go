package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

func TestOwnKey(t *testing.T) {
	dir := t.TempDir()
	keys := make([]string, 8)
	var all sync.WaitGroup
	for i := range keys { // several at once agree on one
		all.Go(func() {
			key, err := ownKey(dir)
			if err != nil {
				t.Error(err)
			}
			keys[i] = key.Reveal()
		})
	}
	all.Wait()
	for _, key := range keys {
		if len(key) != 32 || !keyText.MatchString(key) || key != keys[0] {
			t.Fatalf("keys %q", keys)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Fatalf("left behind: %v, %v", entries, err)
	}
	if info, err := entries[0].Info(); err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("mode %v, %v", info.Mode(), err)
	}
	other, err := ownKey(t.TempDir())
	if err != nil || other.Reveal() == keys[0] {
		t.Fatalf("another directory has the same key: %v", err)
	}
}

func TestOwnKeyThatCannotBeUsed(t *testing.T) {
	for name, tt := range map[string]struct {
		text string
		mode os.FileMode
		want string
	}{
		"empty":    {"", 0o600, "remove the file"},
		"short":    {"abc\n", 0o600, "at least 16"},
		"odd":      {strings.Repeat("ä", 20), 0o600, "remove the file"},
		"readable": {goodKey, 0o644, "chmod 600"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "key")
			if err := os.WriteFile(path, []byte(tt.text), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(path, tt.mode); err != nil {
				t.Fatal(err)
			}
			if _, err := ownKey(dir); err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), path) {
				t.Fatalf("%v, want %q and the file's name", err, tt.want)
			}
		})
	}
	if _, err := ownKey(filepath.Join(t.TempDir(), "missing")); err == nil {
		t.Fatal("a missing directory was accepted")
	}
}

// A secret shows in no print, no encoding and no log, also inside of what is printed.
func TestSecretIsNeverSeen(t *testing.T) {
	const text = "s3cret"
	s := newSecret(text)
	if s.Reveal() != text || (secret{}).Reveal() != "" {
		t.Fatal("the text is lost")
	}
	type inside struct {
		Seen   secret
		hidden secret
		list   []secret
		named  map[string]secret
	}
	whole := inside{s, s, []secret{s}, map[string]secret{"a": s}}
	var out bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%c", "%U", "%t", "%p", "%w"} {
		fmt.Fprintf(&out, verb+verb+verb+"\n", s, &s, whole)
	}
	if got := fmt.Sprintf("%s %v %d %x", s, s, s, s); got != "*** *** *** ***" {
		t.Errorf("printed as %q", got)
	}
	fmt.Fprintln(&out, s, &s, whole, &whole, []any{s})
	encoder := json.NewEncoder(&out)
	for _, v := range []any{s, &s, whole, map[string]any{"a": s}, map[secret]int{s: 1}} {
		if err := encoder.Encode(v); err != nil {
			t.Error(err)
		}
	}
	for _, encode := range []zapcore.Encoder{
		zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()), zapcore.NewConsoleEncoder(zap.NewDevelopmentEncoderConfig()),
	} {
		log := zap.New(zapcore.NewCore(encode, zapcore.AddSync(&out), zap.DebugLevel))
		log.Info("secret", zap.Any("any", s), zap.Object("object", s), zap.Stringer("stringer", s), zap.Reflect("reflect", whole),
			zap.Any("list", []secret{s}), zap.Inline(s), zap.Error(fmt.Errorf("with %v", s)))
	}
	for _, hidden := range []string{text, fmt.Sprintf("%x", text), fmt.Sprintf("%X", text), "115 51"} {
		if strings.Contains(out.String(), hidden) {
			t.Errorf("%q is seen in:\n%s", hidden, out.String())
		}
	}
}

// Settings with secrets in them can be printed.
func TestSettingsHideSecrets(t *testing.T) {
	s, err := everythingWorld().load(t)
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(struct{ Redis, Key secret }{s.Redis, s.Model.Key})
	if err != nil {
		t.Fatal(err)
	}
	printed := fmt.Sprintf("%+v %#v %v %s", *s, *s, s.Model, data)
	for _, text := range []string{"s3cret", "t0pic", goodKey, "token-1", "\"voice\""} {
		if strings.Contains(printed, text) {
			t.Errorf("%q is seen in %s", text, printed)
		}
	}
}
