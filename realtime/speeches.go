package realtime

import (
	"maps"
	"slices"
	"time"

	"github.com/tidwall/gjson"

	"switchboard/realtime/events"
)

const (
	// prefixPadding is how much sound before the speech a model counts as part of it, unless the session says otherwise
	// (API reference, turn_detection.prefix_padding_ms).
	prefixPadding = 300 * time.Millisecond
	// maxLag is how late a model may report that the caller began to speak. A report that would be later is not
	// believed.
	maxLag = 2 * time.Second
)

// A clock converts the model's count of the caller's sound, in milliseconds since the session began, into the time when
// that sound came. It is pure.
type clock struct {
	heard       time.Duration // length of all sound so far
	at          time.Time     // when the newest of it came
	resentSince time.Time     // when the oldest sound came that this session was sent again; zero: none
}

// add counts sound that came now.
func (c *clock) add(now time.Time, bytes, rate int) {
	c.heard += time.Duration(bytes) * time.Millisecond / time.Duration(rate)
	c.at = now
}

// began returns when the speech began that the model reports now, some hundred milliseconds late. start is the model's
// count. If that makes no sense, the result is now.
func (c *clock) began(now time.Time, start gjson.Result, padding time.Duration) time.Time {
	earliest := now.Add(-maxLag)
	if again := c.resentSince; !again.IsZero() { // the speech may be in that sound: better too early than too late
		if c.resentSince = (time.Time{}); again.Before(earliest) {
			earliest = again
		}
		if !start.Exists() {
			return earliest
		}
	}
	if !start.Exists() || c.at.IsZero() {
		return now
	}
	began := c.at.Add(time.Duration(start.Int())*time.Millisecond + padding - c.heard)
	if began.After(now) || began.Before(earliest) {
		return now
	}
	return began
}

// maxSpeeches bounds the items of the caller whose beginnings are remembered. A transcript comes seconds after its
// item, so the oldest can be forgotten.
const maxSpeeches = 64

// speeches remember when the caller began to speak each item, until its transcript comes. An unknown time is zero. They
// are pure.
type speeches struct {
	appended      time.Time            // the first sound since the client's last commit; zero while it detects no turns
	ended         []time.Time          // beginnings of turns that the client committed, until the model confirms
	nameless      time.Time            // beginning of the newest speech that came without an item id
	began         map[string]time.Time // when the caller began to speak, by item
	untranscribed map[string]time.Time // the same, of items without a transcript yet
	order         []string             // the items of began, oldest first
}

func newSpeeches() speeches {
	return speeches{began: map[string]time.Time{}, untranscribed: map[string]time.Time{}}
}

// start notes that the caller began to speak an item, as voice detection reports it.
func (s *speeches) start(now time.Time, item string) {
	if item == "" {
		s.nameless = now
		return
	}
	s.keep(item, now)
}

// end notes the client's commit.
func (s *speeches) end() {
	if len(s.ended) < maxSpeeches {
		s.ended = append(s.ended, s.appended)
	}
	s.appended = time.Time{}
}

// commit notes that the model made an item of the caller's sound.
func (s *speeches) commit(item string) {
	if _, known := s.began[item]; known || item == "" {
		return
	}
	if len(s.ended) > 0 {
		s.keep(item, s.ended[0])
		s.ended = s.ended[1:]
		return
	}
	if !s.nameless.IsZero() {
		s.keep(item, s.nameless)
		s.nameless = time.Time{}
	}
}

// refuse notes that the model refused a commit, as there was no sound.
func (s *speeches) refuse() {
	if len(s.ended) > 0 {
		s.ended = s.ended[1:]
	}
}

func (s *speeches) keep(item string, began time.Time) {
	if len(item) > events.MaxID {
		return
	}
	if _, known := s.began[item]; !known {
		s.order = append(s.order, item)
	}
	s.began[item], s.untranscribed[item] = began, began
	if len(s.order) > maxSpeeches {
		delete(s.began, s.order[0])
		delete(s.untranscribed, s.order[0])
		s.order = s.order[1:]
	}
}

// transcribed notes that the transcript of an item has come, or never will, and returns when the item began.
func (s *speeches) transcribed(item string) time.Time {
	delete(s.untranscribed, item)
	return s.began[item]
}

// open reports whether a transcript of anything said after since may still come.
func (s *speeches) open(since time.Time) bool {
	for _, began := range s.untranscribed {
		if began.After(since) {
			return true
		}
	}
	return false
}

// drop forgets the speech of a session that is gone, and returns when each began. The next session hears the one that
// is being spoken and the one without an item again; the others are lost. Commits of the client stay, as the next
// session gets them again.
func (s *speeches) drop(speaking string) (again, lost []time.Time) {
	if at, waits := s.untranscribed[speaking]; waits {
		again = append(again, at)
		delete(s.untranscribed, speaking)
	}
	if !s.nameless.IsZero() {
		again = append(again, s.nameless)
	}
	lost = slices.SortedFunc(maps.Values(s.untranscribed), time.Time.Compare)
	fresh := newSpeeches()
	fresh.appended, fresh.ended = s.appended, s.ended
	*s = fresh
	return again, lost
}
