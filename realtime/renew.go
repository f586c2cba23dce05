package realtime

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"github.com/tidwall/gjson"
	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/realtime/events"
	"switchboard/realtime/floor"
	"switchboard/realtime/mask"
	"switchboard/realtime/recall"
)

const (
	// wallLead is how long before the end of its session a model gets another one, at the first quiet; wallLatest when
	// that is not waited for any more. Of a short session they are a fifth and a tenth.
	wallLead   = 2 * time.Minute
	wallLatest = 10 * time.Second
	// wallLeast is the least life of a session that is renewed by plan: what says less has another clock than we.
	wallLeast = 5 * time.Second
	// quietEvery is how often quiet is looked for once another session is there.
	quietEvery = 100 * time.Millisecond
	// renewTry bounds one try for another session, renewLimit all of them once there is none: then the call ends.
	renewTry   = 4 * time.Second
	renewLimit = 15 * time.Second
	// calmRetry is the pause between tries while the old session goes on.
	calmRetry = 10 * time.Second
	// maxLosses lost sessions within lossesWithin are made good; with the next one the call ends.
	maxLosses    = 3
	lossesWithin = time.Minute
	// transcriptLimit is how long the transcript of what the caller said is waited for before a planned renewal.
	transcriptLimit = 5 * time.Second
)

// renewPauses come before the tries for another session; the last before all that follow. Set once.
var renewPauses = []time.Duration{0, 250 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second}

// A renewal is how a call goes on when its model session ends: another one, the heir, is given what the old one knew
// and takes its place under the lock. The client sees one session. While there is none, nobody has the model's leg, and
// nothing is kept for it in order: what it must still get is known by who waits for the answer (mask: updates, floor:
// asks, recall: all other events and the caller's sound).
type renewal struct {
	*core
	legs    *legs
	saying  *saying
	hearing *hearing
	session *session
	mask    *mask.Mask
	call    *Call // Set once: what needs all owners

	reach  func(context.Context) (connection, *handoff.Error) // Set once, before begin: opens another session; nil: none
	spawn  func(work func(context.Context))                   // Set once, before begin: runs in a goroutine of the call
	recall *recall.Recall                                     // Set once

	life        time.Duration // of the session, as it said when it began
	due, latest time.Time     // when it is renewed by plan; zero: it does not say when it ends
	lost        time.Time     // when there was no session any more; zero: there is one
	losses      []time.Time
	owed        bool // the caller waits for words of the session that is gone

	trying bool
	tries  int
	until  time.Time // of this try
	heir   leg       // reached and not in its place yet; or nil
	begun  []byte    // its session.created; nil: it has not come

	given   map[string]string // items that the heir was given and has not confirmed, by event id
	refused []string          // those that it did not take
	told    map[string]bool   // what the model said in a session before this one: here it is text
}

// enable sets how another session is opened. It is called before the call begins.
func (r *renewal) enable(reach func(context.Context) (connection, *handoff.Error)) {
	r.reach, r.legs.heirs = reach, true
}

// renewable reports whether another session can take the place of the model's.
func (r *renewal) renewable() bool { return r.legs.heirs && r.mask.Begun() && !r.mask.Foreign() }

// plan sets when a session that has begun is renewed.
func (r *renewal) plan(session gjson.Result) {
	now := time.Now()
	r.due, r.latest, r.alarms[alarmRenew].at = time.Time{}, time.Time{}, time.Time{}
	r.life = time.Unix(session.Get("expires_at").Int(), 0).Sub(now)
	if r.renewable() && r.life >= wallLeast {
		r.replan(session)
	}
}

// replan sets it again where the session says by now that it ends at another time. It is renewed as long before that as
// was planned. An end that is missing, past or less than wallLeast away is ignored: a model whose sessions all say so
// would be renewed for ever.
func (r *renewal) replan(session gjson.Result) {
	end := time.Unix(session.Get("expires_at").Int(), 0)
	due := end.Add(-min(wallLead, r.life/5))
	if time.Until(end) < wallLeast || due.Equal(r.due) {
		return
	}
	r.due, r.latest = due, end.Add(-min(wallLatest, r.life/10))
	if !r.trying && r.heir == nil {
		r.alarms[alarmRenew].at = due
	}
}

// modelLeft handles the end of the model's session that nobody planned.
func (r *renewal) modelLeft(detail string) {
	now := time.Now()
	r.losses = slices.DeleteFunc(r.losses, func(at time.Time) bool { return now.Sub(at) > lossesWithin })
	if !r.renewable() || len(r.losses) >= maxLosses {
		r.end(r.legs.modelGone(detail))
		return
	}
	r.losses = append(r.losses, now)
	r.lost, r.tries = now, 0
	r.log().Info("voice model's session lost", zap.String("detail", detail))
	r.dismiss()
	r.seek(now)
}

