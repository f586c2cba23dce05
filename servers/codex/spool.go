package codex

import (
	"slices"

	"switchboard/handoff"
)

// Bounds of what is kept of one turn until somebody reads it.
const (
	// From here on deltas are dropped, those already kept first. They are advisory: the finished item has
	// the whole text. A slow reader must never stop the connection, because then the server would queue
	// for every thread on it.
	spoolSoft      = 1024
	spoolSoftBytes = 1 << 20
	// From here on the turn is given up: its follower gets an error and may look at the thread. Everything
	// left is worth more than a delta and is never dropped singly.
	spoolHard      = 8192
	spoolHardBytes = 8 << 20
)

// maxJoined bounds the deltas that are joined into one, in bytes.
const maxJoined = 16 << 10

// A spool keeps the updates of one turn in order until they are read. It is pure.
type spool struct {
	queue   []handoff.Update
	bytes   int
	deltas  int             // in queue
	holed   map[string]bool // items of which a delta was dropped: what follows would read wrong
	dropped int             // deltas dropped
	burst   bool            // given up
	tally   *tally          // of the connection; nil: none
}

// add counts bytes, which may be less than 0.
func (s *spool) add(n int) {
	s.bytes += n
	if s.tally != nil {
		s.tally.spooled.Add(int64(n))
	}
}

// overflows reports whether the turn holds more than it may.
func (s *spool) overflows() bool {
	return len(s.queue) > spoolHard || s.bytes > spoolHardBytes ||
		s.tally != nil && s.bytes > spoolSoftBytes && s.tally.spooled.Load() > maxSpooled
}

// giveUp lets go of everything. Who follows the turn gets an error.
func (s *spool) giveUp() {
	s.add(-s.bytes)
	s.queue, s.deltas, s.holed, s.burst = nil, 0, nil, true
	if s.tally != nil {
		s.tally.burst.Add(1)
	}
}

// put appends updates.
func (s *spool) put(updates ...handoff.Update) {
	for _, u := range updates {
		s.putOne(u)
	}
}

func (s *spool) putOne(u handoff.Update) {
	if s.burst {
		return
	}
	d, isDelta := u.(handoff.Delta)
	full := len(s.queue) >= spoolSoft || s.bytes >= spoolSoftBytes
	switch {
	case isDelta && (full || s.holed[d.ItemID]):
		s.hole(d.ItemID)
		return
	case isDelta && s.join(d):
		return
	case isDelta:
		s.deltas++
	case full && s.deltas > 0:
		s.dropDeltas()
	}
	s.queue = append(s.queue, u)
	s.add(weight(u))
	if s.overflows() {
		s.giveUp()
	}
}

// putFirst puts updates before all others, but after the beginning of the turn. Nothing of the turn has
// been taken yet, and they are few.
func (s *spool) putFirst(updates ...handoff.Update) {
	if s.burst {
		return
	}
	at := 0
	if len(s.queue) > 0 {
		if _, begins := s.queue[0].(handoff.Started); begins {
			at = 1
		}
	}
	s.queue = slices.Insert(s.queue, at, updates...)
	for _, u := range updates {
		s.add(weight(u))
	}
	if s.overflows() {
		s.giveUp()
	}
}

// reword gives the end of the turn, which is the last update, the words that were read since.
func (s *spool) reword(text string) {
	if len(s.queue) == 0 {
		return
	}
	if end, ok := s.queue[len(s.queue)-1].(handoff.TurnEnded); ok {
		s.add(len(text) - len(end.Text))
		end.Text = text
		s.queue[len(s.queue)-1] = end
	}
}

// join appends a delta to the one before it when nobody has read that yet.
func (s *spool) join(d handoff.Delta) bool {
	if len(s.queue) == 0 {
		return false
	}
	last, ok := s.queue[len(s.queue)-1].(handoff.Delta)
	if !ok || last.ItemID != d.ItemID || len(last.Text)+len(d.Text) > maxJoined {
		return false
	}
	last.Text += d.Text
	s.queue[len(s.queue)-1] = last
	s.add(len(d.Text))
	return true
}

// dropDeltas removes all deltas.
func (s *spool) dropDeltas() {
	kept := s.queue[:0]
	for _, u := range s.queue {
		if d, ok := u.(handoff.Delta); ok {
			s.add(-weight(d))
			s.hole(d.ItemID)
			continue
		}
		kept = append(kept, u)
	}
	clear(s.queue[len(kept):])
	s.queue, s.deltas = kept, 0
}

func (s *spool) hole(item string) {
	if s.holed == nil {
		s.holed = map[string]bool{}
	}
	s.holed[item] = true
	s.dropped++
	if s.tally != nil {
		s.tally.deltas.Add(1)
	}
}

// take removes the oldest update.
func (s *spool) take() (handoff.Update, bool) {
	if len(s.queue) == 0 {
		return nil, false
	}
	u := s.queue[0]
	s.queue[0] = nil
	s.queue = s.queue[1:]
	s.add(-weight(u))
	if _, ok := u.(handoff.Delta); ok {
		s.deltas--
	}
	return u, true
}

// weight estimates the memory of an update, in bytes.
func weight(u handoff.Update) int {
	const base = 64
	switch u := u.(type) {
	case handoff.Delta:
		return base + len(u.Text)
	case handoff.ItemStarted:
		return base + len(u.Item.Text) + len(u.Item.Arguments) + len(u.Item.Output)
	case handoff.ItemDone:
		return base + len(u.Item.Text) + len(u.Item.Arguments) + len(u.Item.Output)
	case handoff.Question:
		return base + len(u.Text) + len(u.Command) + len(u.Reason) + sizeOf(u.Changes)
	case handoff.TurnEnded:
		return base + len(u.Text)
	}
	return base
}

func sizeOf(texts []string) int {
	n := 0
	for _, text := range texts {
		n += len(text)
	}
	return n
}
