package realtime

import (
	"strings"

	"github.com/tidwall/gjson"
	"go.uber.org/zap"

	"switchboard/realtime/events"
	"switchboard/realtime/floor"
)

// refused handles the model's refusal of an item or an ask, and returns the event that the client sees, or nil.
func (s *saying) refused(x sentEvent, event []byte) []byte {
	fault := gjson.GetBytes(event, "error")
	if x.item == 0 && fault.Get("code").String() == events.CodeActive {
		s.tell(floor.Refused{Ask: x.subject})
		return nil
	}
	switch {
	case x.item > 0:
		s.swallow("item refused by the voice model", fault)
		u := s.utterances[x.subject]
		if u.CallID != "" && !u.reworded { // the model does not know the request any more
			u.reworded = true
			s.sendItem(u, s.naming+u.ID+"m")
			s.tell(floor.Missed{ID: x.subject})
			return nil
		}
		u.confirmed = true // never reported as said: the router keeps it
		s.log().Warn("utterance refused by the voice model", zap.String("utterance", x.subject))
		s.tell(floor.Withdrawn{ID: x.subject})
		return nil
	case floor.Ours(x.subject):
		s.swallow("response refused by the voice model", fault)
		s.tell(floor.Rejected{Ask: x.subject})
		return nil
	}
	delete(s.asks, x.subject)
	s.filter.Forget(x.subject)
	s.tell(floor.Rejected{Ask: x.subject})
	if x.ourID {
		return events.Set(event, "error.event_id", "null")
	}
	return event
}

// swallow logs an error of the model that the client does not see, and counts it.
func (k *core) swallow(message string, fault gjson.Result) {
	k.counts.swallowed++
	k.log().Warn(message, zap.String("code", fault.Get("code").String()),
		zap.String("param", fault.Get("param").String()))
}

// guessEvent returns the id of the event of ours that an error without an event id is about, or "". It goes by what the
// error says, and by whether an event of the client could be meant.
func (s *saying) guessEvent(fault gjson.Result) string {
	param, message := fault.Get("param").String(), fault.Get("message").String()
	says := func(field, kind string) bool {
		return param == field || strings.HasPrefix(param, field+".") || strings.Contains(message, kind)
	}
	item, newest := "", 0
	for id, x := range s.sent {
		switch {
		case x.item == 0:
			if x.subject == s.floor.Asked() && says("response", events.TypeCreate) {
				return id
			}
		case s.namesItem(x, message):
			return id
		case x.item > s.newestOfClient && (newest == 0 || x.item < newest):
			item, newest = id, x.item
		}
	}
	if says("item", events.TypeItemCreate) {
		return item
	}
	return ""
}

// namesItem reports whether an error's message names an item of ours.
func (s *saying) namesItem(x sentEvent, message string) bool {
	u := s.utterances[x.subject]
	return strings.Contains(message, s.naming+u.ID) || u.CallID != "" && strings.Contains(message, u.CallID)
}
