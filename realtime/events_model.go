package realtime

import (
	"cmp"
	"strings"
	"time"

	"github.com/tidwall/gjson"
	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/realtime/events"
	"switchboard/realtime/filter"
	"switchboard/realtime/floor"
)

// fromModel handles one event of the model: first the client gets its part, then the call acts on it.
func (c *Call) fromModel(event []byte) {
	kind := events.PeekType(event)
	// Sound is nearly all traffic: it is passed on without being parsed.
	if kind == events.TypeAudioDelta && events.LooksWhole(event) {
		c.hearing.soundOfModel(event)
		return
	}
	if handoff.TooDeep(event) { // first: parsers recurse
		c.unreadable("nests too deep", event)
		return
	}
	if strings.HasPrefix(kind, events.TypeResponse) {
		c.legs.model.stirred = time.Now()
	}
	if !gjson.ValidBytes(event) {
		c.unreadable("is not JSON", event)
		return
	}
	if kind == events.TypeError {
		if shown := c.failed(event); shown != nil {
			c.legs.toClient(shown)
		}
		return
	}
	if events.LongID(event) {
		c.unreadable("has an id that is too long", event)
		return
	}
	all, made := c.legs.model.dialect.read(kind, event)
	c.counts.made += made
	for _, e := range all {
		c.readModel(events.PeekType(e), e)
	}
	if c.filter.Full() {
		c.end(handoff.Fault(handoff.CodeVoiceGone, "", "it left too much open"))
	}
}

// unreadable drops an event of the model. Only the first of a call is logged by itself; their number is logged at the
// end.
func (k *core) unreadable(why string, event []byte) {
	if k.counts.unreadable++; k.counts.unreadable == 1 {
		k.log().Warn("voice model sent an event that cannot be read",
			zap.String("detail", why), zap.Int("bytes", len(event)))
	}
}

// readModel handles one event of the model as OpenAI's would send it.
func (c *Call) readModel(kind string, event []byte) {
	if c.hearing.attached != nil && kind == events.TypeSessionUpdated && !c.filter.Begun() {
		// A sideband may get no session.created: then the answer to our first update begins the session.
		c.filter.Joined()
		kind, event = events.TypeSessionCreated, events.Set(event, "type", events.Quote(events.TypeSessionCreated))
	}
	if kind == events.TypeCreated {
		// A response without a tag answers the ask that the floor has on the wire: the filter has to know.
		if r := gjson.GetBytes(event, "response"); events.TagOf(r) == "" && !events.OutOfBand(r) {
			c.filter.Answers(r.Get("id").String(), c.saying.floor.Untagged())
		}
	}
	if c.legs.canRenew || c.hearing.attached != nil {
		c.renewal.recall.FromModel(kind, event)
		c.renewal.followItems(kind, event)
	}
	shown, updates := c.filter.FromModel(kind, event)
	ofSession := kind == events.TypeSessionCreated || kind == events.TypeSessionUpdated
	if c.legs.performs && (kind == events.TypeSessionCreated || ofSession && (len(shown) > 0 || c.filter.ForLeg())) {
		told := events.TypeMade // the leg gets the model's session unmasked
		if kind == events.TypeSessionUpdated {
			told = events.TypeChanged
		}
		c.legs.toLeg(events.Set(event, "type", events.Quote(told)))
	}
	for _, e := range shown {
		c.session.show(e)
	}
	if len(shown) == 0 {
		c.counts.swallowed++
	}
	for _, own := range updates {
		c.legs.toModel(own)
	}
	if ofSession {
		c.session.awaitAnswer()
	}
	c.observe(kind, event, len(shown) > 0)
	if c.hearing.attached != nil {
		c.observeAttached(kind, event)
	}
}

