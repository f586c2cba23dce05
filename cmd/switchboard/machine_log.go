package main

import (
	"slices"
	"sync"

	"go.uber.org/zap/zapcore"

	"switchboard/web"
)

// Bounds of a [machineLog]. When a line is too much, the oldest of its machine goes; when a machine is, the one that
// has been silent for longest.
const (
	maxLogLines    = 100 // of a machine
	maxLogMachines = 200
)

// A machineLog keeps the newest lines of the log that name a machine, for people. It implements [zapcore.Core].
type machineLog struct {
	machine string    // Set once: which the logger names in each line; ""
	lines   *logLines // Set once
}

// logLines are the lines of all loggers of a service.
type logLines struct {
	mu        sync.Mutex
	byMachine map[string][]web.LogLine // Guarded by mu: oldest first
}

func newMachineLog() *machineLog {
	return &machineLog{lines: &logLines{byMachine: map[string][]web.LogLine{}}}
}

// of returns the lines that name a machine, oldest first.
func (l *machineLog) of(machine string) []web.LogLine {
	l.lines.mu.Lock()
	defer l.lines.mu.Unlock()
	return slices.Clone(l.lines.byMachine[machine])
}

// named returns the machine that fields name, else that of the logger.
func (l *machineLog) named(fields []zapcore.Field) string {
	for _, f := range fields {
		if (f.Key == "server" || f.Key == "machine") && f.Type == zapcore.StringType && f.String != "" {
			return f.String
		}
	}
	return l.machine
}

// Enabled implements [zapcore.Core].
func (*machineLog) Enabled(level zapcore.Level) bool { return level >= zapcore.InfoLevel }

// With implements [zapcore.Core].
func (l *machineLog) With(fields []zapcore.Field) zapcore.Core {
	return &machineLog{l.named(fields), l.lines}
}

// Check implements [zapcore.Core].
func (l *machineLog) Check(e zapcore.Entry, to *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if l.Enabled(e.Level) {
		return to.AddCore(e, l)
	}
	return to
}

// Write implements [zapcore.Core].
func (l *machineLog) Write(e zapcore.Entry, fields []zapcore.Field) error {
	machine := l.named(fields)
	if machine == "" {
		return nil
	}
	about := zapcore.NewMapObjectEncoder()
	for _, f := range fields {
		if f.String != machine {
			f.AddTo(about)
		}
	}
	line := web.LogLine{At: e.Time.UTC(), Level: e.Level.String(), Message: e.Message, About: about.Fields}
	all := l.lines
	all.mu.Lock()
	defer all.mu.Unlock()
	known := all.byMachine[machine]
	if len(known) == 0 && len(all.byMachine) >= maxLogMachines {
		all.dropLocked()
	}
	all.byMachine[machine] = append(known[max(len(known)-maxLogLines+1, 0):], line)
	return nil
}

// dropLocked drops the lines of the machine that has been silent for longest.
func (l *logLines) dropLocked() {
	silent := ""
	for name, lines := range l.byMachine {
		if silent == "" || lines[len(lines)-1].At.Before(l.byMachine[silent][len(l.byMachine[silent])-1].At) {
			silent = name
		}
	}
	delete(l.byMachine, silent)
}

// Sync implements [zapcore.Core].
func (*machineLog) Sync() error { return nil }
