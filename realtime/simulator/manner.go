package simulator

import "time"

// A Manner is how fast the model notices speech, answers and transcribes, for tests of conversations. Each function
// draws a new duration.
type Manner struct {
	Onset  func() time.Duration // from the beginning of speech until it is noticed; shorter speech is not
	Answer func() time.Duration // from a request for a response to its first sound
	Words  func() time.Duration // from the end of speech to its transcript
	Pace   float64              // how many times faster than it plays sound is sent
}
