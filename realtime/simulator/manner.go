package simulator

import (
	"math"
	"math/rand/v2"
	"time"
)

// A Manner is how fast the model notices, answers and writes down, for tests of conversations. Each time is drawn
// anew.
type Manner struct {
	Onset  func() time.Duration // from the beginning of speech until it is noticed; shorter sounds are not
	Answer func() time.Duration // from a request for a response to its first sound
	Words  func() time.Duration // from the end of speech to its transcript
	Pace   float64              // how many times faster than it is heard sound comes
}

// DrawnManner is a manner like that of OpenAI's models, as far as that is known.
//
// An answer: the model itself takes 232 ms at best and 320 ms on average (GPT-4o System Card, 2024); over the API the
// first sound comes after 0.3 to 2.3 s, the more the more the model reasons (comparisons of gpt-realtime-2, 2026).
// Here it is log-normal about 0.5 s, between these bounds.
//
// The end of speech is noticed after the silence_duration_ms of the session, 500 by default (API reference). How long
// the beginning takes is not published: here it is 100 to 350 ms, as long as the prefix_padding_ms of 300 can make up
// for or little longer. Transcripts are made beside the answer, with no promise of order (API reference): here
// log-normal about 0.4 s, at most 2 s. Sound comes faster than it is heard, by how much is not published: here four
// times.
func DrawnManner(r *rand.Rand) *Manner {
	normal := func(median, spread float64, least, most time.Duration) func() time.Duration {
		return func() time.Duration {
			d := time.Duration(median * math.Exp(spread*r.NormFloat64()) * float64(time.Second))
			return min(max(d, least), most)
		}
	}
	return &Manner{
		Onset: func() time.Duration {
			return 100*time.Millisecond + time.Duration(r.Int64N(int64(250*time.Millisecond)))
		},
		Answer: normal(0.5, 0.4, 232*time.Millisecond, 2300*time.Millisecond),
		Words:  normal(0.4, 0.5, 100*time.Millisecond, 2*time.Second),
		Pace:   4,
	}
}

// A pending is something that a session does later.
type pending struct {
	at time.Time
	do func()
}

// after does something later, in order where that is the same time. Without a manner it does it now.
func (s *session) after(d time.Duration, do func()) {
	if d <= 0 {
		do()
		return
	}
	s.later = append(s.later, pending{s.now.Add(d), do})
}

// doDue does what is due of what comes later.
func (s *session) doDue() bool {
	for i, p := range s.later {
		if !p.at.After(s.now) {
			s.later = append(s.later[:i:i], s.later[i+1:]...)
			p.do()
			return true
		}
	}
	return false
}
