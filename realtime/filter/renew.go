package filter

import (
	"encoding/json"
	"strings"
	"unique"

	"github.com/tidwall/gjson"

	"switchboard/realtime/events"
)

// Renew handles the session.created of another session of the model, which replaces the one before. It returns the
// updates that set it in the same way: one with everything in force, and those that were not answered. The client sees
// nothing of this.
func (m *Filter) Renew(event []byte) (updates [][]byte) {
	s := &m.session
	var waiting []update
	for _, u := range s.updates {
		if u.overdue && !s.answersUpdates { // taken to be in force
			s.confirm(u)
		} else if u.by != byRenewal && gjson.Parse(u.sent).IsObject() {
			waiting = append(waiting, u)
		}
	}
	s.updates, s.now = nil, s.base
	s.remember(gjson.GetBytes(event, "session"))
	if set := s.merged.Value(); set != "" {
		updates = append(updates, s.renewalUpdate(m.ids.Next(), set))
	}
	for _, u := range waiting {
		s.now = u.change.apply(s.now)
		u.after = s.now
		s.updates = append(s.updates, u)
		updates = append(updates, sessionUpdate(u.id, u.sent))
	}
	clear(m.resentItems)
	return updates
}

// Resent notes that an item of the conversation is sent again to a new session. The client does not see its events.
func (m *Filter) Resent(item string) { m.resentItems[item] = true }

// ResentRefused notes that the new session refused such an item.
func (m *Filter) ResentRefused(item string) { delete(m.resentItems, item) }

// Deleted notes that the client was told of the deletion of an item which the model does not have.
func (m *Filter) Deleted(item string) { m.items.remove(item) }

// confirm notes that an update is in force.
func (s *session) confirm(u update) {
	s.base = u.after
	if gjson.Parse(u.sent).IsObject() {
		s.merged = unique.Make(merge(gjson.Parse(s.merged.Value()), gjson.Parse(u.sent), ""))
	}
}

func (s *session) renewalUpdate(id, set string) []byte {
	s.push(update{id: id, by: byRenewal, sent: set})
	return sessionUpdate(id, set)
}

func sessionUpdate(id, session string) []byte {
	return events.Encode(events.Object{"type": events.TypeSessionUpdate, "event_id": id,
		"session": json.RawMessage(session)})
}

// withoutVoice returns the first update of a new session again, without the voice, after the session refused it: the
// old voice may not be available any more. Nil: there was none in it.
func (s *session) withoutVoice(refused update, ids *events.Names) [][]byte {
	const voice = "audio.output.voice"
	if !gjson.Get(refused.sent, voice).Exists() {
		return nil
	}
	s.merged = unique.Make(string(events.Remove([]byte(refused.sent), voice)))
	return [][]byte{s.renewalUpdate(ids.Next(), s.merged.Value())}
}

// sameConversation sets the conversation id in an event of a response to the one that the client knows.
func (s *session) sameConversation(event []byte, response gjson.Result) []byte {
	id := response.Get("conversation_id")
	switch {
	case id.Type != gjson.String || id.String() == "":
	case s.shownIDs.conversation == "":
		s.shownIDs.conversation = id.String()
	case s.shownIDs.conversation != id.String():
		return events.Set(event, "response.conversation_id", events.Quote(s.shownIDs.conversation))
	}
	return event
}

// joined are the objects of a session that an update merges field by field. It replaces every other field as a whole.
var joined = map[string]bool{"audio": true, "audio.input": true, "audio.output": true}

// merge merges an update into what was set before. at is "" for a session, and for an object in it the path and a dot.
func merge(set, update gjson.Result, at string) string {
	var keys []string
	fields := map[string]gjson.Result{}
	put := func(name, value gjson.Result) bool {
		key := name.String()
		before, known := fields[key]
		if !known {
			keys = append(keys, key)
		}
		if path := at + gjson.Escape(key); joined[path] && value.IsObject() && before.IsObject() {
			value = gjson.Parse(merge(before, value, path+"."))
		}
		fields[key] = value
		return true
	}
	set.ForEach(put)
	update.ForEach(put)
	var out strings.Builder
	out.WriteByte('{')
	for i, key := range keys {
		if i > 0 {
			out.WriteByte(',')
		}
		out.WriteString(events.Quote(key) + ":")
		out.WriteString(fields[key].Raw)
	}
	out.WriteByte('}')
	return out.String()
}
