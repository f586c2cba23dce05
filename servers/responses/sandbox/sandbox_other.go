//go:build !linux

package sandbox

import (
	"context"
	"errors"
)

// Main does nothing: there are no sandboxes on this system.
func Main() {}

// Run always fails.
func Run(context.Context, Command) (int, error) { return 0, errUnsupported }

var errUnsupported = errors.New("commands need a sandbox, which there is on Linux alone")

// A Scratch is a directory for the temporary files of commands. There are no commands on this system.
type Scratch struct{ Dir string }

// NewScratch always fails.
func NewScratch(*User) (*Scratch, error) { return nil, errUnsupported }

// Close does nothing.
func (*Scratch) Close() error { return nil }
