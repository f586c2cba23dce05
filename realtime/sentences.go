package realtime

import (
	"slices"
	"time"
)

// maxSentences bounds the spoken sentences that are remembered. A transcript comes seconds after its item, so the
// oldest can be forgotten.
const maxSentences = 64

// A sentence is something that the caller said or wrote in the conversation.
type sentence struct {
	item   string        // its item; "": not known yet
	began  time.Time     // when the caller began to say it; zero: not known
	ended  time.Time     // when it was over; zero: it goes on
	quiet  time.Duration // how long the voice had been silent when it began; 0: it sounded
	begun  int           // how many responses had begun
	told   bool          // its transcript has come, or never will
	state  certainty     // whether there are words in it
	before *sentence     // what they said before it, if the model got no words of agents in between; nil: nothing
}

// A certainty says whether there are words of the caller in a sentence.
type certainty int

const (
	wordsUnknown certainty = iota // there is no transcript yet
	wordsSaid
	wordsNone
)

// words returns when the caller's words ended that are in the sentence or in those before it; zero: there are none.
// waits: a transcript may still say that there are some.
func (s *sentence) words() (ended time.Time, waits bool) {
	for ; s != nil; s = s.before {
		if s.state == wordsSaid {
			return s.ended, false
		}
		waits = waits || s.state == wordsUnknown
	}
	return time.Time{}, waits
}

// sentences are the newest that the caller spoke, oldest first. Each begins when voice detection reports it, or when
// the client commits it, and may get its item only later: the oldest one without an item and a transcript is the one
// that an unknown item belongs to. They are pure.
type sentences []*sentence

func (all *sentences) add(item string) *sentence {
	s := &sentence{item: item}
	if *all = append(*all, s); len(*all) > maxSentences {
		(*all)[0].before = nil // frees those before it
		*all = slices.Delete(*all, 0, 1)
	}
	return s
}

// of returns the sentence of an item: the one that has it, else the oldest without an item and a transcript, which gets
// it, else a new one.
func (all *sentences) of(item string) *sentence {
	i := slices.IndexFunc(*all, func(s *sentence) bool { return s.item == item && item != "" })
	if i < 0 {
		i = slices.IndexFunc(*all, func(s *sentence) bool { return s.item == "" && !s.told })
	}
	if i < 0 {
		return all.add(item)
	}
	(*all)[i].item = item
	return (*all)[i]
}

// current returns the sentence with an item, or for "" the one without an item that goes on. It is made if need be.
func (all *sentences) current(item string) *sentence {
	i := slices.IndexFunc(*all, func(s *sentence) bool {
		return s.item == item && (item != "" || s.ended.IsZero() && !s.told)
	})
	if i < 0 {
		return all.add(item)
	}
	return (*all)[i]
}

// start notes when the caller began to speak an item, as voice detection reports it.
func (all *sentences) start(item string, began time.Time) {
	s := all.current(item)
	s.began, s.told = began, false
}

// ending returns the sentence that ends: of an item, or for "" the one without an item that goes on.
func (all *sentences) ending(item string) *sentence {
	if item == "" {
		return all.current("")
	}
	return all.of(item)
}

// refuse forgets the oldest sentence without an item, and returns it: the model has refused to make one.
func (all *sentences) refuse() *sentence {
	s := all.of("")
	*all = slices.DeleteFunc(*all, func(other *sentence) bool { return other == s })
	return s
}

// open reports whether a transcript of anything that began after since may still come.
func (all *sentences) open(since time.Time) bool {
	return slices.ContainsFunc(*all, func(s *sentence) bool { return !s.told && s.began.After(since) })
}

// drop forgets the sentences of a session that is gone, and returns when those without a transcript began: there may
// have been any words in them. The next session hears the one that is being spoken and one without an item again; the
// others are lost. Commits of the client (manual) stay, as the next session gets them again.
func (all *sentences) drop(speaking string, manual bool) (again, lost []time.Time) {
	var kept sentences
	for _, s := range *all {
		if s.state == wordsUnknown {
			s.state = wordsSaid
		}
		switch {
		case s.item == "" && manual:
			kept = append(kept, s)
		case s.told:
		case s.item == "" || s.item == speaking:
			again = append(again, s.began)
		default:
			lost = append(lost, s.began)
		}
	}
	*all = kept
	return again, lost
}
