package codex

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/servers/jsonrpc"
)

// A thread may have a goal. While it is active, Codex begins the next turn by itself, some 0.1 s after one has
// completed, without a message of a user. Such turns are the same piece of work: they are followed as the turn that was
// started, under its id, and more words and a stop reach the one that runs. Codex tells the goal just after a resume:
// so after a loss of the connection and a restart, all turns that were missed are followed, too.

// The statuses of a goal that matter here. With any other one, no further turn begins.
const (
	goalActive = "active"
	goalPaused = "paused"
)

// goalEnds are the statuses of a goal for which no further turn begins. Set once.
var goalEnds = map[string]handoff.Goal{
	"complete": handoff.GoalComplete, "blocked": handoff.GoalBlocked, goalPaused: handoff.GoalPaused,
	"usageLimited": handoff.GoalLimited, "budgetLimited": handoff.GoalLimited,
}

const (
	goalGrace = 10 * time.Second // after the end of a turn, until the next one for its goal begins: 0.1 s
	// openGrace follows, until a message of a user shows, if one began the turn: 65 ms, but hooks may run before it.
	openGrace = 5 * time.Second
)

// wireGoal: thread/goal/updated.
type wireGoal struct {
	Objective string `json:"objective"`
	Status    string `json:"status"`
}

// goalSetParams: thread/goal/set. 0.150 has no origin, and ignores it.
type goalSetParams struct {
	ThreadID  string `json:"threadId"`
	Objective string `json:"objective,omitempty"` // "": as it is
	Status    string `json:"status"`
	Origin    string `json:"origin,omitempty"`
}

// maxObjective is how many characters a goal may have.
const maxObjective = 4000

// Pursue implements [handoff.Pursuer].
func (a *agent) Pursue(ctx context.Context, turn handoff.Turn) (handoff.TurnID, error) {
	return a.begin(ctx, turn, true)
}

// checkGoal returns an error if the thread cannot have a goal, or works for one. The caller holds the gate.
func (a *agent) checkGoal(ctx context.Context, objective string) error {
	has, err := a.conn.client.goalGet(ctx, a.thread.id)
	why, size := "", utf8.RuneCountInString(objective)
	switch refused, answered := errors.AsType[*jsonrpc.Error](err); {
	case refusedAs(err, refusedUnknown): // the message lists all methods
		why = "its Codex knows no goals"
	case refusedAs(err, refusedOther):
		why = handoff.ClipRunes(refused.Message, maxDetail)
	case err != nil && !answered: // nothing was started
		return a.name().fault(err, handoff.CodeUnreachable, handoff.CodeUnreachable)
	case err != nil:
		return err
	case has.Status == goalActive:
		why = "its session works for another goal"
	case size == 0 || size > maxObjective:
		why = fmt.Sprintf("a goal has 1 to %d characters", maxObjective)
	default:
		return nil
	}
	return handoff.Fault(handoff.CodeNoGoal, a.conn.cfg.Name, why)
}

// hasGoal reports whether the thread has a goal, perhaps one that has been reached.
func (a *agent) hasGoal(ctx context.Context) (bool, error) {
	a.thread.mu.Lock()
	told := a.thread.goal != (wireGoal{})
	a.thread.mu.Unlock()
	if told {
		return true, nil
	}
	has, err := a.conn.client.goalGet(ctx, a.thread.id)
	if _, refused := errors.AsType[*jsonrpc.Error](err); refused { // its Codex knows no goals
		return false, nil
	}
	return has != (wireGoal{}), err
}

// pursue sets the goal for which a turn of ours works. It counts as set before it is: if the turn has completed by
// then, Codex begins the next one at once, and that is followed. The caller holds the gate.
func (a *agent) pursue(ctx context.Context, id handoff.TurnID, objective string) {
	t, set := a.thread, goalSetParams{a.thread.id, objective, goalActive, "user"}
	t.mu.Lock()
	k, former := t.turnLocked(id), t.goal
	t.goalLocked(&wireGoal{objective, goalActive}, id)
	t.mu.Unlock()
	ctx = context.WithoutCancel(ctx)
	err := a.conn.client.goalSet(ctx, set)
	t.mu.Lock()
	_, refused := errors.AsType[*jsonrpc.Error](err) // else it may be set: Codex tells it then
	if refused {
		t.goalLocked(&former, "")
		k.pursues = false
	}
	stopped := err == nil && k.stopped
	t.mu.Unlock()
	if stopped { // by somebody else: nobody would follow the next turn
		err = a.conn.client.goalSet(ctx, goalSetParams{ThreadID: t.id, Status: goalPaused})
	}
	if err != nil {
		a.conn.log.Warn("goal not set", zap.Error(err))
	}
}

