package mask

import (
	"encoding/json"
	"strings"
	"unique"

	"github.com/tidwall/gjson"

	"switchboard/realtime/events"
)

// Renew takes the beginning of another session of the model, which takes the place of the one there was, and returns
// the updates that set it as that one was: one with all that is in force, and those that were not answered. Nothing of
// this beginning is for the client.
func (m *Mask) Renew(event []byte) (updates [][]byte) {
	s := &m.session
	var waiting []update
	for _, u := range s.updates {
		if u.late && !s.answers { // it was in force
			s.settle(u)
		} else if u.by != byHeir && gjson.Parse(u.got).IsObject() {
			waiting = append(waiting, u)
		}
	}
	s.updates, s.now = nil, s.base
	s.remember(gjson.GetBytes(event, "session"))
	if set := s.set.Value(); set != "" {
		updates = append(updates, s.inherit(m.ids.Next(), set))
	}
	for _, u := range waiting {
		s.now = u.change.apply(s.now)
		u.after = s.now
		s.updates = append(s.updates, u)
		updates = append(updates, sessionUpdate(u.id, u.got))
	}
	clear(m.renewed)
	return updates
}

// Again says that an item of the conversation is given to a new session: the client sees nothing of that.
func (m *Mask) Again(item string) { m.renewed[item] = true }

// NotAgain says that the new session refused such an item.
func (m *Mask) NotAgain(item string) { delete(m.renewed, item) }

// Deleted says that the client was told of the end of an item which the model does not have.
func (m *Mask) Deleted(item string) { m.items.remove(item) }

// settle notes that the model has an update in force.
func (s *session) settle(u update) {
	s.base = u.after
	if gjson.Parse(u.got).IsObject() {
		s.set = unique.Make(merge(gjson.Parse(s.set.Value()), gjson.Parse(u.got), ""))
	}
}

func (s *session) inherit(id, set string) []byte {
	s.push(update{id: id, by: byHeir, got: set})
	return sessionUpdate(id, set)
}

func sessionUpdate(id, session string) []byte {
	return events.Encode(events.Object{"type": events.TypeSessionUpdate, "event_id": id,
		"session": json.RawMessage(session)})
}

// withoutVoice is what a new session begins with that refused it all: the voice is what may be had no more.
func (s *session) withoutVoice(refused update, ids *events.Names) [][]byte {
	const voice = "audio.output.voice"
	if !gjson.Get(refused.got, voice).Exists() {
		return nil
	}
	s.set = unique.Make(string(events.Remove([]byte(refused.got), voice)))
	return [][]byte{s.inherit(ids.Next(), s.set.Value())}
}

// sameConversation names the conversation as the client knows it in an event of a response.
func (s *session) sameConversation(event []byte, response gjson.Result) []byte {
	id := response.Get("conversation_id")
	switch {
	case id.Type != gjson.String || id.String() == "":
	case s.first.conversation == "":
		s.first.conversation = id.String()
	case s.first.conversation != id.String():
		return events.Set(event, "response.conversation_id", events.Quote(s.first.conversation))
	}
	return event
}

// joined are the parts of a session whose fields an update leaves as they are where it does not name them. Any other
// field it sets whole.
var joined = map[string]bool{"audio": true, "audio.input": true, "audio.output": true}

// merge puts an update over what was set before. at is "" for sessions, and for a part of them its path and a dot.
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
