package handoff

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"
)

// The ways in which a decision is made.
const (
	ByVoice  = "voice"
	ByTyping = "typed"
	ByPage   = "page" // a tap, or words that were typed there
	ByAPI    = "api"
	// ByTerminal is a yes by a second act at a terminal of the user who runs the service: [RecordQuestion.SecondAct].
	ByTerminal = "terminal"
)

// An Auditor stores decisions for good. A decision that allows something is given only after Audit has returned nil.
type Auditor interface {
	Audit(ctx context.Context, rec AuditRecord) error
}

// An AuditRecord is one decision, with the evidence that it had. It has hashes of the command and of what was said, by
// which these can be recognised, and not themselves.
type AuditRecord struct {
	Who         string     `json:"who"` // the caller
	Call        string     `json:"call,omitempty"`
	Client      string     `json:"client,omitempty"` // the program that asked for the work, as in [Record]
	Server      string     `json:"server"`
	Thread      string     `json:"thread"`
	Turn        TurnID     `json:"turn"`
	Question    QuestionID `json:"question"` // names server, thread, turn and wire request
	CommandHash string     `json:"command_hash"`
	Decision    Decision   `json:"decision"`
	Tier        string     `json:"tier"`
	By          string     `json:"by"`
	Transcript  string     `json:"transcript_hash,omitempty"` // [TranscriptHash] of the reply
	Said        time.Time  `json:"said_at,omitzero"`          // when the reply began
	Asked       string     `json:"asked_hash,omitempty"`      // [TranscriptHash] of what the voice had asked before it
	Heard       time.Time  `json:"heard_at,omitzero"`         // when that had been heard to its end
	At          time.Time  `json:"at"`
	// Act says what was done or refused, if that is no answer to an agent: a machine that joined, say. "": it is one.
	Act string `json:"act,omitempty"`
	// If instances share a store: the one that decided, and the epoch of the caller's home there.
	Instance string `json:"instance,omitempty"`
	Epoch    int64  `json:"epoch,omitempty"`
}

// CommandHash returns a hash that binds a decision to its question: to the server, the connection over which it was
// asked, the turn, and the whole description of the act. Questions that differ in any of these have different hashes.
func CommandHash(q Question, server string) string {
	act := []any{server, q.Connection, q.Turn, q.Kind, q.Text, q.Command, q.Cwd, q.Changes, q.Beyond}
	if q.URL != "" || q.Picks() {
		act = append(act, q.URL, fmt.Sprint(q.Asks))
	}
	return hash(fmt.Sprintf("%q", act))
}

// TranscriptHash returns the hash of a reply, for the audit; "" for none.
func TranscriptHash(transcript string) string {
	if transcript == "" {
		return ""
	}
	return hash(transcript)
}

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// A Notifier reaches a caller who is not in a call.
type Notifier interface {
	// Notify takes a notice and returns at once. The notice is delivered in the background, or given up. The router
	// sends one for each question and each outcome at most. Notify may be called from any goroutine.
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

// A Notice is news for a caller who is not in a call.
type Notice struct {
	Caller   Caller
	Kind     NoticeKind
	Handoff  string     // the record's id; "" with [NoticeMachine]
	Question QuestionID // with [NoticeQuestion]
	Server   string
	Title    string // of the session; may be empty
	Text     string // sentences for a person
	Failed   bool   // with [NoticeOutcome]: it failed, or nobody knows how it ended
}
