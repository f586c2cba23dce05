package filter

import (
	"slices"

	"github.com/tidwall/gjson"

	"switchboard/realtime/events"
)

// answered returns how many of the updates on the wire a session.updated answers: the oldest, and all up to the newest
// one whose effect shows in the session and has no other cause. Some models answer several at once.
func (s *session) answered(now gjson.Result) int {
	causes := []gjson.Result{gjson.Parse(s.reported)}
	n := min(len(s.updates), 1)
	for i, u := range s.updates {
		asked := gjson.Parse(u.requested)
		if shown, own := shows(now, asked, causes); i > 0 && shown && own {
			n = i + 1
		}
		causes = append(causes, gjson.Parse(u.sent))
	}
	return n
}

// remember keeps a session as the model reported it, with only the names of its tools.
func (s *session) remember(now gjson.Result) {
	s.reported = now.Raw
	if now.Get("tools").IsArray() {
		s.reported = string(events.Set([]byte(now.Raw), "tools", now.Get("tools.#.{name}").Raw))
	}
}

// shows reports whether a value has everything that was asked for (shown), and whether a part of it is in no other
// cause (own). Of tools only the names are compared, as ours are among them.
func shows(value, asked gjson.Result, causes []gjson.Result) (shown, own bool) {
	if !asked.IsObject() {
		has := func(v gjson.Result) bool { return holds(v, asked) }
		return has(value), asked.Raw != "[]" && !slices.ContainsFunc(causes, has)
	}
	shown = value.IsObject()
	asked.ForEach(func(key, part gjson.Result) bool {
		name := gjson.Escape(key.String())
		if name == "model" {
			return true
		}
		within := make([]gjson.Result, len(causes))
		for i, c := range causes {
			within[i] = c.Get(name)
		}
		partShown, partOwn := shows(value.Get(name), part, within)
		shown, own = shown && partShown, own || partOwn
		return shown
	})
	return shown, own
}

// holds reports whether a value equals what was asked for, or is a list that contains all of it.
func holds(value, asked gjson.Result) bool {
	if !asked.IsArray() {
		return value.Type == asked.Type && value.String() == asked.String()
	}
	for _, part := range asked.Array() {
		if !slices.ContainsFunc(value.Array(), func(has gjson.Result) bool {
			return has.Raw == part.Raw || part.IsObject() && part.Get("name").String() == has.Get("name").String()
		}) {
			return false
		}
	}
	return value.IsArray()
}

// Overdue ends the wait for answers to the session updates: some models give none, or late ones. It returns what the
// client asked for in them, for the caller to answer. If the model has answered updates before, these are in force when
// it answers them; otherwise from now on.
func (s *session) Overdue() (asked []string) {
	for i := range s.updates {
		u := &s.updates[i]
		if u.by == byClient && !u.overdue {
			s.configured = true
			asked = append(asked, u.requested)
		}
		u.overdue = true
	}
	s.forget()
	return asked
}

// forget treats the oldest updates as answered while there are too many.
func (s *session) forget() {
	n, size := len(s.updates), 0
	for _, u := range s.updates {
		size += u.size
	}
	for n > maxUpdates || n > 1 && size > maxUpdateBytes {
		u := s.updates[0]
		s.confirm(u)
		s.updates = s.updates[1:]
		n, size = n-1, size-u.size
	}
}
