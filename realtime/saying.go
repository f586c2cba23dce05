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
	"switchboard/realtime/filter"
	"switchboard/realtime/floor"
	"switchboard/realtime/recall"
)

const (
	// itemPrefix and the id of an utterance are the id of its item. Together they fit the 32 characters that the API
	// allows, also with the five more of an attached call.
	itemPrefix = "sb_"
	// maxAskBytes bounds the bytes of the client's asks that wait for their turn; floor.MaxHeld bounds their number. An
	// ask beyond it is refused with an error. One ask may always wait, however large.
	maxAskBytes = 16 << 20
	// maxOutputs bounds the function call outputs of the client that are remembered. Only those for the running
	// response are needed.
	maxOutputs = 64
)

// saying is what the model is made to say: our utterances, the client's asks, the floor that they share, and the
// requests (function calls) that utterances answer.
type saying struct {
	*core
	legs    *legs
	filter  *filter.Filter
	hearing *hearing // learns which utterances the caller was given
	recall  *recall.Recall

	floor          *floor.Floor
	says           []handoff.Utterance   // utterances of the router that wait for the model's session
	utterances     map[string]*utterance // by id
	naming         string                // prefix of our items' ids: itemPrefix, and in an attached call a random word
	earlyAsks      [][]byte              // the client's asks from before the model's session began
	asks           map[string]clientAsk  // the client's asks that the model has not accepted yet, by tag
	sent           map[string]sentEvent  // asks and items that the model may still refuse, by event id
	itemCount      int                   // items put into the conversation by us and by the client
	newestOfClient int                   // the number of the client's newest item
	outputs        []string              // ids of the function calls that the client answered last, oldest first
	requests       map[string]*request   // by call id
	hints          map[string]*hint      // requests that the model is still writing, by item id
	asking         asking                // what the caller's words asked for
	held           []heldRequest         // requests that wait for a transcript, oldest first
}

// An utterance is what the router wants said or known, and how far that is.
type utterance struct {
	handoff.Utterance
	deferred  bool      // sent together with its ask, so that no earlier response tells it
	acked     bool      // the model has the item
	silent    bool      // needs no response, or none any more
	confirmed bool      // given and reported as said, or refused by the model: no further report
	ackedAt   time.Time // when the model confirmed the item
	reworded  bool      // the model refused it as an output; it was sent again as a message
}

// A request is one function call of the model for a tool of ours.
type request struct {
	response string // the response that holds it
	answered bool
}

// A clientAsk is a response.create of the client.
type clientAsk struct {
	event    []byte // for the model
	metadata string // the client's own, raw JSON
	eventID  string // the client's, or one of ours
	ourID    bool   // eventID is one of ours, as the client gave none
	brings   bool   // it brings words of the caller as its input
	apart    bool   // it brings its own input
}

// A sentEvent is an ask or an item on the wire, which the model may still refuse by its event id.
type sentEvent struct {
	subject string // the tag of the ask, or the id of the utterance
	item    int    // the number of the item, from 1; 0: it is an ask
	ourID   bool   // the client gave no event id
}

// say gives an utterance to the model.
func (s *saying) say(u handoff.Utterance) {
	switch known := s.utterances[u.ID]; {
	case s.filter.TranscriptionOnly(): // a session without a voice
		return
	case known != nil:
		if u.Text == "" && u.CallID == "" {
			if known.deferred {
				known.Text = "" // it is not sent any more: frees the memory
			}
			s.tell(floor.Withdrawn{ID: u.ID})
		}
		return // delivered already
	case u.CallID == "" && u.Text == "": // a withdrawal of an utterance that was never said
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
		s.noteTick("answer", u.CallID)
		if u.Text == "" { // remain_silent: saying nothing is what the response had to say
			s.tell(floor.Spoke{Response: r.response, Silence: true})
		}
	}
	said := &utterance{Utterance: u, silent: u.Floor != handoff.FloorUnlessSpoke && u.Floor != handoff.FloorAsk}
	s.utterances[u.ID] = said
	s.filter.Hide(s.naming + u.ID) // before it is sent; the filter's bound of hidden items bounds the utterances, too
	if said.deferred = u.CallID == "" && !said.silent; !said.deferred {
		s.sendItem(said, s.naming+u.ID)
	}
	s.tell(floor.Uttered{ID: u.ID, Call: u.CallID, Need: u.Floor})
}

func (s *saying) sendItem(u *utterance, itemID string) {
	id := s.ids.Next()
	s.itemCount++
	s.sent[id] = sentEvent{subject: u.ID, item: s.itemCount}
	s.filter.Hide(itemID)
	if u.CallID != "" && !u.Plain {
		s.asking.agentSpoke()
	}
	event := events.Message(id, itemID, u.Text)
	if u.CallID != "" && !u.reworded {
		event = events.Output(id, itemID, u.CallID, u.Text)
	}
	s.sendAndRecall(events.TypeItemCreate, event)
}

