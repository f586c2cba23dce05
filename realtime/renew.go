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
	fault  *handoff.Error

	given   map[string]string // items that the heir was given and has not confirmed, by event id
	refused []string          // those that it did not take
	told    map[string]bool   // what the model said in a session before this one: here it is text
}

func newRenewal() renewal {
	return renewal{recall: recall.New(), given: map[string]string{}, told: map[string]bool{}}
}

// renews sets how another session is opened. It is called before the call begins.
func (c *Call) renews(reach func(context.Context) (connection, *handoff.Error)) {
	c.renewal.reach, c.legs.heirs, c.hearing.keeps = reach, true, true
}

// renewable reports whether another session can take the place of the model's.
func (c *Call) renewable() bool { return c.legs.heirs && c.mask.Begun() && !c.mask.Foreign() }

// plan sets when a session that has begun is renewed.
func (c *Call) plan(session gjson.Result) {
	r, now := &c.renewal, time.Now()
	r.due, r.latest, c.alarms[alarmRenew].at = time.Time{}, time.Time{}, time.Time{}
	r.life = time.Unix(session.Get("expires_at").Int(), 0).Sub(now)
	if c.renewable() && r.life >= wallLeast {
		c.replan(session)
	}
}

// replan sets it again where the session says by now that it ends at another time. It is renewed as long before that as
// was planned. An end that is missing, past or less than wallLeast away is ignored: a model whose sessions all say so
// would be renewed for ever.
func (c *Call) replan(session gjson.Result) {
	r, end := &c.renewal, time.Unix(session.Get("expires_at").Int(), 0)
	due := end.Add(-min(wallLead, r.life/5))
	if time.Until(end) < wallLeast || due.Equal(r.due) {
		return
	}
	r.due, r.latest = due, end.Add(-min(wallLatest, r.life/10))
	if !r.trying && r.heir == nil {
		c.alarms[alarmRenew].at = due
	}
}

// modelLeft handles the end of the model's session that nobody planned.
func (c *Call) modelLeft(detail string) {
	r, now := &c.renewal, time.Now()
	r.losses = slices.DeleteFunc(r.losses, func(at time.Time) bool { return now.Sub(at) > lossesWithin })
	if !c.renewable() || len(r.losses) >= maxLosses {
		c.end(c.legs.modelGone(detail))
		return
	}
	r.losses = append(r.losses, now)
	r.lost, r.tries = now, 0
	c.log().Info("voice model's session lost", zap.String("detail", detail))
	c.dismiss()
	c.seek(now)
}

// dismiss lets the model's session go, with all that ran in it.
func (c *Call) dismiss() {
	old := c.legs.model
	c.renewal.spawn(func(context.Context) { old.Close(nil) })
	c.legs.model = modelLeg{leg: nobody{}, host: old.host, dialect: newDialect()}
	c.suspend()
}

