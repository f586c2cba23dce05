package sessions

import (
	"context"
	"time"

	"switchboard/handoff"
)

// A Document is data that a front keeps for a caller, such as a response. Only the front knows the content of its
// body.
type Document struct {
	Owner handoff.Caller
	ID    string // unique for its owner
	Body  []byte
	Ends  time.Time // when it is forgotten
}

// Bounds of documents.
const (
	MaxDocument  = 4 << 20 // bytes of a body; a larger one is refused with code too_large
	MaxDocuments = 1000    // of an owner; beyond it those that end first are dropped
	// Brief bounds the remaining life of a brief document. Brief documents are counted apart, up to MaxDocuments as
	// well, so that documents that are kept for days do not displace them.
	Brief = time.Hour
)

// Documents stores documents. Implementations are safe for concurrent use.
type Documents interface {
	// PutDocument makes or replaces a document.
	PutDocument(ctx context.Context, d Document) error
	// Document returns a document of an owner; false when there is none or it has ended.
	Document(ctx context.Context, owner handoff.Caller, id string) (Document, bool, error)
	// DropDocument forgets a document, and reports whether there was one.
	DropDocument(ctx context.Context, owner handoff.Caller, id string) (bool, error)
}

// Check reports why a document cannot be kept. Its errors have code malformed or too_large.
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

// Levels stores how much each caller wants to hear of work, as a document.
type Levels struct{ Documents Documents }

// levelID is the id of the document, and levelFor how long it is kept after it was last set.
const (
	levelID  = "updates: how much is told"
	levelFor = 10 * 365 * 24 * time.Hour
)

// Level returns what a caller wants to hear; "" if they never said.
func (l Levels) Level(ctx context.Context, c handoff.Caller) (handoff.SpeechLevel, error) {
	d, there, err := l.Documents.Document(ctx, c, levelID)
	level, known := handoff.ParseSpeechLevel(string(d.Body))
	if err != nil || !there || !known {
		return "", err
	}
	return level, nil
}

// SetLevel stores what a caller wants to hear.
func (l Levels) SetLevel(ctx context.Context, c handoff.Caller, level handoff.SpeechLevel) error {
	return l.Documents.PutDocument(ctx, Document{Owner: c, ID: levelID, Body: []byte(level),
		Ends: time.Now().Add(levelFor)})
}
