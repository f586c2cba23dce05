package ledger

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"switchboard/handoff"
)

// Bounds of an entry, which is read and written at each step. The whole words are stored apart, see [Body].
const (
	maxPrompt = 200 // bytes
	maxSpoken = 4096
	maxName   = 512 // bytes of a title and of each id; a longer id is refused, never cut
)

// An Entry is the stored state of one handoff. The zero Status means that there is none.
type Entry struct {
	Key       string // from [Key]
	Caller    handoff.Caller
	Owner     string // the name of the handoff in the life that wrote it last
	Args      string // from [Hash]: of the request's arguments
	Status    handoff.Status
	Inherited bool // another owner has adopted it, so it can never be started any more
	Attempt   int  // how often the start may have been sent: 0, 1 or 2
	Facts
	Accepted time.Time // when the entry was made; in UTC, whole milliseconds, like Ended
	Ended    time.Time // when its outcome became known
}

// Facts are the details of an entry.
type Facts struct {
	// Print is the print of the request (see [handoff.Request]), as [Printed] reads it; "": it has none.
	Print     string
	ClientID  string // the [handoff.Turn.ID] that the start carries
	Target    handoff.Target
	Watermark handoff.TurnID // the thread's newest turn before the start
	Turn      handoff.TurnID // the acknowledged or found turn
	Prompt    string         // the beginning of the prompt
	Title     string
	Why       string // such as [handoff.WhyNamed]
	Outcome   handoff.Outcome
	Tests     handoff.Tests // how the last run of tests ended
	Code      handoff.Code  // of the fault; "": none
	Spoken    string        // a sentence about the outcome
	Giver     string        // of the grant that gave it: [handoff.Grant.Key]
	Asker     string        // the program that asked, by its own name; "": a person
	Parent    handoff.ID    // the work whose agent asked; "": none
	Instead   handoff.ID    `json:",omitempty"` // the paused work in whose place it was begun; "": none
	Stopping  bool          `json:",omitempty"` // it is open, and its turn is to be interrupted
	Unkept    bool          // only the key, the ids and the outcome are kept, for [KeyFor], and no words
}

// Answered returns the [Facts].Print of work whose asker has the answer: from then on the same request is new work,
// unless it says that it is a repetition, and comes before until.
func Answered(print string, until time.Time) string {
	return fmt.Sprintf("- %d %s", until.UnixMilli(), print)
}

// Printed returns the print of a request, and the time of [Answered]; zero: who asked has no answer.
func Printed(stored string) (print string, until time.Time) {
	if rest, answered := strings.CutPrefix(stored, "-"); answered {
		millis, print, _ := strings.Cut(strings.TrimPrefix(rest, " "), " ")
		n, _ := strconv.ParseInt(millis, 10, 64) // earlier versions wrote none
		return print, time.UnixMilli(n)
	}
	return stored, time.Time{}
}

// Key returns the key of a handoff: 20 letters and digits [a-z2-7], the same in every life of the router. A call_id is
// unique only in its session.
func Key(session, callID string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %s %s", len(session), session, callID))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:])[:20])
}

// Hash returns a hash of text that is only compared, 32 hex digits.
func Hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:16])
}

// Bounded returns the entry with its texts as a store takes them: valid UTF-8, those that are only shown or said cut to
// their bounds; if no words are kept, to nothing.
func (e Entry) Bounded() Entry {
	f := &e.Facts
	if f.Unkept {
		f.Prompt, f.Title, f.Spoken = "", "", ""
	}
	for _, text := range []*string{
		&f.Print, &f.ClientID, &f.Target.Server, &f.Target.Project, &f.Target.Thread, (*string)(&f.Watermark),
		(*string)(&f.Turn), &f.Prompt, &f.Title, &f.Why, &f.Spoken, &f.Asker, (*string)(&f.Parent), (*string)(&f.Code),
	} {
		*text = strings.ToValidUTF8(*text, "\ufffd") // an entry is stored as JSON
	}
	f.Prompt, f.Spoken = handoff.Clip(f.Prompt, maxPrompt), handoff.Clip(f.Spoken, maxSpoken)
	f.Title = handoff.Clip(f.Title, maxName)
	return e
}

// Free reports whether a new handoff may have the key of an entry that is over: nothing was sent to an agent, and
// nobody stopped the work. Work that was stopped, paused or dropped is not begun because its request is repeated.
func (e Entry) Free() bool {
	switch {
	case e.Outcome == "", e.Turn != "":
		return false
	case e.Code == handoff.CodeStoreDown: // nothing is sent before the step to dispatching is written
		return true
	case e.Attempt > 0:
		return false
	case e.Code == handoff.CodeNotBegun: // if it is delivered, the caller has decided
		return e.Status == handoff.StatusCompleted
	}
	return e.Outcome == handoff.OutcomeFailed || e.Code == handoff.CodeShutdown
}