// deliver sends the model the deferred utterances that it is about to be asked to tell.
func (s *saying) deliver(utterances []string) {
	for _, id := range utterances {
		if u := s.utterances[id]; u.deferred {
			u.deferred = false
			s.sendItem(u, s.naming+u.ID)
		}
	}
}

// sendAndRecall sends the model an event that it has to answer. If its session ends first, the next session gets the
// event again.
func (s *saying) sendAndRecall(kind string, event []byte) {
	if s.legs.canRenew {
		s.recall.Sent(kind, event)
	}
	s.legs.toModel(event)
}

// acknowledged notes that the model has an item, if it is one of ours.
func (s *saying) acknowledged(itemID string) {
	for id, x := range s.sent {
		if x.item == 0 {
			continue
		}
		u := s.utterances[x.subject]
		if itemID == s.naming+u.ID || itemID == s.naming+u.ID+"m" {
			delete(s.sent, id)
			u.acked, u.ackedAt = true, time.Now()
			u.Text = "" // frees the memory
			s.confirm(u)
			s.tell(floor.Taken{ID: u.ID})
			return
		}
	}
}

// confirm reports to the router, once, that a silent utterance is in the model's context.
func (s *saying) confirm(u *utterance) {
	if u.acked && u.silent && !u.confirmed {
		u.confirmed = true
		s.report(handoff.Said{ID: u.ID, At: u.ackedAt})
	}
}

