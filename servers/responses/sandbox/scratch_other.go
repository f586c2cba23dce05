//go:build !linux

package sandbox

// A Scratch is a directory for the temporary files of commands. There are no commands on this system.
type Scratch struct{ Dir string }

// NewScratch always fails.
func NewScratch(*User) (*Scratch, error) { return nil, errUnsupported }

// Close does nothing.
func (*Scratch) Close() error { return nil }
