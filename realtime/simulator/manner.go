package simulator

import (
	"math"
	"math/rand/v2"
	"time"
)

// A Manner is how fast the model notices speech, answers and transcribes, for tests of conversations. Each function
// draws a new duration.
type Manner struct {
	Onset  func() time.Duration // from the beginning of speech until it is noticed; shorter speech is not
	Answer func() time.Duration // from a request for a response to its first sound
	Words  func() time.Duration // from the end of speech to its transcript
	Pace   float64              // how many times faster than it plays sound is sent
}

// DrawnManner returns a manner like that of OpenAI's models, as far as that is known.
//
// Answer: the model itself takes 232 ms at best and 320 ms on average (GPT-4o System Card, 2024). Over the API the
// first sound comes after 0.3 to 2.3 s, and later the more the model reasons (comparisons of gpt-realtime-2, 2026).
// Here it is log-normal about 0.5 s, within these bounds.
//
// The end of speech is noticed after the silence_duration_ms of the session, 500 by default (API reference). How long
// the beginning takes is not published: here it is 100 to 350 ms, which the prefix_padding_ms of 300 mostly makes up
// for. Transcripts are made beside the answer, with no promise of order (API reference): here log-normal about 0.4 s,
// at most 2 s. Sound comes faster than it plays; by how much is not published: here four times.
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
