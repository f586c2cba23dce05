package realtime

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
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
	// itemPrefix makes an item's id of an utterance's; together they fit the 32 characters that the API allows,
	// also with the five more of an attached call.
	itemPrefix = "sb_"
	// maxAskBytes bounds the client's asks that wait for their turn, beside their number. What is beyond it is
	// refused: the client is told so. One ask may always wait.
	maxAskBytes = 16 << 20
	// maxOutputs bounds the client's outputs that are remembered: those to a response that runs.
	maxOutputs = 64
)

// saying is what the model is made to say: our utterances, the client's asks, the floor that they share, and the
// requests that they answer.
type saying struct {
	*core
	legs    *legs
	mask    *mask.Mask
	hearing *hearing // is told what the caller was given
	recall  *recall.Recall

	floor      *floor.Floor
	says       []handoff.Utterance   // of the router, until the model's session has begun
	utterances map[string]*utterance // by id
	naming     string                // begins the ids of our items: itemPrefix, and a word in an attached call
	early      [][]byte              // response.create of the client that came before the model's session existed
	asks       map[string]clientAsk  // of the client, not yet on the wire or refused, by tag
	sent       map[string]sent       // our and adopted event ids that may still fail
	items      int                   // that were put into the conversation from this side
	itemOf     int                   // the client's newest of them
	outputs    []string              // call ids that the client answered last, oldest first
	requests   map[string]*request   // by call id
	hints      map[string]*hint      // requests that the model is writing, by item id
}

// An utterance is what the router said, until it is confirmed.
type utterance struct {
	handoff.Utterance
	waits    bool      // the model gets it with the ask for it: a response before that must not tell it
	acked    bool      // the model has the item
	silent   bool      // no response is needed (any more)
	told     bool      // confirmed
	at       time.Time // when the model had the item
	reworded bool      // refused as an answer and sent again as a message
}

// A request is one function call of the model for a tool of ours.
type request struct {
	response string // that holds it
	answered bool
}

// A clientAsk is a response.create of the client.
type clientAsk struct {
	event    []byte // for the model
	metadata string // of the client, raw
	eventID  string // ours if the client gave none
	adopted  bool   // the client gave none
}

// What may still fail under an event id of ours, or one that we gave to a client's event.
type sent struct {
	what    string // the ask's tag or the utterance's id
	item    int    // which of the items from this side it was, from 1; 0: it was an ask
	adopted bool   // the client gave no event id
}

// say gives an utterance to the model.
func (s *saying) say(u handoff.Utterance) {
	switch known := s.utterances[u.ID]; {
	case s.mask.Foreign(): // nobody here speaks
		return
	case known != nil:
		if u.Text == "" && u.CallID == "" {
			if known.waits {
				known.Text = "" // it is not sent any more, and the call may be long
			}
			s.tell(floor.Withdrawn{ID: u.ID})
		}
		return // delivered already
	case u.CallID == "" && u.Text == "": // there is nothing to take back
		return
	}
	if u.CallID != "" {
		r := s.requests[u.CallID]
		if r == nil || r.answered {
			s.counts.unanswerable++
			s.log().Warn("answer without an open request", zap.String("utterance", u.ID))
			return
		}
		r.answered = true
		s.noted("answer", u.CallID)
		if u.Text == "" { // the model chose to say nothing: that is what its response said
			s.tell(floor.Spoke{Response: r.response, Silence: true})
		}
	}
	said := &utterance{Utterance: u, silent: u.Floor != handoff.FloorUnlessSpoke && u.Floor != handoff.FloorAsk}
	s.utterances[u.ID] = said
	s.mask.Hide(s.naming + u.ID) // before it is sent: what the mask can hide bounds how many there are
	if said.waits = u.CallID == "" && !said.silent; !said.waits {
		s.sendItem(said, s.naming+u.ID)
	}
	s.tell(floor.Uttered{ID: u.ID, Call: u.CallID, Need: u.Floor})
}

func (s *saying) sendItem(u *utterance, itemID string) {
	id := s.ids.Next()
	s.items++
	s.sent[id] = sent{what: u.ID, item: s.items}
	s.mask.Hide(itemID)
	event := events.Message(id, itemID, u.Text)
	if u.CallID != "" && !u.reworded {
		event = events.Output(id, itemID, u.CallID, u.Text)
	}
	s.asksModel(events.TypeItemCreate, event)
}

// lostAsks forgets what was asked of a session that is gone: the floor asks again, and recall sends the items.
func (s *saying) lostAsks() {
	maps.DeleteFunc(s.sent, func(_ string, x sent) bool { return x.item == 0 })
}

// deliver gives the model what it is about to be asked for.
func (s *saying) deliver(utterances []string) {
	for _, id := range utterances {
		if u := s.utterances[id]; u.waits {
			u.waits = false
			s.sendItem(u, s.naming+u.ID)
		}
	}
}

