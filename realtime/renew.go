package realtime

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/tidwall/gjson"
	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/realtime/events"
	"switchboard/realtime/filter"
	"switchboard/realtime/floor"
	"switchboard/realtime/recall"
)

const (
	// wallLead is how long before its end a session is replaced, at the first quiet moment; from wallLatest before its
	// end on, quiet is not waited for. Of a short session they are a fifth and a tenth of its life.
	wallLead   = 2 * time.Minute
	wallLatest = 10 * time.Second
	// wallLeast is the shortest life of a session that is replaced by plan. A session that claims a shorter one has
	// another clock than we.
	wallLeast = 5 * time.Second
	// quietEvery is how often the call looks for a quiet moment once another session is there.
	quietEvery = 100 * time.Millisecond
	// renewTry bounds one try to get another session. renewLimit bounds all tries once there is no session: then the
	// call ends.
	renewTry   = 4 * time.Second
	renewLimit = 15 * time.Second
	// calmRetry is the pause between tries while the old session goes on.
	calmRetry = 10 * time.Second
	// maxLosses lost sessions within lossesWithin are replaced; with the next loss the call ends.
	maxLosses    = 3
	lossesWithin = time.Minute
	// transcriptLimit is how long a planned renewal waits for the transcript of what the caller said.
	transcriptLimit = 5 * time.Second
)

// renewPauses are the pauses before each try to get another session; the last one is repeated. Set once.
var renewPauses = []time.Duration{0, 250 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second}

// A renewal is how a call continues when its model session ends: another session, the successor, is given what the old
// one knew and takes its place under the lock. The client sees one session. While there is none, the model's leg is
// nobody{} and events for it are lost. What the next session must still get is remembered by the part that waits for
// the answer: updates by the filter, asks by the floor, and all other events and the caller's sound by recall.
type renewal struct {
	*core
	legs    *legs
	saying  *saying
	hearing *hearing
	session *session
	filter  *filter.Filter
	call    *Call // Set once: for what needs all owners

	dial   func(context.Context) (connection, *handoff.Error) // Set once, before begin: opens a session; or nil
	spawn  func(work func(context.Context))                   // Set once, before begin: begins a goroutine of the call
	recall *recall.Recall                                     // Set once

	life        time.Duration // how long the session lasts, as it said when it began
	due, latest time.Time     // when the session is replaced by plan; zero: it does not say when it ends
	lostAt      time.Time     // when the session was lost; zero: there is one
	losses      []time.Time
	answerDue   bool // the caller waits for an answer that the lost session did not finish

	trying    bool
	tries     int
	tryUntil  time.Time // when this try counts as failed
	successor leg       // connected, and not the call's model leg yet; or nil
	created   []byte    // the successor's session.created; nil: it has not come

	unconfirmed  map[string]string // items that the new session has not confirmed yet, by event id
	refusedItems []string          // the items that it refused
	asText       map[string]bool   // items whose sound was made in an earlier session: this one has their text
}

// enable sets how another session is opened. It is called before the call begins.
func (r *renewal) enable(reach func(context.Context) (connection, *handoff.Error)) {
	r.dial, r.legs.canRenew = reach, true
}

// renewable reports whether another session can take the place of the model's.
func (r *renewal) renewable() bool {
	return r.legs.canRenew && r.filter.Begun() && !r.filter.TranscriptionOnly()
}

// plan sets when the session that has begun is to be replaced.
func (r *renewal) plan(session gjson.Result) {
	now := time.Now()
	r.due, r.latest, r.alarms[alarmRenew].at = time.Time{}, time.Time{}, time.Time{}
	r.life = time.Unix(session.Get("expires_at").Int(), 0).Sub(now)
	if r.renewable() && r.life >= wallLeast {
		r.replan(session)
	}
}

// replan sets it again, as long before the end as was planned, if the session reports another end. An end that is
// missing, past or less than wallLeast away is ignored: a model whose sessions all report such an end would be renewed
// for ever.
func (r *renewal) replan(session gjson.Result) {
	end := time.Unix(session.Get("expires_at").Int(), 0)
	due := end.Add(-min(wallLead, r.life/5))
	if time.Until(end) < wallLeast || due.Equal(r.due) {
		return
	}
	r.due, r.latest = due, end.Add(-min(wallLatest, r.life/10))
	if !r.trying && r.successor == nil {
		r.alarms[alarmRenew].at = due
	}
}

// modelLeft handles an unplanned end of the model's session.
func (r *renewal) modelLeft(detail string) {
	now := time.Now()
	r.losses = slices.DeleteFunc(r.losses, func(at time.Time) bool { return now.Sub(at) > lossesWithin })
	if !r.renewable() || len(r.losses) >= maxLosses {
		r.end(r.legs.modelGone(detail))
		return
	}
	r.losses = append(r.losses, now)
	r.lostAt, r.tries = now, 0
	r.log().Info("voice model's session lost", zap.String("detail", detail))
	r.dismiss()
	r.step(now)
}

