package realtime

import (
	"strings"

	"github.com/tidwall/gjson"
	"go.uber.org/zap"

	"switchboard/realtime/events"
	"switchboard/realtime/floor"
)

// refused handles the model's refusal of an item or an ask, and returns what the client sees of it.
func (s *saying) refused(x sent, event []byte) []byte {
	fault := gjson.GetBytes(event, "error")
	if x.item == 0 && fault.Get("code").String() == events.CodeActive {
		s.tell(floor.Refused{Ask: x.what})
		return nil
	}
	switch {
	case x.item > 0:
		s.swallow("item refused by the voice model", fault)
		u := s.utterances[x.what]
		if u.CallID != "" && !u.reworded { // its request is not known any more
			u.reworded = true
			s.sendItem(u, s.naming+u.ID+"m")
			s.tell(floor.Missed{ID: x.what})
			return nil
		}
		u.told = true // it is lost, and stays with the router
		s.log().Warn("utterance refused by the voice model", zap.String("utterance", x.what))
		s.tell(floor.Withdrawn{ID: x.what})
		return nil
	case floor.Ours(x.what):
		s.swallow("response refused by the voice model", fault)
		s.tell(floor.Rejected{Ask: x.what})
		return nil
	}
	delete(s.asks, x.what)
	s.mask.Forget(x.what)
	s.tell(floor.Rejected{Ask: x.what})
	if x.adopted {
		return events.Set(event, "error.event_id", "null")
	}
	return event
}

// swallow counts an error of the model that the client does not see, and logs it.
func (k *core) swallow(message string, fault gjson.Result) {
	k.counts.swallowed++
	k.log().Warn(message, zap.String("code", fault.Get("code").String()), zap.String("param", fault.Get("param").String()))
}

// nameless returns the id of the event of ours that an error is about which names none, or "": it says so, or nothing
// of the client's can be meant.
func (s *saying) nameless(fault gjson.Result) string {
	param, message := fault.Get("param").String(), fault.Get("message").String()
	says := func(field, kind string) bool {
		return param == field || strings.HasPrefix(param, field+".") || strings.Contains(message, kind)
	}
	item, newest := "", 0
	for id, x := range s.sent {
		switch {
		case x.item == 0:
			if x.what == s.floor.Asked() && says("response", events.TypeCreate) {
				return id
			}
		case s.named(x, message):
			return id
		case x.item > s.itemOf && (newest == 0 || x.item < newest):
			item, newest = id, x.item
		}
	}
	if says("item", events.TypeItemCreate) {
		return item
	}
	return ""
}

// named reports whether an error's words name an item of ours.
func (s *saying) named(x sent, message string) bool {
	u := s.utterances[x.what]
	return strings.Contains(message, s.naming+u.ID) || u.CallID != "" && strings.Contains(message, u.CallID)
}