// tell passes an event to the floor and carries out its effects.
func (s *saying) tell(e floor.Event) {
	for _, x := range s.floor.Step(e) {
		if x.Ask != "" && slices.Contains(x.Utterances, partingID) { // this ask carries the last sentence of the call
			s.parting.ask = x.Ask
		}
		switch x.Kind {
		case floor.EffectAsk:
			s.deliver(x.Utterances)
			s.noteAsk(x.Ask, x.Utterances)
			s.noteCause(x.Ask, s.asking.chain, x.Utterances)
			id := s.ids.Next()
			s.sent[id] = sentEvent{subject: x.Ask}
			s.counts.asks++
			s.legs.toModel(events.Ask(id, x.Ask, x.Mute || s.filter.Forced()))
		case floor.EffectForward:
			s.deliver(x.Utterances)
			s.noteAsk(x.Ask, x.Utterances)
			a := s.asks[x.Ask]
			s.noteCause(x.Ask, s.causeOf(a), x.Utterances)
			s.sent[a.eventID] = sentEvent{subject: x.Ask, ourID: a.ourID}
			s.legs.toModel(a.event)
		case floor.EffectGiven:
			for _, id := range x.Utterances {
				if u := s.utterances[id]; !u.confirmed {
					u.confirmed = true
					s.hearing.noteGiven(handoff.Said{ID: id, Cut: x.Cut}, x.Response, x.Cut && len(x.Utterances) > 1)
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
			s.filter.Forget(x.Ask)
			s.endUnasked(metadata)
		case floor.EffectQuiet:
			s.report(handoff.Quiet{On: x.On, Invited: x.Invited})
		}
	}
}

// clientAsks queues the client's response.create. One that comes before the model's session exists waits for the
// session: without it, the response could not use our tools.
func (s *saying) clientAsks(event []byte) {
	id := gjson.GetBytes(event, "event_id").String()
	if !s.filter.Begun() {
		if !s.tooManyAsks(len(s.earlyAsks) >= floor.MaxHeld, len(event), id) {
			s.earlyAsks = append(s.earlyAsks, event)
		}
		return
	}
	patched, tag := s.filter.Ask(event)
	if filter.Aside(tag) {
		s.sendAndRecall(events.TypeCreate, patched)
		return
	}
	if s.tooManyAsks(s.floor.Full(), len(patched), id) {
		return
	}
	a := clientAsk{event: patched, metadata: gjson.GetBytes(event, "response.metadata").Raw, eventID: id}
	if id == "" {
		a.eventID, a.ourID = s.ids.Next(), true
		a.event = events.Set(patched, "event_id", events.Quote(a.eventID))
	}
	input := gjson.GetBytes(event, "response.input")
	a.apart = input.IsArray()
	ofCaller := func(item gjson.Result) bool { return events.ReadItem(item).OfCaller() }
	a.brings = slices.ContainsFunc(input.Array(), ofCaller)
	s.asks[tag] = a
	s.tell(floor.ClientAsked{Ask: tag, Apart: a.apart,
		Instructed: gjson.GetBytes(event, "response.instructions").String() != ""})
}

// causeOf returns what an ask of the client is for.
func (s *saying) causeOf(a clientAsk) *sentence {
	switch {
	case a.brings:
		return &sentence{ended: time.Now(), state: wordsSaid}
	case a.apart:
		return nil
	}
	return s.asking.take()
}

// tooManyAsks refuses an ask of this size if too many asks or bytes wait, and reports whether it did. full: their
// number is at its bound.
func (s *saying) tooManyAsks(full bool, size int, id string) bool {
	for _, a := range s.asks {
		size += len(a.event)
	}
	for _, event := range s.earlyAsks {
		size += len(event)
	}
	if full = full || len(s.asks)+len(s.earlyAsks) > 0 && size > maxAskBytes; full {
		s.counts.refused++
		s.legs.refuse(events.Fault{
			Code: "rate_limit_exceeded", Message: "Too many responses are waiting.", EventID: id,
		})
	}
	return full
}

// askedEarly queues the asks that the client sent before the model's session existed.
func (s *saying) askedEarly() {
	early := s.earlyAsks
	s.earlyAsks = nil
	for _, event := range early {
		s.clientAsks(event)
	}
}

// clientCancels takes back the client's asks that have not been sent to the model.
func (s *saying) clientCancels() {
	early := s.earlyAsks
	s.earlyAsks = nil
	for _, event := range early {
		s.endUnasked(gjson.GetBytes(event, "response.metadata").Raw)
	}
	s.tell(floor.Cancelled{})
}

// endUnasked shows the client a cancelled response for an ask with this metadata, which it cancelled before the ask was
// sent. The model would have shown it the same.
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

// noteClientItem notes an item that the client put into the conversation.
func (s *saying) noteClientItem(it events.Item) {
	s.itemCount++
	s.newestOfClient = s.itemCount
	if it.OfCaller() {
		s.tell(floor.Wrote{})
	}
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
	if s.tickLog != nil {
		s.tickLog.responses[response] = s.tickLog.asks[tag]
	}
	speaking := s.floor.Speaking()
	s.tell(floor.Created{Response: response, Tag: tag})
	ask := s.floor.AskOf(response)
	if speaking && ask == "" { // the model did not report that the caller had stopped
		s.hearing.sentenceOver(s.hearing.speakingItem)
	}
	s.asking.began(response, ask)
}

// accepted forgets an ask that the model has accepted, and can no longer refuse.
func (s *saying) accepted(tag string) {
	delete(s.asks, tag)
	for id, x := range s.sent {
		if x.item == 0 && x.subject == tag {
			delete(s.sent, id)
		}
	}
}

// ended handles the end of a response of the conversation: it hands the requests in it to the router and forgets the
// ask that it answers. acted reports whether it holds anything but messages, silent whether the model chose to say
// nothing.
func (s *saying) ended(r gjson.Result, tag, status string) (acted, silent bool) {
	id := r.Get("id").String()
	maps.DeleteFunc(s.hints, func(_ string, h *hint) bool { return h.response == id })
	ours, theirs := s.floor.Tells(id), false
	var open []string // function calls of the client without an output
	for _, raw := range r.Get("output").Array() {
		it := events.ReadItem(raw)
		acted = acted || it.Kind != events.ItemMessage
		// An item without a status counts as having that of the response.
		s.requested(it, id, cmp.Or(it.Status, status) == events.StatusCompleted)
		tool, own := s.filter.Requested(it)
		switch {
		case own:
			ours, silent = true, silent || tool.Silence
		case it.Kind == events.ItemMessage, it.Kind == events.ItemReasoning:
		default: // a call of a tool of the client, or of one that the provider runs itself
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
	if ask := s.floor.AskOf(id); tag == "" && ask != "" { // while it ran, it could still turn out to answer another ask
		s.accepted(ask)
		s.filter.Forget(ask)
	}
	return acted, silent
}

// requested hands a completed function call for one of our tools to the router, once.
func (s *saying) requested(it events.Item, response string, completed bool) {
	tool, ours := s.filter.Requested(it)
	if !ours || !completed || s.requests[it.CallID] != nil {
		return
	}
	s.requests[it.CallID] = &request{response: response}
	s.counts.requests++
	s.noteTick("request", it.CallID)
	s.tell(floor.Called{Response: response, Call: it.CallID})
	call := handoff.FunctionCall{CallID: it.CallID, Tool: tool.Name, Arguments: it.Arguments}
	s.hand(call, tool.ReadOnly, find(s.asking.responses, response))
}

// hint begins to follow a request that the model is still writing, if its tool wants hints.
func (s *saying) hint(it events.Item, response string) {
	tool, ours := s.filter.Requested(it)
	if !ours || !tool.Early || s.requests[it.CallID] != nil {
		return
	}
	s.hints[it.ID] = &hint{response: response, call: it.CallID, tool: tool.Name}
	s.hintMore(it.ID, it.Arguments)
}

// hintMore adds a piece of a request's arguments, and reports a hint when one is due.
func (s *saying) hintMore(item, piece string) {
	if h := s.hints[item]; h != nil && piece != "" && h.add(piece) {
		s.report(handoff.Hint{CallID: h.call, Tool: h.tool, Partial: string(h.text)})
	}
}
