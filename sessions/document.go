package sessions

import (
	"context"
	"time"

	"switchboard/handoff"
)

// A Document is something that a front keeps of a caller's: a response, a conversation. What is in it only the front
// knows.
type Document struct {
	Owner handoff.Caller
	ID    string // unique for its owner
	Body  []byte
	Ends  time.Time // when it is forgotten; after that it is none
}

// Bounds of documents.
const (
	MaxDocument  = 4 << 20 // bytes of a body; a larger one is refused with code too_large
	MaxDocuments = 1000    // of an owner; beyond it those that end first are forgotten
	// Brief is how soon a document ends that is counted apart, to the same bound: what is kept for days does not
	// displace it.
	Brief = time.Hour
)

// Documents keeps documents. Implementations are safe for concurrent use.
type Documents interface {
	// PutDocument makes or replaces a document.
	PutDocument(ctx context.Context, d Document) error
	// Document finds one; one that has ended, and one of another owner, is none.
	Document(ctx context.Context, owner handoff.Caller, id string) (Document, bool, error)
	// DropDocument forgets one, and reports whether it was there.
	DropDocument(ctx context.Context, owner handoff.Caller, id string) (bool, error)
}

// Check tells what of a document cannot be kept. An error has code malformed or too_large.
func (d Document) Check() error {
	switch {
	case d.ID == "" || len(d.ID) > maxDocumentID:
		return handoff.Fault(handoff.CodeMalformed, "a document has an id", "")
	case len(d.Body) > MaxDocument:
		return handoff.Fault(handoff.CodeTooLarge, "a document", "")
	}
	return nil
}

// maxDocumentID bounds an id, in bytes.
const maxDocumentID = 256

// Levels keeps how much callers want to hear of work, as a document of each.
type Levels struct{ Documents Documents }

// levelID names the document, and levelFor is how long it is kept after it was last set.
const (
	levelID  = "updates: how much is told"
	levelFor = 10 * 365 * 24 * time.Hour
)

// Level returns what a caller wants to hear; "": they never said.
func (l Levels) Level(ctx context.Context, c handoff.Caller) (handoff.SpeechLevel, error) {
	d, there, err := l.Documents.Document(ctx, c, levelID)
	level, known := handoff.ParseSpeechLevel(string(d.Body))
	if err != nil || !there || !known {
		return "", err
	}
	return level, nil
}

// SetLevel keeps what a caller wants to hear.
func (l Levels) SetLevel(ctx context.Context, c handoff.Caller, level handoff.SpeechLevel) error {
	return l.Documents.PutDocument(ctx, Document{Owner: c, ID: levelID, Body: []byte(level),
		Ends: time.Now().Add(levelFor)})
}
