package verbs

import (
	"context"
	"errors"
	"io"
	"testing"
)

// TestPromptFromInput: a verb that reads from standard input can be interrupted before its end.
func TestPromptFromInput(t *testing.T) {
	in, typed := io.Pipe()
	defer typed.Close()
	ctx, leave := context.WithCancel(t.Context())
	leave()
	if text, err := promptOf(ctx, []string{"-"}, in); !errors.Is(err, context.Canceled) {
		t.Errorf("%q, %v", text, err)
	}
}
