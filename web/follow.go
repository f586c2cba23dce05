package web

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"switchboard/handoff"
)

// maxShownItem bounds the text and the output of an item in a stream; longer ones are cut at the beginning.
const maxShownItem = 64 << 10

// work streams the events of one piece of work, from its beginning or after Last-Event-ID, to its outcome. If the log
// does not reach back far enough, it begins with a snapshot. A client that reconnects after the end gets 204, which
// keeps an EventSource from connecting again.
func (s *streams) work(w http.ResponseWriter, r *http.Request, g handoff.Grant) error {
	id := r.PathValue("id")
	record, err := s.router.Handoff(g, id)
	if err != nil {
		return err
	}
	if !s.enter(g) {
		return handoff.Fault(handoff.CodeOverloaded, "Switchboard", "too many event streams")
	}
	defer s.leave(g)
	after, _ := s.parse(r.Header.Get("Last-Event-ID")) // 0, the beginning, for an id of another process
	ctx, cancel := context.WithCancel(r.Context())
	var reading sync.WaitGroup
	defer reading.Wait()
	defer cancel()
	events := make(chan handoff.Event)
	reading.Go(func() {
		defer close(events)
		for e, err := range s.router.Follow(ctx, g, handoff.ID(id), after) {
			if err != nil {
				return
			}
			select {
			case events <- e:
			case <-ctx.Done():
				return
			}
		}
	})
	var first []handoff.Event
	if record.Outcome != "" {
		e, more := <-events
		if !more {
			w.WriteHeader(http.StatusNoContent)
			return nil
		}
		first = append(first, e)
	}
	out := s.openStream(w, "")
	write := func(e handoff.Event) bool {
		line := runLineOf(e)
		if line.Type == "question" {
			line.Question = cmp.Or(s.offered(g, line.Question.ID), line.Question)
		}
		return out.line(e.Seq, line)
	}
	pass(s, r, out, first, events, write)
	return nil
}

// pass writes the first events, then those of the channel, until it is closed, the client takes no more, the request
// ends or the server closes.
func pass[E any](s *streams, r *http.Request, out eventWriter, first []E, events <-chan E, write func(E) bool) {
	for _, e := range first {
		if !write(e) {
			return
		}
	}
	tick := time.NewTicker(s.times.beat)
	defer tick.Stop()
	for {
		select {
		case e, ok := <-events:
			if !ok || !write(e) {
				return
			}
		case <-tick.C:
			if !out.raw(": alive\n\n") {
				return
			}
		case <-r.Context().Done():
			return
		case <-s.closed:
			return
		}
	}
}

// A runLine is an event of a handoff as it is sent.
type runLine struct {
	Type     string                  `json:"type"`
	Record   *brief                  `json:"record,omitempty"` // its present state, without items
	Items    []json.RawMessage       `json:"items,omitempty"`  // of a snapshot: the items so far, within [maxItems]
	Item     *handoff.RecordItem     `json:"item,omitempty"`
	ItemID   string                  `json:"item_id,omitempty"`
	Delta    string                  `json:"delta,omitempty"`
	At       *int                    `json:"at,omitempty"` // bytes of the item before the delta
	Text     string                  `json:"text,omitempty"`
	Usage    *handoff.Usage          `json:"usage,omitempty"` // of the turn, so far
	Question *handoff.RecordQuestion `json:"question,omitempty"`
	Closed   handoff.QuestionID      `json:"closed,omitempty"`
	Into     handoff.ID              `json:"into,omitempty"` // the work that took the words
}

func runLineOf(e handoff.Event) runLine {
	var l runLine
	switch k := e.Kind.(type) { // frequent events return early, without the record
	case handoff.EventDelta:
		l = runLine{Type: "delta", ItemID: k.ItemID, Delta: k.Text}
		if k.At >= 0 {
			l.At = &k.At
		}
		return l
	case handoff.EventItem:
		return runLine{Type: "item", Item: shownItem(k.Item)}
	case handoff.EventDoing:
		return runLine{Type: "item_started", Item: &handoff.RecordItem{
			ID: k.ID, Kind: k.Item, Text: handoff.Tail(k.Text, maxShownItem), State: "running",
		}}
	case handoff.EventDropped:
		return runLine{Type: "dropped", ItemID: k.ItemID}
	case handoff.EventUsage:
		return runLine{Type: "usage", Usage: &k.Usage}
	case handoff.EventSnapshot:
		l = runLine{Type: "snapshot", Items: boundedItems(k.Items)}
		if k.Usage != (handoff.Usage{}) {
			l.Usage = &k.Usage
		}
	case handoff.EventRemark:
		l = runLine{Type: "remark", Text: k.Text}
	case handoff.EventAsked:
		l = runLine{Type: "question", Question: &k.Question.Shown}
	case handoff.EventGaveUp:
		l = runLine{Type: "given_up", Question: &k.Question}
	case handoff.EventAnswered:
		l = runLine{Type: "closed", Closed: k.Question}
	case handoff.EventSteered:
		l = runLine{Type: "steered", Into: k.Into}
	case handoff.EventPlaced:
		l.Type = "placed"
	case handoff.EventNoted:
		l.Type = "noted"
	case handoff.EventPromised:
		l.Type = "promised"
	case handoff.EventWaiting:
		l.Type = "waiting"
	case handoff.EventJoined:
		l.Type = "joined"
	case handoff.EventSilent:
		l.Type = "silent"
	case handoff.EventGoesOn:
		l.Type = "goes_on"
	case handoff.EventLost:
		l.Type = "lost"
	case handoff.EventTaken:
		l.Type = "taken"
	case handoff.EventEnded:
		l.Type = "ended"
	case handoff.EventYielded:
		l.Type = "yielded"
	default:
		l.Type = "other"
	}
	l.Record = new(briefOf(e.Record))
	return l
}

// shownItem returns a finished item as the page shows it.
func shownItem(it handoff.Item) *handoff.RecordItem {
	state := "done"
	if it.Failed || it.Exit != nil && *it.Exit != 0 {
		state = "failed"
	}
	return &handoff.RecordItem{
		ID: it.ID, Kind: it.Kind, Text: handoff.Tail(it.Text, maxShownItem),
		Output: handoff.Tail(it.Output, maxShownItem), Exit: it.Exit, State: state, By: it.By,
	}
}
