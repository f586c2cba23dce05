package main

import (
	"os"
	"path/filepath"

	"go.uber.org/zap"
)

// keepTicks returns what keeps the tick log of a call that has ended, in a file named after the call. Nobody reads them
// but people: one that cannot be written is told and forgotten.
func (s *service) keepTicks(dir string) func(call string, log []byte) {
	return func(call string, log []byte) {
		err := os.MkdirAll(dir, 0o700)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, call+".ticks"), log, 0o600)
		}
		if err != nil {
			s.log.Warn("tick log not kept", zap.String("call", call), zap.Error(err))
		}
	}
}
