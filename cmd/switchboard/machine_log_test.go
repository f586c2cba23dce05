package main

import (
	"fmt"
	"strings"
	"testing"

	"go.uber.org/zap"
)

// TestMachineLog: the newest lines of each machine are kept, whichever logger names it, and of no more machines than
// the bound.
func TestMachineLog(t *testing.T) {
	kept := newMachineLog()
	log := zap.New(kept)
	log.Info("of no machine")
	log.With(zap.String("server", "bigpc")).Debug("too small")
	log.With(zap.String("server", "bigpc")).Warn("lost", zap.Int("tries", 3))
	log.Info("line opened", zap.String("machine", "mini"))
	if got := kept.of("bigpc"); len(got) != 1 || got[0].Message != "lost" || got[0].Level != "warn" || fmt.Sprint(got[0].About) != "map[tries:3]" {
		t.Errorf("of bigpc: %+v", got)
	}
	if got := kept.of("mini"); len(got) != 1 || len(got[0].About) != 0 {
		t.Errorf("of mini: %+v", got)
	}
	for i := range maxLogMachines + 10 {
		for range maxLogLines + 5 {
			log.Info("line", zap.String("server", fmt.Sprint("m", i)))
		}
	}
	if n, last := len(kept.lines.byMachine), kept.of(fmt.Sprint("m", maxLogMachines+9)); n != maxLogMachines || len(last) != maxLogLines || len(kept.of("bigpc")) > 0 {
		t.Errorf("%d machines, %d lines", n, len(last))
	}
}

// TestVerbsLogs: the log of a machine says when it was lost and why; an unknown machine has none.
func TestVerbsLogs(t *testing.T) {
	t.Parallel()
	sh := openShell(t, nil)
	until(t, "the log", func() bool {
		code, out, _ := sh.run("logs", "attic")
		return code == 0 && strings.Contains(out, "connection refused")
	})
	sh.wants(0, []string{"nothing was logged of nowhere"}, "logs", "nowhere")
	if out := sh.wants(0, nil, "logs", "attic", "--json"); !strings.Contains(out, `"message":`) {
		t.Errorf("as JSON: %s", out)
	}
}
