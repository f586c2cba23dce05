package realtime

import (
	"cmp"
	"strings"
	"time"

	"github.com/tidwall/gjson"
	"go.uber.org/zap"

	"switchboard/handoff"
)

// fromModel handles one event of the model: the client sees its part first, then we act on ours.
func (c *Call) fromModel(event []byte) {
	if handoff.TooDeep(event) { // first: parsers recurse
		c.unreadable("nests too deep", event)
		return
	}
	kind := peekType(event)
	if strings.HasPrefix(kind, typeResponse) {
		c.stirred = time.Now()
	}
	if kind == typeAudioDelta {
		if len(c.muted) > 0 && c.muted[string(peekField(event, "response_id"))] {
			return
		}
		c.toClient(event)
		c.hearAudio(event)
		return
	}
	if !gjson.ValidBytes(event) {
		c.unreadable("is not JSON", event)
		return
	}
	if kind == typeError {
		if shown := c.failed(event); shown != nil {
			c.toClient(shown)
		}
		return
	}
	if longID(event) {
		c.unreadable("has an id that is too long", event)
		return
	}
	shown := c.mask.fromModel(kind, event)
	if shown != nil {
		c.toClient(shown)
	} else {
		c.counts.swallowed++
	}
	c.observe(kind, event, shown != nil)
	if c.mask.full() {
		c.end(handoff.Fault(handoff.CodeVoiceGone, "", "it left too much open"))
	}
}

// unreadable drops an event of the model. The log tells of the first; the end of the call of how many there were.
func (c *Call) unreadable(why string, event []byte) {
	if c.counts.unreadable++; c.counts.unreadable == 1 {
		c.log.Warn("voice model sent an event that cannot be read", zap.String("detail", why), zap.Int("bytes", len(event)))
	}
}

// observe acts on what the model reports. shown tells whether the client saw it.
func (c *Call) observe(kind string, event []byte, shown bool) {
	switch kind {
	case typeSessionCreated:
		for _, own := range c.mask.session.begin(event, c.ids) {
			c.toModel(own)
		}
		c.tell(listening{c.mask.session.manual, c.mask.session.auto})
		c.tell(opened{})
	case typeSessionUpdated:
		c.tell(listening{c.mask.session.manual, c.mask.session.auto})
		if shown && len(c.mask.session.updates) == 0 {
			c.tell(configured{})
		}
	case typeCreated:
		c.began(gjson.GetBytes(event, "response"))
	case typeDone:
		c.finished(gjson.GetBytes(event, "response"))
	case typeOutputAdded:
		c.hint(readItem(gjson.GetBytes(event, "item")), gjson.GetBytes(event, "response_id").String())
	case typeArguments:
		c.hintMore(event)
	case typeOutputDone:
		it := readItem(gjson.GetBytes(event, "item"))
		if it.kind == itemMessage && it.content {
			c.voice(event, it.written)
		}
		delete(c.hints, it.id)
		c.requested(it, gjson.GetBytes(event, "response_id").String(), it.status == statusCompleted)
	case typeItemAdded, typeItemCreated, typeItemDone:
		it := readItem(gjson.GetBytes(event, "item"))
		c.acknowledged(it.id)
		if kind == typeItemDone {
			c.requested(it, c.mask.current, it.status == statusCompleted)
		}
	case typeTextDelta, typeSpokenDelta:
		c.voice(event, kind == typeTextDelta)
	case typeTranscribed:
		c.report(handoff.Heard{ // also where it was no word: then no more is to come of it
			Text:  strings.TrimSpace(gjson.GetBytes(event, "transcript").String()),
			Began: c.speeches.of(gjson.GetBytes(event, "item_id").String()),
		})
	case typeCommitted:
		c.speeches.commit(gjson.GetBytes(event, "item_id").String())
		if c.floor.speaking { // the client committed in the middle of it: no stop will come
			c.tell(speech{false})
		}
	case typeSpeechStarted:
		c.callerSpeaks(event)
	case typeSpeechStopped:
		c.asked = time.Now()
		c.tell(speech{false})
	case typeInputCleared:
		c.tell(hushed{})
	}
}

// voice notes that the running response reached the caller, written tells that they can read it.
func (c *Call) voice(event []byte, written bool) {
	if c.voiced && (c.wrote || !written) {
		return
	}
	if id := gjson.GetBytes(event, "response_id").String(); id == c.mask.current {
		c.wrote = c.wrote || written
		if !c.voiced {
			c.voiced = true
			c.tell(spoke{id})
		}
	}
}

