package mask

import (
	"slices"

	"github.com/tidwall/gjson"

	"switchboard/realtime/events"
)

// answered returns how many of the updates on the wire a session answers. That is the oldest, and those up to the
// newest whose effect shows and has no other cause: some models answer several at once.
func (s *session) answered(now gjson.Result) int {
	causes := []gjson.Result{gjson.Parse(s.known)}
	n := min(len(s.updates), 1)
	for i, u := range s.updates {
		asked := gjson.Parse(u.asked)
		if shown, own := shows(now, asked, causes); i > 0 && shown && own {
			n = i + 1
		}
		causes = append(causes, gjson.Parse(u.got))
	}
	return n
}

// remember keeps a session as the model told it, and of its tools the names.
func (s *session) remember(now gjson.Result) {
	s.known = now.Raw
	if now.Get("tools").IsArray() {
		s.known = string(events.Set([]byte(now.Raw), "tools", now.Get("tools.#.{name}").Raw))
	}
}

// shows reports whether a value has what was asked for, and whether a part of that is in none of its other causes. Of
// tools only the names count, as ours stand among them.
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

// holds reports whether a value is what was asked for, or a list that has all of it.
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

// Overdue gives up waiting for answers to session updates: some models give none, some late. It returns what the client
// asked for in them, which it is told now. A model that has answered before has them in force when it says so; one that
// never has, from now on.
func (s *session) Overdue() (asked []string) {
	for i := range s.updates {
		u := &s.updates[i]
		if u.by == byClient && !u.late {
			s.configured = true
			asked = append(asked, u.asked)
		}
		u.late = true
	}
	s.forget()
	return asked
}

// forget counts the oldest updates that nobody waits for as answered, where they are too many.
func (s *session) forget() {
	n, size := len(s.updates), 0
	for _, u := range s.updates {
		size += u.size
	}
	for n > maxUpdates || n > 1 && size > maxUpdateBytes {
		u := s.updates[0]
		s.settle(u)
		s.updates = s.updates[1:]
		n, size = n-1, size-u.size
	}
}
