package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

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
		must(t, encoder.Encode(v))
	}
	for _, encode := range []zapcore.Encoder{
		zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()),
		zapcore.NewConsoleEncoder(zap.NewDevelopmentEncoderConfig()),
	} {
		log := zap.New(zapcore.NewCore(encode, zapcore.AddSync(&out), zap.DebugLevel))
		log.Info("secret", zap.Any("any", s), zap.Reflect("reflect", whole), zap.Any("list", []secret{s}), zap.Error(fmt.Errorf("%v", s)))
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
	must(t, err)
	data, err := json.Marshal(struct{ Redis, Key secret }{s.Redis, s.Model.Key})
	must(t, err)
	printed := fmt.Sprintf("%+v %#v %v %s", *s, *s, s.Model, data)
	for _, text := range []string{"s3cret", "t0pic", goodKey, "token-1", "\"voice\""} {
		if strings.Contains(printed, text) {
			t.Errorf("%q is seen in %s", text, printed)
		}
	}
}

// TestByteOrderMark: what an editor of Windows puts before a file is no part of its first key, nor of a secret.
func TestByteOrderMark(t *testing.T) {
	_, err := file("\ufefflisten: [7]\n").load(t)
	wantProblems(t, err, "switchboard.yaml:1:9: listen must be text, …")
	_, err = file("\xff\xfel\x00i\x00").load(t)
	wantProblems(t, err, "switchboard.yaml:1:1: the file is in UTF-16: save it as UTF-8")
	key := filepath.Join(t.TempDir(), "key")
	write(t, key, "\ufeffabc\r\n")
	if text, err := readSecret(key); err != nil || text != "abc" {
		t.Errorf("%q, %v", text, err)
	}
}