// goalLocked notes the goal of the thread, and the turn that has worked for it; nil: it has none.
func (t *thread) goalLocked(g *wireGoal, during handoff.TurnID) {
	if k := t.findLocked(during); k != nil {
		k.pursues = true
	}
	if t.goal = (wireGoal{}); g != nil {
		t.goal = *g
	}
	if t.goal.Status != goalActive && t.goal.Status != goalPaused { // it was reached before it could be stopped
		t.halted = ""
	}
	t.moveLocked()
}

// moveLocked wakes whoever waits for the next turn of a goal.
func (t *thread) moveLocked() {
	if t.moved != nil {
		close(t.moved)
		t.moved = nil
	}
}

// awaitMoveLocked returns a channel that is closed when there may be a next turn, or no goal any more.
func (t *thread) awaitMoveLocked() <-chan struct{} {
	if t.moved == nil {
		t.moved = make(chan struct{})
	}
	return t.moved
}

// closeGap notes that no turn of a goal is waited for any more.
func (t *thread) closeGap() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.between = false
	t.moveLocked()
}

// openedLocked notes who began a turn: its first item is a message of a user, or else the turn is for a goal.
func (t *thread) openedLocked(k *turn, w *wireItem) {
	if w != nil && !k.opened && k.complete {
		k.opened, k.byUser = true, w.fromUser()
		t.moveLocked()
	}
}

// goOn waits for the turn that goes on with the goal of a completed one, and follows it from here on. It returns false
// if there is none, and an error if the thread cannot be heard any more.
func (f *follower) goOn(ctx context.Context) (bool, error) {
	t := f.agent.thread
	t.mu.Lock()
	unheard := t.goal != (wireGoal{}) && (f.after != "" || f.turn.pursues && t.newest != f.turn.id)
	t.between = t.goal.Status == goalActive || unheard
	may := t.between
	t.mu.Unlock()
	if !may {
		return false, nil
	}
	defer t.closeGap()
	for silent := false; ; {
		silent = f.readOpening(ctx) && silent
		done, grace, moved := f.adopt(silent)
		if done {
			return f.turn.followed, nil
		}
		heard, err := f.agent.await(ctx, moved, grace)
		switch {
		case err != nil:
			return false, f.ends(ctx, err)
		case !heard && grace == goalGrace:
			return false, nil
		}
		silent = !heard
	}
}

// adopt looks for the turn that goes on after the follower's, and makes it the follower's. silent says that it showed
// nothing for openGrace: then no user began it. done: it is there, or will not come; then the follower's turn is
// followed, or not. Else moved is closed when it may have changed, for which to wait for grace.
func (f *follower) adopt(silent bool) (done bool, grace time.Duration, moved <-chan struct{}) {
	t := f.agent.thread
	t.mu.Lock()
	defer t.mu.Unlock()
	id := cmp.Or(f.after, t.newest)
	runs := id != "" && id != f.turn.id && t.running == id
	next := t.findLocked(id)
	if next == nil && runs { // it began unheard
		next = t.turnLocked(id)
	}
	begun := next != nil && next != f.turn
	if grace = goalGrace; runs {
		grace = openGrace
	}
	switch {
	case !begun && t.goal.Status != goalActive: // it was reached, blocked or paused
		f.turn.followed = false
		return true, 0, nil
	case !begun, !next.opened && !next.reducer.Ended() && !(silent && runs):
		return false, grace, t.awaitMoveLocked()
	case next.byUser || next.startID != "" || next.followed: // somebody else goes on here
		f.turn.followed = false
		return true, 0, nil
	}
	f.turn.updates.Clear()
	f.turn.followed = false
	next.ours, next.followed, next.first, next.pursues = true, true, f.first, true
	if t.goes == nil {
		t.goes = map[handoff.TurnID]handoff.TurnID{}
	}
	t.goes[f.first] = next.id
	t.moveQuestionsLocked(f.turn.id, next)
	f.turn, f.after = next, ""
	return true, 0, nil
}

