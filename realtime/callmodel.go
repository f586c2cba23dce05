package realtime

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"
	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/realtime/events"
	"switchboard/realtime/floor"
	"switchboard/realtime/mask"
)

// takeModel handles one event of the model's leg.
func (c *Call) takeModel(event []byte) { c.do(func() { c.fromModel(event) }) }

// fromModel handles one event of the model: the client sees its part first, then we act on ours.
func (c *Call) fromModel(event []byte) {
	kind := events.PeekType(event)
	if kind == events.TypeAudioDelta && events.LooksWhole(event) { // nearly all there is: it is passed on, and nothing in it is parsed
		c.soundOfModel(event)
		return
	}
	if handoff.TooDeep(event) { // first: parsers recurse
		c.unreadable("nests too deep", event)
		return
	}
	if strings.HasPrefix(kind, events.TypeResponse) {
		c.stirred = time.Now()
	}
	if !gjson.ValidBytes(event) {
		c.unreadable("is not JSON", event)
		return
	}
	if kind == events.TypeError {
		if shown := c.failed(event); shown != nil {
			c.toClient(shown)
		}
		return
	}
	if events.LongID(event) {
		c.unreadable("has an id that is too long", event)
		return
	}
	all, made := c.dialect.read(kind, event)
	c.counts.made += made
	for _, e := range all {
		c.readModel(events.PeekType(e), e)
	}
	if c.mask.Full() {
		c.end(handoff.Fault(handoff.CodeVoiceGone, "", "it left too much open"))
	}
}

// readModel handles one event of the model as OpenAI's would send it.
func (c *Call) readModel(kind string, event []byte) {
	if c.attached != nil && kind == events.TypeSessionUpdated && !c.mask.Begun() {
		kind, event = c.joined(event)
	}
	if kind == events.TypeCreated {
		c.untagged(gjson.GetBytes(event, "response"))
	}
	shown, updates := c.mask.FromModel(kind, event)
	if kind == events.TypeSessionCreated || kind == events.TypeSessionUpdated && (len(shown) > 0 || c.mask.ForLeg()) {
		c.tellLeg(event)
	}
	for _, e := range shown {
		c.show(e)
	}
	if len(shown) == 0 {
		c.counts.swallowed++
	}
	for _, own := range updates {
		c.toModel(own)
	}
	if kind == events.TypeSessionCreated || kind == events.TypeSessionUpdated {
		c.watchAnswers()
	}
	c.observe(kind, event, len(shown) > 0)
	if c.attached != nil {
		c.overlook(kind, event)
	}
}

// unreadable drops an event of the model. The log tells of the first; the end of the call of how many there were.
func (c *Call) unreadable(why string, event []byte) {
	if c.counts.unreadable++; c.counts.unreadable == 1 {
		c.log.Warn("voice model sent an event that cannot be read", zap.String("detail", why), zap.Int("bytes", len(event)))
	}
}

// observe acts on what the model reports. shown reports whether the client saw it.
func (c *Call) observe(kind string, event []byte, shown bool) {
	switch kind {
	case events.TypeSessionCreated:
		c.learn(event)
		c.alarms[alarmOpening].at = time.Now().Add(openingLimit)
		c.ready()
		c.askedEarly()
	case events.TypeSessionUpdated:
		if on := c.mask.Transcribing(); on && !c.listens { // somebody pays for it
			c.listens = true
			c.log.Info("the caller's speech is transcribed for the router, beside what the client asked for", zap.String("model", mask.TranscriptionModel))
		}
		c.learn(event)
		c.ready()
		if shown && c.reachable() && c.mask.Configured() {
			c.tell(floor.Configured{})
		}
	case events.TypeCreated:
		c.began(gjson.GetBytes(event, "response"))
	case events.TypeDone:
		c.finished(gjson.GetBytes(event, "response"))
	case events.TypeOutputAdded:
		c.hint(events.ReadItem(gjson.GetBytes(event, "item")), gjson.GetBytes(event, "response_id").String())
	case events.TypeArguments:
		c.hintMore(event)
	case events.TypeOutputDone:
		it := events.ReadItem(gjson.GetBytes(event, "item"))
		if it.Kind == events.ItemMessage && it.Content {
			c.voice(responseOf(event), it.Written)
		}
		delete(c.hints, it.ID)
		c.requested(it, gjson.GetBytes(event, "response_id").String(), it.Status == events.StatusCompleted)
	case events.TypeItemAdded, events.TypeItemCreated, events.TypeItemDone:
		it := events.ReadItem(gjson.GetBytes(event, "item"))
		c.acknowledged(it.ID)
		if kind == events.TypeItemDone {
			c.requested(it, c.mask.Current(), it.Status == events.StatusCompleted)
		}
	case events.TypeTextDelta, events.TypeSpokenDelta:
		c.voice(responseOf(event), kind == events.TypeTextDelta)
	case events.TypeTranscribed:
		c.report(handoff.Heard{ // also where it was no word: then no more is to come of it
			Text:  strings.TrimSpace(gjson.GetBytes(event, "transcript").String()),
			Began: c.speeches.of(gjson.GetBytes(event, "item_id").String()),
		})
	case events.TypeCommitted:
		c.speeches.commit(gjson.GetBytes(event, "item_id").String())
		if c.floor.Speaking() { // the client committed in the middle of it: no stop will come
			c.tell(floor.Speech{On: false})
		}
	case events.TypeSpeechStarted:
		c.callerSpeaks(event)
	case events.TypeSpeechStopped:
		c.asked = time.Now()
		c.tell(floor.Speech{On: false})
	case events.TypeInputCleared:
		c.tell(floor.Hushed{})
	}
}