// dismiss lets the model's session go, with all that ran in it.
func (r *renewal) dismiss() {
	old := r.legs.model
	r.spawn(func(context.Context) { old.Close(nil) })
	r.legs.model = modelLeg{leg: nobody{}, host: old.host, dialect: newDialect()}
	r.suspend()
}

// suspend ends what ran in a session that is gone, as the client and the router see it.
func (r *renewal) suspend() {
	h, s := r.hearing, r.saying
	r.owed = r.owed || s.floor.Due()
	endings := r.recall.Endings(r.ids.Next)
	over := func(whole bool) {
		for _, e := range endings {
			if e.Whole != whole {
				continue
			}
			for _, event := range e.Events {
				r.call.readModel(events.PeekType(event), event)
			}
		}
	}
	for _, e := range endings { // our own speech of which nothing sounds is asked for again by itself
		ours := floor.Ours(s.floor.AskOf(e.Response))
		r.owed = r.owed || !e.Aside && !h.lost[e.Response] && (!ours || h.playback.sounds(e.Response))
	}
	over(true)
	s.tell(floor.Lost{}) // before the others end: what they say is not given
	over(false)
	clear(s.hints)
	h.forsake()
}

// seek takes the next step to another session.
func (r *renewal) seek(now time.Time) {
	gone := !r.lost.IsZero()
	if gone && now.Sub(r.lost) >= renewLimit {
		r.end(r.legs.modelGone("no other session was had in time"))
		return
	}
	next := &r.alarms[alarmRenew].at
	switch {
	case r.begun != nil && (gone || !now.Before(r.latest) || r.still(now)):
		r.renew(now)
		return
	case r.begun != nil:
		*next = now.Add(quietEvery)
	case r.heir != nil && !now.Before(r.until):
		r.disown(now)
	case r.heir != nil:
		*next = r.until
	case !r.trying:
		r.trying, *next = true, time.Time{}
		r.tries++
		r.spawn(r.try)
	}
	if end := r.lost.Add(renewLimit); gone && (next.IsZero() || end.Before(*next)) {
		*next = end
	}
}

// still reports whether nothing goes on in the call that a change of the session could disturb.
func (r *renewal) still(now time.Time) bool {
	return r.saying.floor.Quiet() && r.mask.Confirmed() && !r.hearing.speeches.open(now.Add(-transcriptLimit))
}

// try reaches for another session, and carries it.
func (r *renewal) try(ctx context.Context) {
	dialing, cancel := context.WithTimeout(ctx, renewTry)
	l, fault := r.reach(dialing)
	cancel()
	taken := false
	r.call.do(func() { taken = r.reached(l, fault) })
	switch {
	case fault != nil:
	case !taken:
		l.Abandon()
	default:
		l.Run(r.call.takeFrom(l))
		r.call.do(func() {
			if r.heir == l {
				r.disown(time.Now())
			}
		})
	}
}

// reached takes what came of a try, and reports whether the leg is the call's now.
func (r *renewal) reached(l leg, fault *handoff.Error) (taken bool) {
	now := time.Now()
	r.trying = false
	if fault == nil {
		r.heir, r.until = l, now.Add(renewTry)
		r.seek(now)
		return true
	}
	r.log().Warn("no other session of the voice model", zap.String("code", string(fault.Code)),
		zap.String("detail", fault.Detail))
	if r.lost.IsZero() {
		r.retry(now)
		return false
	}
	switch fault.Code {
	case handoff.CodeVoiceKey, handoff.CodeVoiceModel: // it will not be had
		r.end(fault)
	default:
		r.retry(now)
	}
	return false
}

// disown gives up a session that did not begin, or ended before it was needed.
func (r *renewal) disown(now time.Time) {
	heir := r.heir
	r.heir, r.begun = nil, nil
	r.spawn(func(context.Context) { heir.Close(nil) })
	r.retry(now)
}

// retry lets the next try follow after a pause.
func (r *renewal) retry(now time.Time) {
	pause := renewPauses[min(r.tries, len(renewPauses)-1)]
	if r.lost.IsZero() {
		pause = max(pause, calmRetry)
	}
	r.alarms[alarmRenew].at = now.Add(pause)
}

// fromHeir handles an event of a session that is not in its place yet.
func (r *renewal) fromHeir(event []byte) {
	if handoff.TooDeep(event) || !gjson.ValidBytes(event) {
		return
	}
	switch events.PeekType(event) {
	case events.TypeSessionCreated:
		r.begun = bytes.Clone(event)
		r.seek(time.Now())
	case events.TypeError:
		r.swallow("the voice model refuses another session", gjson.GetBytes(event, "error"))
		r.disown(time.Now())
	}
}

