package responses

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"switchboard/handoff"
	"switchboard/handoff/threads"
	"switchboard/servers/responses/simulator"
	"switchboard/servers/responses/workspace"
)

// A lookout is a turn whose tool waits, so that the test can send it words meanwhile.
type lookout struct {
	*talk
	turn handoff.TurnID
	goOn func() // lets the tool return
}

func newLookout(t *testing.T, store threads.Store) *lookout {
	inTool, seen := make(chan struct{}), make(chan struct{})
	script, calm := untilCalm("look")
	l := &lookout{goOn: func() { close(seen) }}
	l.talk = newTalk(t, newRig(t, newFake(t, script), func(c *Config) {
		c.Threads = &mortalStore{Store: store}
		c.Workspace = stub{use: map[string]use{"look": func(ctx context.Context, _ io.Writer) workspace.Result {
			close(inTool)
			select {
			case <-seen:
			case <-ctx.Done():
			}
			return workspace.Result{Text: "seen"}
		}}}
	}))
	l.turn = l.start(handoff.Turn{ID: "a", Input: handoff.TextInput("go")})
	<-inTool
	calm.Store(true)
	for _, words := range []string{"first", "second"} {
		must(t, l.steer(l.turn, words))
	}
	return l
}

// interrupt ends the turn.
func (l *lookout) interrupt() {
	l.Helper()
	must(l, l.Agent.(handoff.Controls).Interrupt(l.Context(), l.turn))
}

// handedBack fails the test unless the turn ended with its words undelivered, and the next turn does not find them.
func (l *lookout) handedBack(status handoff.TurnStatus, then string) {
	l.Helper()
	for _, when := range []string{"as it ended", "as it is kept"} {
		if _, end := l.end(l.turn); end.Status != status || !slices.Equal(end.Undelivered, []string{"first", "second"}) {
			l.Errorf("%s: %+v", when, end)
		}
	}
	l.code("a steer after the end", l.steer(l.turn, "third"), handoff.CodeNotPending)
	if end := l.say(handoff.Text("go on")); end.Text != "done: go on" {
		l.Errorf("then %+v", end)
	}
	requests := l.rig.fake.Requests()
	if got := words(requests[len(requests)-1].Input); got != then {
		l.Errorf("then it sends %s, want %s", got, then)
	}
}

// TestInterruptHandsBack: accepted words that did not reach the model are returned once, in order; the calls that ran
// have outputs, so that the thread can go on.
func TestInterruptHandsBack(t *testing.T) {
	l := newLookout(t, threads.NewMemory())
	l.interrupt()
	l.handedBack(handoff.TurnInterrupted, "!:call_1 u:go on")
}

// TestSentAndUnheardSteersComeBack: words that were sent to the model before it began to answer are returned too, and
// are not in the thread.
func TestSentAndUnheardSteersComeBack(t *testing.T) {
	for name, status := range map[string]handoff.TurnStatus{"interrupted": handoff.TurnInterrupted,
		"failed": handoff.TurnFailed} {
		t.Run(name, func(t *testing.T) {
			l := newLookout(t, threads.NewMemory())
			sent, over := make(chan struct{}), make(chan struct{})
			l.rig.fake.Misbehave(func(w http.ResponseWriter, _ simulator.Request) bool {
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = fmt.Fprintf(w, "data: %s\n\n", created)
				_ = http.NewResponseController(w).Flush()
				close(sent)
				<-over
				_, _ = fmt.Fprint(w, `data: {"type":"error","code":"invalid_prompt","message":"no"}`, "\n\n")
				return true
			})
			l.goOn()
			<-sent
			if status == handoff.TurnInterrupted {
				l.interrupt()
			}
			close(over)
			l.handedBack(status, "o:call_1 u:go on")
		})
	}
}

// TestUnwrittenSteersComeBack: words that the model answered, but that could not be written to the thread, are
// returned.
func TestUnwrittenSteersComeBack(t *testing.T) {
	l := newLookout(t, threads.NewMemory())
	l.rig.cfg.Threads.(*mortalStore).gone.Store(true)
	if err := l.steer(l.turn, "third"); err == nil {
		t.Error("words were accepted that could not be written down")
	}
	l.goOn()
	if _, end := l.end(l.turn); end.Status != handoff.TurnFailed ||
		!slices.Equal(end.Undelivered, []string{"first", "second"}) {
		t.Errorf("%+v", end)
	}
}

// TestKilledSteersComeBack: accepted words survive a kill. The turn does not go on, so they are returned by the next
// process.
func TestKilledSteersComeBack(t *testing.T) {
	onEveryStore(t, func(t *testing.T, open func(*testing.T) threads.Store) {
		killedSteersComeBack(t, open(t))
	})
}

func killedSteersComeBack(t *testing.T, store threads.Store) {
	l := newLookout(t, store)
	l.rig.kill()
	link, err := l.rig.dial(t.Context())
	must(t, err)
	l.Attached, err = link.Conn.Attach(t.Context(), l.Target.Thread)
	must(t, err)
	l.handedBack(handoff.TurnInterrupted, "!:call_1 u:go on")
	if turn := l.record().Turns[0]; len(turn.Steers) > 0 || strings.Join(turn.Unheard, " ") != "first second" {
		t.Errorf("%+v", turn)
	}
}
