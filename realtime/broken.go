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

// Broken remembers, for each caller, the last call that ended without their will: the voice model could not be had any
// more, their network was lost for too long, or Switchboard ended. Their next call is told of it. Callers without a
// name are never asked for. It may be used from any goroutine.
type Broken interface {
	// Begin notes that a call is open, and takes what is known of the last one that broke off; false: none did.
	Begin(ctx context.Context, c handoff.Caller, began time.Time) (handoff.BrokenCall, bool, error)
	// End notes how a call ended: nil by the caller's will. It comes once for each Begin, with or without an error.
	End(ctx context.Context, c handoff.Caller, broken *handoff.BrokenCall) error
}

const (
	// brokenLines and brokenText bound what the next call is told of what was said: lines, and bytes of one.
	brokenLines = 12
	brokenText  = 400
	// brokenWithin bounds each look into the store.
	brokenWithin = 2 * time.Second
)

// remember tells a call of the one before it that broke off, as soon as that is known. What it returns is to be called
// once, with the same call when that has ended, or with a later one that went on in its place.
func (f *Front) remember(ctx context.Context, c *Call) (over func(*Call)) {
	if f.config.Broken == nil || c.grant.Caller.Nameless() {
		return func(*Call) {}
	}
	began := make(chan struct{})
	var before *handoff.BrokenCall // Set by the goroutine, until began is closed
	go func() {
		defer close(began)
		ctx, cancel := context.WithTimeout(ctx, brokenWithin)
		defer cancel()
		last, there, err := f.config.Broken.Begin(ctx, c.grant.Caller, c.made)
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
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), brokenWithin)
		defer cancel()
		if err := f.config.Broken.End(ctx, c.grant.Caller, c.brokeOff(before)); err != nil {
			c.log().Warn("not kept how the call ended", zap.Error(err))
		}
	}
}

// brokeOff returns, once the call has ended, what the next one is to be told of it and of the one before it; nil: it
// ended as the caller wanted, or is none of their business any more.
func (c *Call) brokeOff(before *handoff.BrokenCall) *handoff.BrokenCall {
	switch {
	case !c.mask.Begun() && len(c.earlier) == 0: // nothing was told in it
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
	return &handoff.BrokenCall{Began: c.made, Ended: time.Now(), Lines: lines}
}

// lastLines are what was said last in the call.
func (c *Call) lastLines() []handoff.SaidLine {
	all := slices.Clone(c.earlier)
	for _, l := range c.renewal.recall.Last(brokenLines) {
		all = append(all, handoff.SaidLine{Caller: l.Caller, Text: handoff.Clip(l.Text, brokenText)})
	}
	return newest(all)
}

// newest are as many lines as the next call is told.
func newest(lines []handoff.SaidLine) []handoff.SaidLine {
	return lines[max(0, len(lines)-brokenLines):]
}

// brokenNote tells the model of a call that broke off.
func brokenNote(b handoff.BrokenCall, now time.Time) string {
	when := "a while ago"
	if !b.Ended.IsZero() {
		when = fmt.Sprintf("%s ago, after %s", roughly(now.Sub(b.Ended)), roughly(b.Ended.Sub(b.Began)))
	}
	lines := []string{"The caller's last call broke off " + when + ", and they did not hang up. Say nothing of it " +
		"unless asked. If they go on where it ended, so do you, and do not call a tool again for what was given there: status " +
		"tells what became of it."}
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

// roughly says how long something took, in whole units.
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
