//go:build !linux

package sandbox

// A Scratch is a directory for what commands leave beside their workspace. There are no commands here.
type Scratch struct{ Dir string }

// NewScratch refuses.
func NewScratch(*User) (*Scratch, error) { return nil, errUnsupported }

// Close does nothing.
func (*Scratch) Close() error { return nil }
