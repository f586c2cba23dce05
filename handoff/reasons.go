package handoff

// Reasons why an answer to a question does not count, or must be given on the page; fit to be said after the
// phrase of a code.
const (
	WhyBeyond  = "it would allow more than this one act"
	WhyOld     = "the answer is too old"
	WhyMore    = "you went on speaking"
	WhySecret  = "it asks for a secret, which is typed there and never said"
	WhyNoWords = "it takes no words by voice"
	WhyLong    = "it is too long to be said whole"

	WhyNoApprove = "this key may not answer for you"
)
