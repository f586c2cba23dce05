package realtime

import (
	"maps"
	"slices"
	"time"

	"github.com/tidwall/gjson"

	"switchboard/realtime/events"
)

const (
	// prefixPadding is how much sound before the speech a model counts to it, unless the session says
	// otherwise (API reference, turn_detection.prefix_padding_ms).
	prefixPadding = 300 * time.Millisecond
	// maxLag is how late a model may report that the caller began to speak. What says more is no clock.
	maxLag = 2 * time.Second
)

// A clock tells when the sound of the caller that a model counts in milliseconds of the session came. It
// is pure.
type clock struct {
	heard time.Duration // of sound so far
	at    time.Time     // when the newest of it came
	again time.Time     // when the oldest came of the sound that the model got later than that; zero: none
}

// add counts sound that came now.
func (c *clock) add(now time.Time, bytes, rate int) {
	c.heard += time.Duration(bytes) * time.Millisecond / time.Duration(rate)
	c.at = now
}

// began returns when speech began of which the model tells now: its event comes hundreds of milliseconds
// later. Where the model's count is not that of the session, it is now.
func (c *clock) began(now time.Time, start gjson.Result, padding time.Duration) time.Time {
	earliest := now.Add(-maxLag)
	if again := c.again; !again.IsZero() { // it may be of that sound: then it began early rather than late
		if c.again = (time.Time{}); again.Before(earliest) {
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

// maxSpeeches bounds the utterances of the caller whose beginnings are remembered; a transcript comes
// seconds after it, so the oldest are forgotten.
const maxSpeeches = 64

// speeches know when the caller began to say what is transcribed later. They are pure. What they do not
// know is the zero time.
type speeches struct {
	appended time.Time            // the first sound since the client's last commit; zero while it detects no turns
	ended    []time.Time          // beginnings of turns that the client committed, until the model confirms
	nameless time.Time            // newest speech that voice detection named no item for
	began    map[string]time.Time // by item
	waited   map[string]time.Time // of them, those whose words have not come
	order    []string             // the same, oldest first
}

func newSpeeches() speeches {
	return speeches{began: map[string]time.Time{}, waited: map[string]time.Time{}}
}

// start notes that voice detection heard the caller begin an item.
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

// commit notes that the model made an item of what it heard.
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

// refuse notes that there was nothing to commit.
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
	s.began[item], s.waited[item] = began, began
	if len(s.order) > maxSpeeches {
		delete(s.began, s.order[0])
		delete(s.waited, s.order[0])
		s.order = s.order[1:]
	}
}

// worded notes that the words of an item have come, or never will, and returns when it began.
func (s *speeches) worded(item string) time.Time {
	delete(s.waited, item)
	return s.began[item]
}

// open reports whether the words of something that was said since then may still come.
func (s *speeches) open(since time.Time) bool {
	for _, began := range s.waited {
		if began.After(since) {
			return true
		}
	}
	return false
}

// forsake forgets what the model will not tell of any more, and returns when that began: what another session hears
// again, which is the item that is being spoken and what has no item yet, and what is lost. What the client commits is
// still to be confirmed.
func (s *speeches) forsake(speaking string) (again, lost []time.Time) {
	if at, waits := s.waited[speaking]; waits {
		again = append(again, at)
		delete(s.waited, speaking)
	}
	if !s.nameless.IsZero() {
		again = append(again, s.nameless)
	}
	lost = slices.SortedFunc(maps.Values(s.waited), time.Time.Compare)
	fresh := newSpeeches()
	fresh.appended, fresh.ended = s.appended, s.ended
	*s = fresh
	return again, lost
}
