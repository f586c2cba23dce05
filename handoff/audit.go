package handoff

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"
)

// How a decision came.
const (
	ByVoice  = "voice"
	ByTyping = "typed"
	ByPage   = "page" // a tap, or words that were written there
	ByAPI    = "api"  // a key that may
)

// An Auditor keeps decisions for good. A decision that it could not keep is not carried out: Audit is
// called, and has returned nil, before an accept goes out.
type Auditor interface {
	Audit(ctx context.Context, rec AuditRecord) error
}

// An AuditRecord is one decision. It holds no transcript and no command, only what reports whether one that
// is shown was the one decided.
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
	At          time.Time  `json:"at"`
	// Act is what was done or refused where it is no answer to an agent: a machine that joined, say. "": it is one.
	Act string `json:"act,omitempty"`
	// Where several instances share a store: the one that decided, and the epoch of the caller's home there.
	Instance string `json:"instance,omitempty"`
	Epoch    int64  `json:"epoch,omitempty"`
}

// CommandHash binds a decision to what was asked: the server, the connection over which it was
// asked, the turn, and all that describes the act.
// Two questions that differ in any of it have different hashes.
func CommandHash(q Question, server string) string {
	act := []any{server, q.Connection, q.Turn, q.Kind, q.Text, q.Command, q.Cwd, q.Changes, q.Beyond}
	return hash(fmt.Sprintf("%q", act))
}

// TranscriptHash is what an audit record keeps of a reply.
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
