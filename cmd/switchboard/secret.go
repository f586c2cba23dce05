package main

import (
	"fmt"
	"io"
)

const stars = "***"

// A secret is text that must not be shown: printed or encoded in any way, it is ***. The text is behind a pointer, so
// that printing a struct with a secret shows at most an address.
type secret struct{ text *string }

func newSecret(text string) secret { return secret{&text} }

// Reveal returns the text, to be sent or compared, never to be logged.
func (s secret) Reveal() string {
	if s.text == nil {
		return ""
	}
	return *s.text
}

// Format implements [fmt.Formatter], which fmt calls for every verb.
func (s secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, stars) }

// MarshalText implements [encoding.TextMarshaler], which the encoders of JSON and of the log call.
func (s secret) MarshalText() ([]byte, error) { return []byte(stars), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (s *secret) UnmarshalText(text []byte) error {
	*s = newSecret(string(text))
	return nil
}