// renew puts the session that has begun in the place of the one there was, and gives it what that knew.
func (r *renewal) renew(now time.Time) {
	planned := r.lost.IsZero()
	if planned {
		r.dismiss()
	}
	r.legs.model.leg = r.heir
	clear(r.given)
	r.refused = nil
	session := gjson.GetBytes(r.begun, "session")
	for _, update := range r.mask.Renew(r.begun) {
		r.legs.toModel(update)
	}
	r.session.awaitAnswer()
	line := "sb_" + strconv.Itoa(r.counts.renewals) + "_earlier"
	for _, it := range r.recall.Items(line) {
		if it.Ours {
			r.mask.Hide(it.ID)
		}
		id := r.ids.Next()
		r.given[id], r.told[it.ID] = it.ID, true
		r.mask.Again(it.ID)
		r.legs.toModel(events.Encode(events.Object{"type": events.TypeItemCreate, "event_id": id,
			"item": json.RawMessage(it.JSON)}))
	}
	r.saying.lostAsks()
	for _, event := range r.recall.Unanswered() {
		r.legs.toModel(event)
	}
	r.hearing.soundAgain()
	took := time.Duration(0)
	if !planned {
		took = now.Sub(r.lost)
	}
	r.counts.renewals++
	r.log().Info("voice model's session renewed", zap.Bool("planned", planned), zap.Duration("took", took))
	if r.legs.tells {
		r.legs.toLeg(events.Encode(events.Object{"type": events.TypeRenewed, "event_id": r.ids.Next(),
			"took_ms": took.Milliseconds()}))
	}
	owed := r.owed
	r.heir, r.begun, r.lost, r.tries, r.owed = nil, nil, time.Time{}, 0, false
	r.plan(session)
	if owed {
		id := "renewed-" + strconv.Itoa(r.counts.renewals)
		r.saying.say(handoff.Utterance{ID: id, Floor: handoff.FloorAsk, Text: resumed})
	}
	r.saying.tell(floor.Renewed{})
}

// resumed is what the model is told whose answer was cut.
const resumed = "The connection broke for a moment while you were about to answer the caller, or did. Go on where you " +
	"were cut, or answer what was said last; do not repeat what you said already, do not call a tool again that you " +
	"have called, and say nothing of the connection."

// followItems follows what the heir takes of the items that it was given.
func (r *renewal) followItems(kind string, event []byte) {
	if len(r.given) == 0 || kind != events.TypeItemAdded && kind != events.TypeItemDone {
		return
	}
	item := gjson.GetBytes(event, "item.id").String()
	for id, given := range r.given {
		if given == item {
			delete(r.given, id)
		}
	}
	r.retell()
}

// notTaken handles an error about an item that the heir was given; false: it is about something else.
func (r *renewal) notTaken(id string, fault gjson.Result) bool {
	item, known := r.given[id]
	if !known {
		return false
	}
	delete(r.given, id)
	r.swallow("item of the conversation refused by another session", fault)
	r.mask.NotAgain(item)
	r.refused = append(r.refused, item)
	r.retell()
	return true
}

// retell gives the model in words what it did not take as items, once it has answered for all.
func (r *renewal) retell() {
	if len(r.given) > 0 || len(r.refused) == 0 {
		return
	}
	text := r.recall.Transcript(r.refused)
	if r.refused = nil; text == "" {
		return
	}
	id := "sb_" + strconv.Itoa(r.counts.renewals) + "_words"
	r.mask.Hide(id)
	r.legs.toModel(events.Message(r.ids.Next(), id, text))
}

// answersItself handles an event of the client about an item that this session of the model has as text, or not at all.
// It returns the answer to the client; nil: the event is for the model.
func (r *renewal) answersItself(kind string, event []byte) []byte {
	id := gjson.GetBytes(event, "item_id").String()
	switch {
	case kind == events.TypeItemDelete && r.recall.Forgot(id):
		r.mask.Deleted(id)
		return events.Encode(events.Object{"type": events.TypeItemDeleted, "event_id": r.ids.Next(), "item_id": id})
	case kind == events.TypeItemTruncate && r.told[id]:
		ms := gjson.GetBytes(event, "audio_end_ms").Int()
		r.recall.Truncate(id, ms)
		r.hearing.hush(kind, event)
		return events.Encode(events.Object{"type": events.TypeItemTruncated, "event_id": r.ids.Next(), "item_id": id,
			"content_index": 0, "audio_end_ms": ms})
	}
	return nil
}
