package rtc

import (
	"fmt"

	"github.com/pion/logging"
	"go.uber.org/zap"
)

// pionLogs sends pion's log to zap at debug level, whatever level pion gives it: the leg itself logs what matters of a
// connection. Traces are dropped.
type pionLogs struct{ log *zap.Logger }

// NewLogger implements [logging.LoggerFactory].
func (p pionLogs) NewLogger(scope string) logging.LeveledLogger {
	return pionLog{p.log.With(zap.String("scope", scope))}
}

type pionLog struct{ log *zap.Logger }

func (p pionLog) put(level, text string) {
	p.log.Debug("webrtc", zap.String("level", level), zap.String("detail", text))
}

// putf formats the text only if it is going to be logged.
func (p pionLog) putf(level, format string, args []any) {
	if p.log.Core().Enabled(zap.DebugLevel) {
		p.put(level, fmt.Sprintf(format, args...))
	}
}

func (p pionLog) Trace(string)          {}
func (p pionLog) Tracef(string, ...any) {}

func (p pionLog) Debug(msg string)                  { p.put("debug", msg) }
func (p pionLog) Debugf(format string, args ...any) { p.putf("debug", format, args) }
func (p pionLog) Info(msg string)                   { p.put("info", msg) }
func (p pionLog) Infof(format string, args ...any)  { p.putf("info", format, args) }
func (p pionLog) Warn(msg string)                   { p.put("warn", msg) }
func (p pionLog) Warnf(format string, args ...any)  { p.putf("warn", format, args) }
func (p pionLog) Error(msg string)                  { p.put("error", msg) }
func (p pionLog) Errorf(format string, args ...any) { p.putf("error", format, args) }
