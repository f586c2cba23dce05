package main

import (
	"fmt"
	"io"

	"go.uber.org/zap/zapcore"
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

// String implements [fmt.Stringer].
func (s secret) String() string { return stars }

// GoString implements [fmt.GoStringer].
func (s secret) GoString() string { return stars }

// Format implements [fmt.Formatter]: fmt would not call String for verbs such as %d.
func (s secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, stars) }

// MarshalJSON implements [json.Marshaler].
func (s secret) MarshalJSON() ([]byte, error) { return []byte(`"` + stars + `"`), nil }

// MarshalText implements [encoding.TextMarshaler].
func (s secret) MarshalText() ([]byte, error) { return []byte(stars), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (s *secret) UnmarshalText(text []byte) error {
	*s = newSecret(string(text))
	return nil
}

// MarshalLogObject implements [zapcore.ObjectMarshaler].
func (s secret) MarshalLogObject(e zapcore.ObjectEncoder) error {
	e.AddString("secret", stars)
	return nil
}
