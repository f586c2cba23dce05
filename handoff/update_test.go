package handoff

import (
	"strings"
	"testing"
)

// TestSayable holds which acts a voice can say whole; the others take a tap.
func TestSayable(t *testing.T) {
	for command, want := range map[string]bool{
		"":                                          true,
		"git push origin main":                      true,
		"cd api && npm test -- --watch":             true,
		"npm install zod vite react jest":           true,
		"npm install zod vite react jest vitest":    false,
		"curl https://x.example -o a b c d":         false,
		"echo hello\nrm x":                          false,
		"echo\thello":                               false,
		"cat " + strings.Repeat("a", maxSaidWord+1): false,
	} {
		if got := (Question{Kind: QuestionCommand, Command: command}).Sayable(); got != want {
			t.Errorf("%q: %t", command, got)
		}
	}
	for files, want := range map[int]bool{1: true, 3: true, 4: false} {
		if got := (Question{Kind: QuestionFileChange, Changes: make([]string, files)}).Sayable(); got != want {
			t.Errorf("%d files: %t", files, got)
		}
	}
}
