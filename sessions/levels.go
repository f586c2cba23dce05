package sessions

import (
	"context"
	"time"

	"switchboard/handoff"
)

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
	return l.Documents.PutDocument(ctx, Document{Owner: c, ID: levelID, Body: []byte(level), Ends: time.Now().Add(levelFor)})
}