// asksModel sends the model an event that it answers, in this session or another.
func (s *saying) asksModel(kind string, event []byte) {
	if s.legs.heirs {
		s.recall.Asked(kind, event)
	}
	s.legs.toModel(event)
}

// acknowledged notes that the model has an item of ours.
func (s *saying) acknowledged(itemID string) {
	for id, x := range s.sent {
		if x.item == 0 {
			continue
		}
		u := s.utterances[x.what]
		if itemID == s.naming+u.ID || itemID == s.naming+u.ID+"m" {
			delete(s.sent, id)
			u.acked, u.at = true, time.Now()
			u.Text = "" // the call may be long
			s.confirm(u)
			s.tell(floor.Taken{ID: u.ID})
			return
		}
	}
}

// confirm tells the router once that a silent utterance is in the context.
func (s *saying) confirm(u *utterance) {
	if u.acked && u.silent && !u.told {
		u.told = true
		s.report(handoff.Said{ID: u.ID, At: u.at})
	}
}

// tell gives the floor an event and does what it decides.
func (s *saying) tell(e floor.Event) {
	for _, x := range s.floor.Step(e) {
		if x.Ask != "" && slices.Contains(x.Utterances, partingID) { // this ask carries the last sentence of the call
			s.parting.ask = x.Ask
		}
		switch x.Kind {
		case floor.EffectAsk:
			s.deliver(x.Utterances)
			s.asksFor(x.Ask, x.Utterances)
			id := s.ids.Next()
			s.sent[id] = sent{what: x.Ask}
			s.counts.asks++
			s.legs.toModel(events.Ask(id, x.Ask, x.Mute || s.mask.Forced()))
		case floor.EffectForward:
			s.deliver(x.Utterances)
			s.asksFor(x.Ask, x.Utterances)
			a := s.asks[x.Ask]
			s.sent[a.eventID] = sent{what: x.Ask, adopted: a.adopted}
			s.legs.toModel(a.event)
		case floor.EffectGiven:
			for _, id := range x.Utterances {
				if u := s.utterances[id]; !u.told {
					u.told = true
					s.hearing.given(handoff.Said{ID: id, Cut: x.Cut}, x.Response, x.Cut && len(x.Utterances) > 1)
				}
			}
		case floor.EffectSilent:
			for _, id := range x.Utterances {
				s.utterances[id].silent = true
				s.confirm(s.utterances[id])
			}
		case floor.EffectLost:
			s.log().Warn("the voice model did not say it", zap.Int("utterances", len(x.Utterances)))
		case floor.EffectTimer:
			s.alarms[x.Timer] = alarm{at: time.Now().Add(floor.Delay[x.Timer]), gen: x.Gen}
		case floor.EffectCancel:
			s.hearing.mute(x.Response)
			s.legs.toModel(events.Cancel(s.ids.Next(), x.Response))
		case floor.EffectTakenBack:
			metadata := s.asks[x.Ask].metadata
			delete(s.asks, x.Ask)
			s.mask.Forget(x.Ask)
			s.endUnasked(metadata)
		case floor.EffectQuiet:
			s.report(handoff.Quiet{On: x.On, Invited: x.Invited})
		}
	}
}

// clientAsks queues the client's response.create. One that comes before the model's session exists waits for that:
// its response could use none of our tools.
func (s *saying) clientAsks(event []byte) {
	id := gjson.GetBytes(event, "event_id").String()
	if !s.mask.Begun() {
		if !s.tooManyAsks(len(s.early) >= floor.MaxHeld, len(event), id) {
			s.early = append(s.early, event)
		}
		return
	}
	patched, tag := s.mask.Ask(event)
	if mask.Aside(tag) {
		s.asksModel(events.TypeCreate, patched)
		return
	}
	if s.tooManyAsks(s.floor.Full(), len(patched), id) {
		return
	}
	a := clientAsk{event: patched, metadata: gjson.GetBytes(event, "response.metadata").Raw, eventID: id}
	if id == "" {
		a.eventID, a.adopted = s.ids.Next(), true
		a.event = events.Set(patched, "event_id", events.Quote(a.eventID))
	}
	s.asks[tag] = a
	s.tell(floor.ClientAsked{Ask: tag, Apart: gjson.GetBytes(event, "response.input").IsArray(),
		Instructed: gjson.GetBytes(event, "response.instructions").String() != ""})
}

// tooManyAsks refuses an ask of so many bytes where too much waits, and reports whether it did.
func (s *saying) tooManyAsks(full bool, size int, id string) bool {
	for _, a := range s.asks {
		size += len(a.event)
	}
	for _, event := range s.early {
		size += len(event)
	}
	if full = full || len(s.asks)+len(s.early) > 0 && size > maxAskBytes; full {
		s.counts.refused++
		s.legs.refuse(events.Fault{Code: "rate_limit_exceeded", Message: "Too many responses are waiting.", EventID: id})
	}
	return full
}

// askedEarly queues what the client asked for before the model's session existed.
func (s *saying) askedEarly() {
	early := s.early
	s.early = nil
	for _, event := range early {
		s.clientAsks(event)
	}
}