// learn reads how the session hears and speaks, as the model tells it.
func (c *Call) learn(event []byte) {
	session := gjson.GetBytes(event, "session")
	c.settings.learn(session)
	if c.inForce.learn(session); c.mask.Confirmed() { // also what the model does not repeat
		c.inForce = c.settings
	}
	c.tell(c.settings.listening())
}

// responseOf returns the response that an event names.
func responseOf(event []byte) string { return gjson.GetBytes(event, "response_id").String() }

// voice notes that a response, if it is the running one, reached the caller; written tells that they can read it.
func (c *Call) voice(id string, written bool) {
	if c.voiced && (c.wrote || !written) || c.lost[id] {
		return
	}
	if id == c.mask.Current() {
		c.wrote = c.wrote || written
		if !c.voiced {
			c.voiced = true
			c.tell(floor.Spoke{Response: id})
		}
	}
}

func (c *Call) began(r gjson.Result) {
	tag := events.TagOf(r)
	aside := mask.Aside(tag) || events.Outside(r)
	c.playback.begin(r.Get("id").String(), aside)
	if aside {
		return
	}
	if c.voiced, c.wrote = false, false; c.away() {
		c.lose(r.Get("id").String())
	}
	c.rate = c.settings.rate // a format is one response's
	if format := r.Get("audio.output.format"); format.IsObject() {
		c.rate = audioRate(format)
	}
	c.settled(tag)
	c.tell(floor.Created{Response: r.Get("id").String(), Tag: tag})
}

// untagged tells the mask which ask a response answers that does not say so.
func (c *Call) untagged(r gjson.Result) {
	if events.TagOf(r) == "" && !events.Outside(r) {
		c.mask.Answers(r.Get("id").String(), c.floor.Untagged())
	}
}

// settled forgets an ask that can no longer be refused.
func (c *Call) settled(tag string) {
	delete(c.asks, tag)
	for id, s := range c.sent {
		if s.kind != sentItem && s.what == tag {
			delete(c.sent, id)
		}
	}
}

func (c *Call) finished(r gjson.Result) {
	tag, id, status := events.TagOf(r), r.Get("id").String(), r.Get("status").String()
	now := time.Now()
	c.playback.complete(id)
	c.overhear(now, c.playback.drain(now)) // first: it may have been heard before it is done
	defer c.playback.done(id)
	if mask.Aside(tag) || events.Outside(r) {
		return
	}
	c.hints.end(id)
	c.keepWords(id, r)
	delete(c.muted, id)
	output, acted, chosen := id == c.mask.Current() && c.voiced, false, false
	wrote := id == c.mask.Current() && c.wrote
	for _, raw := range r.Get("output").Array() {
		it := events.ReadItem(raw)
		output, wrote, acted = output || it.Content, wrote || it.Written, acted || it.Kind != events.ItemMessage
		chosen = chosen || c.silent(it, mask.Asked(tag))
		// Servers that give items no status mean the response's.
		c.requested(it, id, it.Status == events.StatusCompleted || (it.Status == "" && status == events.StatusCompleted))
	}
	c.mixed(id, r)
	c.settled(tag)
	if ask := c.floor.AskOf(id); tag == "" && ask != "" { // not before: it may have been another's, and is refused then
		c.settled(ask)
		c.mask.Forget(ask)
	}
	status = cmp.Or(status, events.StatusCompleted) // so do servers that give none
	switch {
	case c.lost[id]:
		output, status = false, events.StatusCancelled
	case status == events.StatusCompleted && !output && chosen:
		output, c.unsaid = true, id
	case status == events.StatusCompleted && !output && !acted:
		status = events.StatusIncomplete // there is nothing in it
	case status == events.StatusCancelled, status == events.StatusIncomplete:
		output = wrote // what was to be spoken is heard or not, the playback knows
	}
	c.tell(floor.Ended{Response: id, Tag: tag, Status: status, Output: output})
	c.unsaid = ""
	delete(c.lost, id)
}