func (c *Call) began(r gjson.Result) {
	tag := tagOf(r)
	c.ears.begin(r.Get("id").String(), tag == tagOut)
	if tag == tagOut {
		return
	}
	c.voiced, c.wrote = false, false
	c.rate = c.mask.session.rate // a format is one response's
	if format := r.Get("audio.output.format"); format.IsObject() {
		c.rate = audioRate(format)
	}
	c.settled(tag)
	c.tell(created{r.Get("id").String(), tag})
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
	tag, id, status := tagOf(r), r.Get("id").String(), r.Get("status").String()
	now := time.Now()
	c.ears.complete(id)
	c.overhear(now, c.ears.drain(now)) // first: it may have been heard before it is done
	defer c.ears.done(id)
	if tag == tagOut {
		return
	}
	c.hints.end(id)
	c.keepWords(id, r)
	delete(c.muted, id)
	output, acted, chosen := id == c.mask.current && c.voiced, false, false
	wrote := id == c.mask.current && c.wrote
	for _, raw := range r.Get("output").Array() {
		it := readItem(raw)
		output, wrote, acted = output || it.content, wrote || it.written, acted || it.kind != itemMessage
		chosen = chosen || c.silent(it, strings.HasPrefix(tag, askOfClient))
		// Servers that give items no status mean the response's.
		c.requested(it, id, it.status == statusCompleted || (it.status == "" && status == statusCompleted))
	}
	c.settled(tag)
	status = cmp.Or(status, statusCompleted) // so do servers that give none
	switch {
	case status == statusCompleted && !output && chosen:
		output, c.unsaid = true, id
	case status == statusCompleted && !output && !acted:
		status = statusIncomplete // there is nothing in it
	case status == statusCancelled, status == statusIncomplete:
		output = wrote // what was to be spoken is heard or not, the ears know
	}
	c.tell(ended{id, tag, status, output})
	c.unsaid = ""
}

// silent tells whether an item ends a response without a word for good: the model chose to say nothing, or calls
// what is not ours, and asking once more might call it twice. For its own ask the client is the one who asks again.
func (c *Call) silent(it item, client bool) bool {
	if it.kind == itemMessage || it.kind == itemReasoning {
		return false
	}
	if c.mask.items.calls[it.callID] {
		return c.mask.session.tool(it.name).Silence
	}
	return !client
}

// requested hands a completed function call for one of our tools to the router, once.
func (c *Call) requested(it item, response string, completed bool) {
	if it.kind != itemCall || !completed || it.callID == "" || !c.mask.items.calls[it.callID] || c.requests[it.callID] != nil {
		return
	}
	c.requests[it.callID] = &request{response: response}
	c.counts.requests++
	c.tell(called{response, it.callID})
	c.report(handoff.Request{CallID: it.callID, Tool: c.mask.session.tool(it.name).Name, Arguments: it.arguments, Asked: c.asked})
}

// failed handles an error of the model and returns what the client sees of it.
func (c *Call) failed(event []byte) []byte {
	fault := gjson.GetBytes(event, "error")
	id, code := fault.Get("event_id").String(), fault.Get("code").String()
	if code == codeCommitEmpty {
		c.speeches.refuse()
	}
	if u, again := c.mask.session.reject(id); u != nil {
		switch {
		case again != nil:
			c.toModel(again)
			fallthrough
		case u.ours:
			c.swallow("session update refused by the voice model", fault)
			return nil
		}
		return c.disown(event, id)
	}
	s, known := c.sent[id]
	if !known {
		return c.stray(event, id, code)
	}
	delete(c.sent, id)
	if code == codeActive && s.kind != sentItem {
		c.tell(refused{s.what})
		return nil
	}
	switch s.kind {
	case sentItem:
		c.swallow("item refused by the voice model", fault)
		c.itemRefused(s.what)
		return nil
	case sentAsk:
		c.swallow("response refused by the voice model", fault)
		c.tell(rejected{s.what})
		return nil
	}
	delete(c.asks, s.what)
	delete(c.mask.special, s.what)
	c.tell(rejected{s.what})
	if s.adopted {
		return set(event, "error.event_id", "null")
	}
	return event
}

// stray handles an error whose event we do not know. The model that does not say which ask was refused
// can only mean the one on the wire.
func (c *Call) stray(event []byte, id, code string) []byte {
	if a := c.floor.asked; code == codeActive && id == "" && a != nil {
		c.tell(refused{a.id})
		return nil
	}
	if c.ids.own(id) {
		c.swallow("error of the voice model", gjson.GetBytes(event, "error"))
		return nil
	}
	return event
}

func (c *Call) swallow(message string, fault gjson.Result) {
	c.counts.swallowed++
	c.log.Warn(message, zap.String("code", fault.Get("code").String()), zap.String("param", fault.Get("param").String()))
}

// disown takes our event id out of an error of the client's event.
func (c *Call) disown(event []byte, id string) []byte {
	if c.ids.own(id) {
		return set(event, "error.event_id", "null")
	}
	return event
}