// moveQuestionsLocked gives the questions of a turn, which are those of its subagents, to the one that goes on.
func (t *thread) moveQuestionsLocked(from handoff.TurnID, to *turn) {
	t.questions.Move(from, to.id)
	if t.announceLocked(to) {
		t.changed()
	}
}

func (t *thread) moveQuestions(from, to handoff.TurnID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if k := t.findLocked(to); k != nil {
		t.moveQuestionsLocked(from, k)
	}
}

// readOpening reads who began the next turn, if its beginning was not heard. It returns false if that failed.
func (f *follower) readOpening(ctx context.Context) bool {
	t := f.agent.thread
	t.mu.Lock()
	id := cmp.Or(f.after, t.newest)
	k := t.findLocked(id)
	heard := id == f.turn.id || k != nil && (k.complete || k.opened)
	t.mu.Unlock()
	if heard {
		return true
	}
	ctx, cancel := context.WithTimeoutCause(ctx, catchUpTimeout, errTimeout)
	defer cancel()
	items, err := f.agent.conn.client.itemsList(ctx, t.id, string(id))
	if err != nil || len(items) == 0 {
		return err == nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	k = t.turnLocked(id)
	k.opened, k.byUser, k.resting = true, items[0].fromUser(), t.running != id
	return true
}

// now returns the turn that runs for one that was started: the same, or the one that goes on with its goal. Between two
// of them it waits for the next.
func (a *agent) now(ctx context.Context, turn handoff.TurnID) handoff.TurnID {
	t := a.thread
	turn = t.work(turn) // a question may be of a later turn
	for {
		t.mu.Lock()
		next, between, moved := cmp.Or(t.goes[turn], turn), t.between, t.awaitMoveLocked()
		t.mu.Unlock()
		if !between {
			return next
		}
		if ok, err := a.await(ctx, moved, goalGrace); !ok || err != nil {
			return turn
		}
	}
}

// work returns the turn with whose goal a turn goes on, or the turn itself.
func (t *thread) work(id handoff.TurnID) handoff.TurnID {
	t.mu.Lock()
	defer t.mu.Unlock()
	if k := t.findLocked(id); k != nil {
		return cmp.Or(k.first, id)
	}
	return id
}

// current returns the newest turn that goes on with the goal of a turn, or the turn itself.
func (t *thread) current(id handoff.TurnID) handoff.TurnID {
	t.mu.Lock()
	defer t.mu.Unlock()
	return cmp.Or(t.goes[id], id)
}

// halt returns the end of the last turn for a goal, with how the goal ended: if the work was stopped, and that turn
// completed all the same, the work was interrupted. first is the turn that the work was started with.
func (t *thread) halt(first handoff.TurnID, last *turn, end handoff.TurnEnded) handoff.TurnEnded {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.halted == first:
		end.Status = handoff.TurnInterrupted
	case last.pursues:
		end.Goal = goalEnds[t.goal.Status]
	}
	return end
}

// pause pauses an active goal of the thread before its turn is interrupted: in the other order, Codex would begin the
// next turn between the two. halted: there was one, so the work that began with the turn first ends here.
func (a *agent) pause(ctx context.Context, first handoff.TurnID) (halted bool, err error) {
	t := a.thread
	if first == "" {
		return false, nil
	}
	if err := a.enter(ctx); err != nil { // a goal may be on its way
		return false, err
	}
	defer t.unlock()
	t.mu.Lock()
	if t.goal.Status != goalActive {
		t.mu.Unlock()
		return false, nil
	}
	t.halted = first // the end of its turn may come before the answer
	t.mu.Unlock()
	err = a.conn.client.goalSet(ctx, goalSetParams{ThreadID: t.id, Status: goalPaused})
	t.mu.Lock()
	defer t.mu.Unlock()
	if err != nil {
		t.halted = ""
	} else if t.goal.Status == goalActive {
		t.goal.Status = goalPaused
		t.moveLocked()
	}
	return t.halted != "", err
}