// silent reports whether an item ends a response without a word for good: the model chose to say nothing, or calls
// what is not ours, and asking once more might call it twice. For its own ask the client is the one who asks again.
func (c *Call) silent(it events.Item, client bool) bool {
	if it.Kind == events.ItemMessage || it.Kind == events.ItemReasoning {
		return false
	}
	if tool, ours := c.mask.Requested(it); ours {
		return tool.Silence
	}
	return !client
}

// mixed tells the floor of a response with requests of ours and calls of the client.
func (c *Call) mixed(response string, r gjson.Result) {
	ours, theirs := false, false
	var open []string
	for _, raw := range r.Get("output").Array() {
		it := events.ReadItem(raw)
		if it.Kind != events.ItemCall {
			continue
		}
		if _, own := c.mask.Requested(it); own {
			ours = true
			continue
		}
		theirs = true
		if !slices.Contains(c.outputs, it.CallID) && len(open) < maxOutputs {
			open = append(open, it.CallID)
		}
	}
	if ours && theirs {
		c.tell(floor.Mixed{Response: response, Calls: open})
	}
}

// requested hands a completed function call for one of our tools to the router, once.
func (c *Call) requested(it events.Item, response string, completed bool) {
	tool, ours := c.mask.Requested(it)
	if !ours || !completed || c.requests[it.CallID] != nil {
		return
	}
	c.requests[it.CallID] = &request{response: response}
	c.counts.requests++
	c.tell(floor.Called{Response: response, Call: it.CallID})
	c.report(handoff.FunctionCall{CallID: it.CallID, Tool: tool.Name, Arguments: it.Arguments, Asked: c.asked})
}

// failed handles an error of the model and returns what the client sees of it.
func (c *Call) failed(event []byte) []byte {
	fault := gjson.GetBytes(event, "error")
	id, code := fault.Get("event_id").String(), fault.Get("code").String()
	if code == events.CodeCommitEmpty {
		c.speeches.refuse()
	}
	if refusal, known := c.mask.Refused(id, event); known {
		c.watchAnswers()
		return c.updateRefused(refusal, fault)
	}
	if id == "" && code != events.CodeActive {
		id = c.nameless(fault)
	}
	s, known := c.sent[id]
	if !known {
		return c.stray(event, id, code)
	}
	delete(c.sent, id)
	if code == events.CodeActive && s.kind != sentItem {
		c.tell(floor.Refused{Ask: s.what})
		return nil
	}
	switch s.kind {
	case sentItem:
		c.swallow("item refused by the voice model", fault)
		c.itemRefused(s.what)
		return nil
	case sentAsk:
		c.swallow("response refused by the voice model", fault)
		c.tell(floor.Rejected{Ask: s.what})
		return nil
	}
	delete(c.asks, s.what)
	c.mask.Forget(s.what)
	c.tell(floor.Rejected{Ask: s.what})
	if s.adopted {
		return events.Set(event, "error.event_id", "null")
	}
	return event
}

// updateRefused handles the refusal of a session update and returns what the client sees of it.
func (c *Call) updateRefused(r mask.Refusal, fault gjson.Result) []byte {
	for _, own := range r.Again {
		c.toModel(own)
	}
	switch {
	case r.Tools:
		c.log.Warn("the voice model refused Switchboard's tools: nothing can be handed over in this call")
	case r.Words:
		c.log.Warn("the voice model does not transcribe the caller: permissions cannot be given by voice in this call")
	}
	if r.Shown == nil {
		c.swallow("session update refused by the voice model", fault)
		return nil
	}
	c.settings = c.inForce
	c.tell(c.settings.listening())
	switch {
	case r.Leg:
		c.toLeg(r.Shown)
		return nil
	case r.Opening:
		return c.openingRefused(r.Shown, fault)
	}
	return r.Shown
}

// stray handles an error whose event we do not know. The model that does not say which ask was refused
// can only mean the one on the wire.
func (c *Call) stray(event []byte, id, code string) []byte {
	if ask := c.floor.Asked(); code == events.CodeActive && id == "" && ask != "" {
		c.tell(floor.Refused{Ask: ask})
		return nil
	}
	if id == "" && !c.mask.Begun() {
		c.denies(gjson.GetBytes(event, "error"))
		return nil
	}
	if c.playback.told && events.OfLeg(id) { // nobody else made it
		c.toLeg(event)
		return nil
	}
	if c.ids.Own(id) {
		c.swallow("error of the voice model", gjson.GetBytes(event, "error"))
		return nil
	}
	return event
}

func (c *Call) swallow(message string, fault gjson.Result) {
	c.counts.swallowed++
	c.log.Warn(message, zap.String("code", fault.Get("code").String()), zap.String("param", fault.Get("param").String()))
}
