package handoff

// A Notifier reaches a caller who is not in a call.
type Notifier interface {
	// Notify takes a notice and returns at once; it is delivered in the background, or given up. The router
	// gives each question and each outcome once. It may be called from any goroutine.
	Notify(n Notice)
}

// NoticeKind is what a [Notice] is about.
type NoticeKind string

// The kinds of notices.
const (
	NoticeOutcome  NoticeKind = "outcome"  // work ended
	NoticeQuestion NoticeKind = "question" // an agent waits for an answer
	NoticeMachine  NoticeKind = "machine"  // a machine has been gone for long while work waits for it, or is back
)

// A Notice is what a caller who is not in a call should know.
type Notice struct {
	Caller   Caller
	Kind     NoticeKind
	Handoff  string     // the record's id; "" where it is about a machine
	Question QuestionID // that is open, of a [NoticeQuestion]
	Server   string
	Title    string // of the session; may be empty
	Text     string // sentences for a person
}
