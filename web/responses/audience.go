package responses

import (
	"context"
	"time"

	"go.uber.org/zap"

	"switchboard/handoff"
)

// An audience says who reads a response.
type audience struct {
	expected bool // the request that began the response is about to read it
	readers  int
	entered  int  // how many readers there were so far
	told     bool // the end of the response was written to a client
	gaveUp   bool // no reader came back in time, so its handoff is stopped
	answered bool // the router knows that who asked has the answer, or has given up
}

func (a audience) reads() bool { return a.expected || a.readers > 0 }

// enter counts a reader of the response.
func (l *liveResponse) enter() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.audience.readers++
	l.audience.entered++
	l.audience.expected = false
}

// exit stops counting a reader. A response that is not in the background is stopped soon after its last reader has
// left; the delay is for SDKs that repeat a request whose connection broke.
func (l *liveResponse) exit() {
	l.mu.Lock()
	l.audience.readers--
	if entered := l.audience.entered; !l.audience.reads() && l.ended.IsZero() && !l.background {
		time.AfterFunc(abandoned, func() { l.abandon(entered) })
	}
	l.mu.Unlock()
	l.report()
}

// abandon stops the handoff, unless a reader has entered since so many had. One who comes from now on finds it stopped.
func (l *liveResponse) abandon(entered int) {
	l.mu.Lock()
	gaveUp, open := l.audience.entered == entered, l.ended.IsZero()
	l.audience.gaveUp = gaveUp
	l.mu.Unlock()
	if gaveUp && open {
		l.stop()
	}
	if gaveUp {
		l.answered(retriedFor)
	}
}

// stop stops the handoff: nobody reads it any more, or a grant that may stop it asked for that.
func (l *liveResponse) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), storeWithin)
	defer cancel()
	if err := l.api.cfg.Work.Stop(ctx, handoff.Grant{Caller: l.grant.Caller}, string(l.now().Run), handoff.StopOurs); err != nil {
		l.api.cfg.Log.Debug("a handoff is not stopped", zap.Error(err))
	}
}

// report reports what the router has to know: that the outcome was heard, and that nobody reads it any more, so that it
// is left to calls. It is called after each change of the phase or the audience.
func (l *liveResponse) report() {
	l.mu.Lock()
	hears := l.phase == phaseOutcome && l.audience.told
	if hears {
		l.phase = phaseHeard
	}
	leaves := l.phase != phaseFollowing && (l.audience.told || !l.audience.reads())
	run, leave := l.doc.Run, l.leave
	if leaves {
		l.leave = func() {}
	}
	l.mu.Unlock()
	if hears {
		l.hear(run)
	}
	if leaves {
		leave()
	}
}

// hear reports the outcome of a handoff as heard.
func (l *liveResponse) hear(run handoff.ID) {
	if err := l.api.cfg.Handoffs.Heard(context.Background(), l.grant, run); err != nil {
		l.api.cfg.Log.Debug("an outcome is not known any more", zap.Error(err))
	}
}

// wasTold notes that the end of the response was written to a client. The end of one that was handed over is not the
// answer.
func (l *liveResponse) wasTold() {
	l.mu.Lock()
	told := l.phase != phaseHandedOver
	l.audience.told = l.audience.told || told
	l.mu.Unlock()
	if told {
		l.answered(lostFor)
		l.report()
	}
}

// wasRefused notes that the request was answered with an error, and whether its client got that.
func (l *liveResponse) wasRefused(told bool) {
	l.mu.Lock()
	l.audience.expected, l.audience.told = false, told
	l.mu.Unlock()
	l.report()
}

// answered notes that who asked for the response has an answer (the whole response, or the id of one in the
// background), or else has given up. lost is how long a request that surely repeats theirs still gets the response: the
// bytes of the answer may have been lost on their way.
func (l *liveResponse) answered(lost time.Duration) {
	l.mu.Lock()
	was, run := l.audience.answered, l.doc.Run
	l.audience.answered = true
	l.mu.Unlock()
	if !was {
		l.api.cfg.Requests.Answered(l.grant, run, lost)
	}
}
