package simulator

// A Chip is a sentence that a newcomer can send with one tap.
type Chip struct {
	Text string `json:"text"`
	Hint string `json:"hint,omitempty"` // what to watch for
}

// Chips returns the sentences in the order in which they work: each needs what the ones before it did.
func Chips() []Chip {
	return []Chip{
		{Text: "Which machines do I have?"},
		{Text: "What was I working on?"},
		{Text: "Continue the auth session on bigpc and run the tests", Hint: "one test fails"},
		{Text: "Fix it", Hint: "no machine named: it goes on in the same session"},
		{Text: "On laptop, write the release notes", Hint: "a second machine works beside the first"},
		{Text: "Push it from bigpc", Hint: "it asks first: say yes or no, or tap"},
		{Text: "Ask attic to check the backups", Hint: "that machine is lost at this moment, on purpose"},
		{Text: "Run the benchmarks on bigpc", Hint: "hang up while it runs and call again"},
	}
}
