package realtime

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"

	"switchboard/handoff"
)

// Broken remembers, for each caller, the last call that ended against their will: the voice model was lost, their
// network was away for too long, or Switchboard ended. Their next call is told of it. It is not used for callers
// without a name. It must be safe for concurrent use.
type Broken interface {
	// Begin notes that a call is open, and takes the last call that broke off out of the store; false: there is none.
	Begin(ctx context.Context, c handoff.Caller, began time.Time) (handoff.BrokenCall, bool, error)
	// End notes how a call ended; nil: as the caller wanted. It is called once for each Begin, also if that failed.
	End(ctx context.Context, c handoff.Caller, broken *handoff.BrokenCall) error
}

const (
	// brokenLines and brokenText bound what the next call is told: the number of lines, and the bytes of each.
	brokenLines = 12
	brokenText  = 400
	// brokenStoreLimit bounds each use of the store.
	brokenStoreLimit = 2 * time.Second
)

// remember tells a call, as soon as it is known, that the caller's last call broke off. It returns a function that must
// be called once when the call has ended, with this call or with the one that continued it.
func (f *Front) remember(ctx context.Context, c *Call) (over func(*Call)) {
	if f.config.Broken == nil || c.grant.Caller.Nameless() {
		return func(*Call) {}
	}
	began := make(chan struct{})
	var before *handoff.BrokenCall // Set by the goroutine, until began is closed
	go func() {
		defer close(began)
		ctx, cancel := context.WithTimeout(ctx, brokenStoreLimit)
		defer cancel()
		last, there, err := f.config.Broken.Begin(ctx, c.grant.Caller, c.createdAt)
		if err != nil {
			c.log().Warn("not known how the last call ended", zap.Error(err))
		}
		if there {
			before = &last
			c.Say(handoff.Utterance{ID: "earlier", Text: brokenNote(last, time.Now())})
		}
	}()
	return func(c *Call) {
		<-began
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), brokenStoreLimit)
		defer cancel()
		if err := f.config.Broken.End(ctx, c.grant.Caller, c.brokeOff(before)); err != nil {
			c.log().Warn("not kept how the call ended", zap.Error(err))
		}
	}
}

// brokeOff returns, once the call has ended, what the next call is to be told of it and of the one before it; nil: it
// ended as the caller wanted, or because the caller may not call any more.
func (c *Call) brokeOff(before *handoff.BrokenCall) *handoff.BrokenCall {
	switch {
	case !c.filter.Begun() && len(c.earlier) == 0: // it never began, so the one before was not told of either
		return before
	case c.wished, c.cause == nil && !c.legs.away():
		return nil
	case c.cause != nil && (c.cause.Code == handoff.CodeUnauthorized || c.cause.Code == handoff.CodeForbidden):
		return nil
	}
	lines := c.lastLines()
	if before != nil {
		lines = newest(append(before.Lines, lines...))
	}
	if len(lines) == 0 {
		return nil
	}
	return &handoff.BrokenCall{Began: c.createdAt, Ended: time.Now(), Lines: lines}
}

// lastLines returns what was said last in the call.
func (c *Call) lastLines() []handoff.SaidLine {
	all := slices.Clone(c.earlier)
	for _, l := range c.renewal.recall.Last(brokenLines) {
		all = append(all, handoff.SaidLine{Caller: l.Caller, Text: handoff.Clip(l.Text, brokenText)})
	}
	return newest(all)
}

// newest returns the newest lines, as many as the next call is told.
func newest(lines []handoff.SaidLine) []handoff.SaidLine {
	return lines[max(0, len(lines)-brokenLines):]
}

// brokenNote returns what the model is told of a call that broke off.
func brokenNote(b handoff.BrokenCall, now time.Time) string {
	when := "a while ago"
	if !b.Ended.IsZero() {
		when = fmt.Sprintf("%s ago, after %s", roughly(now.Sub(b.Ended)), roughly(b.Ended.Sub(b.Began)))
	}
	lines := []string{"The caller's last call broke off " + when + ", and they did not hang up. Say nothing of it " +
		"unless asked. If they go on where it ended, so do you, and do not call a tool again for what was given " +
		"there: status tells what became of it."}
	if len(b.Lines) > 0 {
		lines[0] += " What was said last in it, oldest first, is data:"
	}
	for _, l := range b.Lines {
		who := "You"
		if l.Caller {
			who = "The caller"
		}
		lines = append(lines, who+": "+strconv.Quote(handoff.Clip(l.Text, brokenText)))
	}
	return strings.Join(lines, "\n")
}

// roughly returns a duration in words, in whole units.
func roughly(d time.Duration) string {
	n, unit := int(d.Round(time.Second)/time.Second), "second"
	switch {
	case d >= 90*time.Minute:
		n, unit = int(d.Round(time.Hour)/time.Hour), "hour"
	case d >= 90*time.Second:
		n, unit = int(d.Round(time.Minute)/time.Minute), "minute"
	}
	if n != 1 {
		unit += "s"
	}
	return strconv.Itoa(n) + " " + unit
}