// dismiss closes the model's session and ends all that ran in it.
func (r *renewal) dismiss() {
	old := r.legs.model
	r.spawn(func(context.Context) { old.Close(nil) })
	r.legs.model = modelLeg{leg: nobody{}, host: old.host, dialect: newDialect()}
	r.endRunning()
}

// endRunning ends, for the client and the router, the responses and items that ran in a session that is gone.
func (r *renewal) endRunning() {
	h, s := r.hearing, r.saying
	r.answerDue = r.answerDue || s.floor.AnswerDue()
	endings := r.recall.Endings(r.ids.Next)
	over := func(whole bool) {
		for _, e := range endings {
			if e.Complete != whole {
				continue
			}
			for _, event := range e.Events {
				r.call.readModel(events.PeekType(event), event)
			}
		}
	}
	for _, e := range endings { // what we asked for and did not sound yet, the floor asks for again
		ours := floor.Ours(s.floor.AskOf(e.Response))
		r.answerDue = r.answerDue || !e.Aside && !h.undelivered[e.Response] && (!ours || h.playback.sounds(e.Response))
	}
	over(true)
	s.tell(floor.Lost{}) // before the others end: their utterances do not count as given
	over(false)
	clear(s.hints)
	h.dropSpeech()
}

// step does what is due next to get another session, and sets the alarm for the step after.
func (r *renewal) step(now time.Time) {
	gone := !r.lostAt.IsZero()
	if gone && now.Sub(r.lostAt) >= renewLimit {
		r.end(r.legs.modelGone("no other session was had in time"))
		return
	}
	next := &r.alarms[alarmRenew].at
	switch {
	case r.created != nil && (gone || !now.Before(r.latest) || r.isQuiet(now)):
		r.renew(now)
		return
	case r.created != nil:
		*next = now.Add(quietEvery)
	case r.successor != nil && !now.Before(r.tryUntil):
		r.dropSuccessor(now)
	case r.successor != nil:
		*next = r.tryUntil
	case !r.trying:
		r.trying, *next = true, time.Time{}
		r.tries++
		r.spawn(r.try)
	}
	if end := r.lostAt.Add(renewLimit); gone && (next.IsZero() || end.Before(*next)) {
		*next = end
	}
}

// isQuiet reports whether nothing goes on in the call that a change of the session would disturb.
func (r *renewal) isQuiet(now time.Time) bool {
	return r.saying.floor.Quiet() && r.filter.Confirmed() && !r.saying.asking.spoken.open(now.Add(-transcriptLimit))
}

// try opens another session, and runs its leg until that ends.
func (r *renewal) try(ctx context.Context) {
	dialing, cancel := context.WithTimeout(ctx, renewTry)
	l, fault := r.dial(dialing)
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
			if r.successor == l {
				r.dropSuccessor(time.Now())
			}
		})
	}
}

// reached handles the result of a try, and reports whether the call has taken the leg.
func (r *renewal) reached(l leg, fault *handoff.Error) (taken bool) {
	now := time.Now()
	r.trying = false
	if fault == nil {
		r.successor, r.tryUntil = l, now.Add(renewTry)
		r.step(now)
		return true
	}
	r.log().Warn("no other session of the voice model", zap.String("code", string(fault.Code)),
		zap.String("detail", fault.Detail))
	if r.lostAt.IsZero() {
		r.retry(now)
		return false
	}
	switch fault.Code {
	case handoff.CodeVoiceKey, handoff.CodeVoiceModel: // another try would fail, too
		r.end(fault)
	default:
		r.retry(now)
	}
	return false
}

// dropSuccessor gives up a successor that began no session, or ended before it was needed.
func (r *renewal) dropSuccessor(now time.Time) {
	old := r.successor
	r.successor, r.created = nil, nil
	r.spawn(func(context.Context) { old.Close(nil) })
	r.retry(now)
}

// retry sets the alarm for the next try, after a pause.
func (r *renewal) retry(now time.Time) {
	pause := renewPauses[min(r.tries, len(renewPauses)-1)]
	if r.lostAt.IsZero() {
		pause = max(pause, calmRetry)
	}
	r.alarms[alarmRenew].at = now.Add(pause)
}

// fromSuccessor handles an event of the successor.
func (r *renewal) fromSuccessor(event []byte) {
	if handoff.TooDeep(event) || !gjson.ValidBytes(event) {
		return
	}
	switch events.PeekType(event) {
	case events.TypeSessionCreated:
		r.created = bytes.Clone(event)
		r.step(time.Now())
	case events.TypeError:
		r.swallow("the voice model refuses another session", gjson.GetBytes(event, "error"))
		r.dropSuccessor(time.Now())
	}
}