// observe acts on an event of the model. shown: the client got it.
func (c *Call) observe(kind string, event []byte, shown bool) {
	h, s := &c.hearing, &c.saying
	switch kind {
	case events.TypeSessionCreated:
		c.legs.model.denied = nil
		c.model = cmp.Or(gjson.GetBytes(event, "session.model").String(), c.model)
		c.session.learn(event)
		c.renewal.plan(gjson.GetBytes(event, "session"))
		c.alarms[alarmOpening].at = time.Now().Add(openingLimit)
		c.session.ready()
		s.askedEarly()
	case events.TypeSessionUpdated:
		c.session.updated(event, shown)
		if !c.renewal.due.IsZero() {
			c.renewal.replan(gjson.GetBytes(event, "session"))
		}
	case events.TypeCreated:
		r := gjson.GetBytes(event, "response")
		tag := events.TagOf(r)
		aside := filter.Aside(tag) || events.OutOfBand(r)
		if h.began(r, aside); !aside {
			s.began(r.Get("id").String(), tag)
		}
		h.buysNoMore(r.Get("id").String())
	case events.TypeDone:
		c.finished(gjson.GetBytes(event, "response"))
	case events.TypeOutputAdded:
		s.hint(events.ReadItem(gjson.GetBytes(event, "item")), responseOf(event))
	case events.TypeArguments:
		if len(s.hints) > 0 {
			s.hintMore(gjson.GetBytes(event, "item_id").String(), gjson.GetBytes(event, "delta").String())
		}
	case events.TypeOutputDone:
		it := events.ReadItem(gjson.GetBytes(event, "item"))
		if it.Kind == events.ItemMessage && it.Content {
			h.noteReached(responseOf(event), it.Written)
		}
		delete(s.hints, it.ID)
		s.requested(it, responseOf(event), it.Status == events.StatusCompleted)
	case events.TypeItemAdded, events.TypeItemCreated, events.TypeItemDone:
		it := events.ReadItem(gjson.GetBytes(event, "item"))
		s.acknowledged(it.ID)
		if kind == events.TypeItemDone {
			s.requested(it, c.filter.Current(), it.Status == events.StatusCompleted)
		}
	case events.TypeTextDelta, events.TypeSpokenDelta:
		h.noteReached(responseOf(event), kind == events.TypeTextDelta)
	case events.TypeTranscribed:
		text := strings.TrimSpace(gjson.GetBytes(event, "transcript").String())
		h.transcribed(text, gjson.GetBytes(event, "item_id").String())
	case events.TypeNotTranscribed:
		h.notTranscribed(gjson.GetBytes(event, "item_id").String())
	case events.TypeCommitted:
		h.speakingItem = ""
		h.keptSound.Taken()
		h.nameInterjection(gjson.GetBytes(event, "item_id").String())
		h.sentenceOver(gjson.GetBytes(event, "item_id").String())
		if s.floor.Speaking() { // the client committed while the caller speaks: no speech_stopped will come
			s.tell(floor.Speech{On: false})
		}
	case events.TypeSpeechStarted:
		h.callerSpeaks(event)
	case events.TypeSpeechStopped:
		h.sentenceOver(cmp.Or(h.speakingItem, gjson.GetBytes(event, "item_id").String()))
		h.speakingItem = ""
		h.speechEnded(time.Now())
		s.tell(floor.Speech{On: false})
	case events.TypeInputCleared:
		h.speakingItem = ""
		h.keptSound.Taken()
		s.tell(floor.Hushed{})
	}
}

// responseOf returns the id of the response that an event belongs to.
func responseOf(event []byte) string { return gjson.GetBytes(event, "response_id").String() }

// finished handles the end of a response.
func (c *Call) finished(r gjson.Result) {
	h, tag, id, status := &c.hearing, events.TagOf(r), r.Get("id").String(), r.Get("status").String()
	now := time.Now()
	if c.pass != nil {
		c.pass.charge(c.model, c.id, []byte(r.Get("usage").Raw))
	}
	h.playback.complete(id)
	h.reportPlayback(now, h.playback.drain(now)) // first: all its sound may have been heard already
	defer h.playback.done(id)
	if filter.Aside(tag) || events.OutOfBand(r) {
		return
	}
	h.keepWords(r)
	delete(h.muted, id)
	output, wrote := id == c.filter.Current() && h.voiced, id == c.filter.Current() && h.wrote
	for _, raw := range r.Get("output").Array() {
		it := events.ReadItem(raw)
		output, wrote = output || it.Content, wrote || it.Written
	}
	acted, silent := c.saying.ended(r, tag, status)
	status = cmp.Or(status, events.StatusCompleted) // some servers give none
	switch {
	case h.undelivered[id]:
		output, status = false, events.StatusCancelled
	case status == events.StatusCompleted && !output && silent:
		output, h.unsaid = true, id
	case status == events.StatusCompleted && !output && !acted:
		status = floor.StatusEmpty
	case status == events.StatusCancelled, status == events.StatusIncomplete:
		output = wrote // how much of the sound was heard the playback knows
	}
	c.saying.tell(floor.Ended{Response: id, Tag: tag, Status: status, Output: output})
	h.unsaid = ""
	delete(h.undelivered, id)
}

// failed handles an error of the model and returns the event that the client sees, or nil.
func (c *Call) failed(event []byte) []byte {
	fault := gjson.GetBytes(event, "error")
	id, code := fault.Get("event_id").String(), fault.Get("code").String()
	switch code {
	case events.CodeCommitEmpty:
		c.saying.heard(c.saying.asking.spoken.refuse(), wordsNone)
		c.hearing.keptSound.Taken()
	case events.CodeExpired:
		if c.renewal.renewable() {
			c.renewal.modelLeft(code)
			return nil
		}
	}
	if c.renewal.recall.Refused(id); c.renewal.itemRefused(id, fault) {
		return nil
	}
	if refusal, known := c.filter.Refused(id, event); known {
		return c.session.refused(refusal, fault)
	}
	if id == "" && code != events.CodeActive {
		id = c.saying.guessEvent(fault)
	}
	if x, known := c.saying.sent[id]; known {
		delete(c.saying.sent, id)
		return c.saying.refused(x, event)
	}
	ask := c.saying.floor.Asked()
	switch {
	case code == events.CodeActive && id == "" && ask != "": // it can only mean the ask on the wire
		c.saying.tell(floor.Refused{Ask: ask})
	case id == "" && !c.filter.Begun():
		c.session.denied(fault)
	case c.legs.performs && events.OfLeg(id): // an event that the leg made by itself
		c.legs.toLeg(event)
	case c.ids.Own(id):
		c.swallow("error of the voice model", fault)
	default:
		return event
	}
	return nil
}