// cancels takes back what the client asked for that waits here.
func (s *saying) cancels() {
	early := s.early
	s.early = nil
	for _, event := range early {
		s.endUnasked(gjson.GetBytes(event, "response.metadata").Raw)
	}
	s.tell(floor.Cancelled{})
}

// endUnasked shows the client that an ask with this metadata, which it cancelled while it waited here, became a
// response that began and ended, as it would have at the model.
func (s *saying) endUnasked(metadata string) {
	response := events.Object{
		"object": "realtime.response", "id": "resp_" + s.ids.Next(), "status": "in_progress", "status_details": nil,
		"output": []string{}, "usage": nil, "metadata": json.RawMessage(cmp.Or(metadata, "null")),
	}
	tell := func(kind string) {
		s.legs.toClient(events.Encode(events.Object{"type": kind, "event_id": s.ids.Next(), "response": response}))
	}
	tell(events.TypeCreated)
	response["status"] = events.StatusCancelled
	response["status_details"] = events.Object{"type": events.StatusCancelled, "reason": "client_cancelled"}
	tell(events.TypeDone)
}

// given notes an item that the client put into the conversation.
func (s *saying) given(it events.Item) {
	s.items++
	s.itemOf = s.items
	if it.Kind != events.ItemOutput || len(it.CallID) > events.MaxID {
		return
	}
	if s.outputs = append(s.outputs, it.CallID); len(s.outputs) > maxOutputs {
		s.outputs = slices.Delete(s.outputs, 0, 1)
	}
	s.tell(floor.Output{Call: it.CallID})
}

// began follows the beginning of a response in the conversation.
func (s *saying) began(response, tag string) {
	s.accepted(tag)
	if s.ticked != nil {
		s.ticked.responses[response] = s.ticked.asks[tag]
	}
	s.tell(floor.Created{Response: response, Tag: tag})
}

// accepted forgets an ask that can no longer be refused.
func (s *saying) accepted(tag string) {
	delete(s.asks, tag)
	for id, x := range s.sent {
		if x.item == 0 && x.what == tag {
			delete(s.sent, id)
		}
	}
}

// ended forgets what a response of the conversation answered, hands its requests to the router, and reports whether it
// holds anything but a message, and whether the model chose to say nothing.
func (s *saying) ended(r gjson.Result, tag, status string, asked time.Time) (acted, silent bool) {
	id := r.Get("id").String()
	maps.DeleteFunc(s.hints, func(_ string, h *hint) bool { return h.response == id })
	ours, theirs := s.floor.Tells(id), false
	var open []string // calls of the client without an output
	for _, raw := range r.Get("output").Array() {
		it := events.ReadItem(raw)
		acted = acted || it.Kind != events.ItemMessage
		// Servers that give items no status mean the response's.
		s.requested(it, id, cmp.Or(it.Status, status) == events.StatusCompleted, asked)
		tool, own := s.mask.Requested(it)
		switch {
		case own:
			ours, silent = true, silent || tool.Silence
		case it.Kind == events.ItemMessage, it.Kind == events.ItemReasoning:
		default: // a call of the client, or of what the provider runs itself
			theirs = true
			if it.Kind == events.ItemCall && !slices.Contains(s.outputs, it.CallID) && len(open) < maxOutputs {
				open = append(open, it.CallID)
			}
		}
	}
	if ours && theirs {
		s.tell(floor.Mixed{Response: id, Calls: open})
	}
	s.accepted(tag)
	if ask := s.floor.AskOf(id); tag == "" && ask != "" { // not before: it may have been another's, and is refused then
		s.accepted(ask)
		s.mask.Forget(ask)
	}
	return acted, silent
}

// requested hands a completed function call for one of our tools to the router, once. asked is when the caller's
// newest sentence was over.
func (s *saying) requested(it events.Item, response string, completed bool, asked time.Time) {
	tool, ours := s.mask.Requested(it)
	if !ours || !completed || s.requests[it.CallID] != nil {
		return
	}
	s.requests[it.CallID] = &request{response: response}
	s.counts.requests++
	s.noted("request", it.CallID)
	s.tell(floor.Called{Response: response, Call: it.CallID})
	s.report(handoff.FunctionCall{CallID: it.CallID, Tool: tool.Name, Arguments: it.Arguments, Asked: asked})
}

// hint begins to follow a request that the model writes.
func (s *saying) hint(it events.Item, response string) {
	tool, ours := s.mask.Requested(it)
	if !ours || !tool.Early || s.requests[it.CallID] != nil {
		return
	}
	s.hints[it.ID] = &hint{response: response, call: it.CallID, tool: tool.Name}
	s.hintMore(it.ID, it.Arguments)
}

// hintMore takes a piece of a request's arguments.
func (s *saying) hintMore(item, piece string) {
	if h := s.hints[item]; h != nil && piece != "" && h.add(piece) {
		s.report(handoff.Hint{CallID: h.call, Tool: h.tool, Partial: string(h.text)})
	}
}