// renew makes the successor the call's model session, and gives it what the one before knew.
func (r *renewal) renew(now time.Time) {
	planned := r.lostAt.IsZero()
	if planned {
		r.dismiss()
	}
	r.legs.model.leg = r.successor
	clear(r.unconfirmed)
	r.refusedItems = nil
	session := gjson.GetBytes(r.created, "session")
	for _, update := range r.filter.Renew(r.created) {
		r.legs.toModel(update)
	}
	r.session.awaitAnswer()
	line := "sb_" + strconv.Itoa(r.counts.renewals) + "_earlier"
	for _, it := range r.recall.Items(line) {
		if it.Ours {
			r.filter.Hide(it.ID)
		}
		id := r.ids.Next()
		r.unconfirmed[id], r.asText[it.ID] = it.ID, true
		r.filter.Resent(it.ID)
		r.legs.toModel(events.Encode(events.Object{"type": events.TypeItemCreate, "event_id": id,
			"item": json.RawMessage(it.JSON)}))
	}
	// The floor asks again, and recall has the items.
	maps.DeleteFunc(r.saying.sent, func(_ string, x sentEvent) bool { return x.item == 0 })
	for _, event := range r.recall.Unanswered() {
		r.legs.toModel(event)
	}
	r.hearing.soundAgain()
	took := time.Duration(0)
	if !planned {
		took = now.Sub(r.lostAt)
	}
	r.counts.renewals++
	r.log().Info("voice model's session renewed", zap.Bool("planned", planned), zap.Duration("took", took))
	if r.legs.takesOurs {
		r.legs.toLeg(events.Encode(events.Object{"type": events.TypeRenewed, "event_id": r.ids.Next(),
			"took_ms": took.Milliseconds()}))
	}
	owed := r.answerDue
	r.successor, r.created, r.lostAt, r.tries, r.answerDue = nil, nil, time.Time{}, 0, false
	r.plan(session)
	if owed {
		r.saying.asking.take() // the caller's words are what it is for
		id := "renewed-" + strconv.Itoa(r.counts.renewals)
		r.saying.say(handoff.Utterance{ID: id, Floor: handoff.FloorAsk, Text: resumed, Plain: true})
	}
	r.saying.tell(floor.Renewed{})
}

// resumed tells a new session that the answer of the one before was cut.
const resumed = "The connection broke for a moment while you were about to answer the caller, or did. Go on where " +
	"you were cut, or answer what was said last; do not repeat what you said already, do not call a tool again that " +
	"you have called, and say nothing of the connection."

// followItems notes the items that the new session has confirmed.
func (r *renewal) followItems(kind string, event []byte) {
	if len(r.unconfirmed) == 0 || kind != events.TypeItemAdded && kind != events.TypeItemDone {
		return
	}
	item := gjson.GetBytes(event, "item.id").String()
	for id, given := range r.unconfirmed {
		if given == item {
			delete(r.unconfirmed, id)
		}
	}
	r.resendAsText()
}

// itemRefused handles an error about an item that the new session was given; false: the error is about something else.
func (r *renewal) itemRefused(id string, fault gjson.Result) bool {
	item, known := r.unconfirmed[id]
	if !known {
		return false
	}
	delete(r.unconfirmed, id)
	r.swallow("item of the conversation refused by another session", fault)
	r.filter.ResentRefused(item)
	r.refusedItems = append(r.refusedItems, item)
	r.resendAsText()
	return true
}

// resendAsText gives the model the items that it refused as one text, once it has confirmed or refused all.
func (r *renewal) resendAsText() {
	if len(r.unconfirmed) > 0 || len(r.refusedItems) == 0 {
		return
	}
	text := r.recall.Transcript(r.refusedItems)
	if r.refusedItems = nil; text == "" {
		return
	}
	id := "sb_" + strconv.Itoa(r.counts.renewals) + "_words"
	r.filter.Hide(id)
	r.legs.toModel(events.Message(r.ids.Next(), id, text))
}

// answerForModel handles an event of the client about an item that this session of the model has as text, or not at
// all. It returns the answer for the client; nil: the event is for the model.
func (r *renewal) answerForModel(kind string, event []byte) []byte {
	id := gjson.GetBytes(event, "item_id").String()
	switch {
	case kind == events.TypeItemDelete && r.recall.Forgot(id):
		r.filter.Deleted(id)
		return events.Encode(events.Object{"type": events.TypeItemDeleted, "event_id": r.ids.Next(), "item_id": id})
	case kind == events.TypeItemTruncate && r.asText[id]:
		ms := gjson.GetBytes(event, "audio_end_ms").Int()
		r.recall.Truncate(id, ms)
		r.hearing.stoppedByClient(kind, event)
		return events.Encode(events.Object{"type": events.TypeItemTruncated, "event_id": r.ids.Next(), "item_id": id,
			"content_index": 0, "audio_end_ms": ms})
	}
	return nil
}