// suspend ends what ran in a session that is gone, as the client and the router see it.
func (c *Call) suspend() {
	r, h, s := &c.renewal, &c.hearing, &c.saying
	r.owed = r.owed || s.floor.Due()
	endings := r.recall.Endings(c.ids.Next)
	over := func(whole bool) {
		for _, e := range endings {
			if e.Whole != whole {
				continue
			}
			for _, event := range e.Events {
				c.readModel(events.PeekType(event), event)
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
func (c *Call) seek(now time.Time) {
	r := &c.renewal
	gone := !r.lost.IsZero()
	if gone && now.Sub(r.lost) >= renewLimit {
		c.end(c.legs.modelGone("no other session was had in time"))
		return
	}
	next := &c.alarms[alarmRenew].at
	switch {
	case r.begun != nil && (gone || !now.Before(r.latest) || c.still(now)):
		c.renew(now)
		return
	case r.begun != nil:
		*next = now.Add(quietEvery)
	case r.heir != nil && !now.Before(r.until):
		c.disown(now)
	case r.heir != nil:
		*next = r.until
	case !r.trying:
		r.trying, *next = true, time.Time{}
		r.tries++
		r.spawn(c.try)
	}
	if end := r.lost.Add(renewLimit); gone && (next.IsZero() || end.Before(*next)) {
		*next = end
	}
}

// still reports whether nothing goes on in the call that a change of the session could disturb.
func (c *Call) still(now time.Time) bool {
	return c.saying.floor.Quiet() && c.mask.Confirmed() && !c.hearing.speeches.open(now.Add(-transcriptLimit))
}

// try reaches for another session, and carries it.
func (c *Call) try(ctx context.Context) {
	dialing, cancel := context.WithTimeout(ctx, renewTry)
	l, fault := c.renewal.reach(dialing)
	cancel()
	taken := false
	c.do(func() { taken = c.reached(l, fault) })
	switch {
	case fault != nil:
	case !taken:
		l.Abandon()
	default:
		l.Run(c.takeFrom(l))
		c.do(func() {
			if c.renewal.heir == l {
				c.disown(time.Now())
			}
		})
	}
}

// reached takes what came of a try, and reports whether the leg is the call's now.
func (c *Call) reached(l leg, fault *handoff.Error) (taken bool) {
	r, now := &c.renewal, time.Now()
	r.trying = false
	if fault == nil {
		r.heir, r.until = l, now.Add(renewTry)
		c.seek(now)
		return true
	}
	c.log().Warn("no other session of the voice model", zap.String("code", string(fault.Code)),
		zap.String("detail", fault.Detail))
	if r.lost.IsZero() {
		c.retry(now)
		return false
	}
	switch r.fault = fault; fault.Code {
	case handoff.CodeVoiceKey, handoff.CodeVoiceModel: // it will not be had
		c.end(fault)
	default:
		c.retry(now)
	}
	return false
}

// disown gives up a session that did not begin, or ended before it was needed.
func (c *Call) disown(now time.Time) {
	heir := c.renewal.heir
	c.renewal.heir, c.renewal.begun = nil, nil
	c.renewal.spawn(func(context.Context) { heir.Close(nil) })
	c.retry(now)
}

// retry lets the next try follow after a pause.
func (c *Call) retry(now time.Time) {
	pause := renewPauses[min(c.renewal.tries, len(renewPauses)-1)]
	if c.renewal.lost.IsZero() {
		pause = max(pause, calmRetry)
	}
	c.alarms[alarmRenew].at = now.Add(pause)
}

// fromHeir handles an event of a session that is not in its place yet.
func (c *Call) fromHeir(event []byte) {
	if handoff.TooDeep(event) || !gjson.ValidBytes(event) {
		return
	}
	switch events.PeekType(event) {
	case events.TypeSessionCreated:
		c.renewal.begun = bytes.Clone(event)
		c.seek(time.Now())
	case events.TypeError:
		c.swallow("the voice model refuses another session", gjson.GetBytes(event, "error"))
		c.disown(time.Now())
	}
}

// renew puts the session that has begun in the place of the one there was, and gives it what that knew.
func (c *Call) renew(now time.Time) {
	r, planned := &c.renewal, c.renewal.lost.IsZero()
	if planned {
		c.dismiss()
	}
	c.legs.model.leg = r.heir
	clear(r.given)
	r.refused = nil
	session := gjson.GetBytes(r.begun, "session")
	for _, update := range c.mask.Renew(r.begun) {
		c.legs.toModel(update)
	}
	c.session.awaitAnswer()
	line := "sb_" + strconv.Itoa(c.counts.renewals) + "_earlier"
	for _, it := range r.recall.Items(line) {
		if it.Ours {
			c.mask.Hide(it.ID)
		}
		id := c.ids.Next()
		r.given[id], r.told[it.ID] = it.ID, true
		c.mask.Again(it.ID)
		c.legs.toModel(events.Encode(events.Object{"type": events.TypeItemCreate, "event_id": id,
			"item": json.RawMessage(it.JSON)}))
	}
	c.saying.lostAsks()
	for _, event := range r.recall.Unanswered() {
		c.legs.toModel(event)
	}
	c.hearing.soundAgain()
	took := time.Duration(0)
	if !planned {
		took = now.Sub(r.lost)
	}
	c.counts.renewals++
	c.log().Info("voice model's session renewed", zap.Bool("planned", planned), zap.Duration("took", took))
	if c.legs.tells {
		c.legs.toLeg(events.Encode(events.Object{"type": events.TypeRenewed, "event_id": c.ids.Next(),
			"took_ms": took.Milliseconds()}))
	}
	owed := r.owed
	r.heir, r.begun, r.fault, r.lost, r.tries, r.owed = nil, nil, nil, time.Time{}, 0, false
	c.plan(session)
	if owed {
		id := "renewed-" + strconv.Itoa(c.counts.renewals)
		c.saying.say(handoff.Utterance{ID: id, Floor: handoff.FloorAsk, Text: resumed})
	}
	c.saying.tell(floor.Renewed{})
}

// resumed is what the model is told whose answer was cut.
const resumed = "The connection broke for a moment while you were about to answer the caller, or did. Go on where you " +
	"were cut, or answer what was said last; do not repeat what you said already, do not call a tool again that you " +
	"have called, and say nothing of the connection."

// followItems follows what the heir takes of the items that it was given.
func (c *Call) followItems(kind string, event []byte) {
	r := &c.renewal
	if len(r.given) == 0 || kind != events.TypeItemAdded && kind != events.TypeItemDone {
		return
	}
	item := gjson.GetBytes(event, "item.id").String()
	for id, given := range r.given {
		if given == item {
			delete(r.given, id)
		}
	}
	c.retell()
}

// notTaken handles an error about an item that the heir was given; false: it is about something else.
func (c *Call) notTaken(id string, fault gjson.Result) bool {
	r := &c.renewal
	item, known := r.given[id]
	if !known {
		return false
	}
	delete(r.given, id)
	c.swallow("item of the conversation refused by another session", fault)
	c.mask.NotAgain(item)
	r.refused = append(r.refused, item)
	c.retell()
	return true
}

// retell gives the model in words what it did not take as items, once it has answered for all.
func (c *Call) retell() {
	r := &c.renewal
	if len(r.given) > 0 || len(r.refused) == 0 {
		return
	}
	text := r.recall.Transcript(r.refused)
	if r.refused = nil; text == "" {
		return
	}
	id := "sb_" + strconv.Itoa(c.counts.renewals) + "_words"
	c.mask.Hide(id)
	c.legs.toModel(events.Message(c.ids.Next(), id, text))
}

// answersItself handles an event of the client about an item that this session of the model has as text, or not at all.
// It returns the answer to the client; nil: the event is for the model.
func (c *Call) answersItself(kind string, event []byte) []byte {
	id := gjson.GetBytes(event, "item_id").String()
	switch {
	case kind == events.TypeItemDelete && c.renewal.recall.Forgot(id):
		c.mask.Deleted(id)
		return events.Encode(events.Object{"type": events.TypeItemDeleted, "event_id": c.ids.Next(), "item_id": id})
	case kind == events.TypeItemTruncate && c.renewal.told[id]:
		ms := gjson.GetBytes(event, "audio_end_ms").Int()
		c.renewal.recall.Truncate(id, ms)
		c.hearing.hush(kind, event)
		return events.Encode(events.Object{"type": events.TypeItemTruncated, "event_id": c.ids.Next(), "item_id": id,
			"content_index": 0, "audio_end_ms": ms})
	}
	return nil
}
