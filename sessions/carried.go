package sessions

import (
	"context"
	"encoding/json"
	"time"

	"switchboard/handoff"
)

// CarriedCalls keeps the ids of this process's calls that the voice model's server carries. It is for a process that
// is the only one at its store.
type CarriedCalls struct{ Documents Documents }

const (
	carriedID = "calls: at the voice model's server"
	// carriedFor is longer than such a call can last.
	carriedFor = 24 * time.Hour
)

// carriedOwner owns the document. No caller has this name, since a configured principal has no colon.
var carriedOwner = handoff.Caller{Principal: ":service"}

// Left returns the ids that were stored last.
func (c CarriedCalls) Left(ctx context.Context) (ids []string, err error) {
	d, there, err := c.Documents.Document(ctx, carriedOwner, carriedID)
	if err != nil || !there {
		return nil, err
	}
	if err := json.Unmarshal(d.Body, &ids); err != nil {
		return nil, handoff.Fault(handoff.CodeInternal, "", err.Error())
	}
	return ids, nil
}

// Keep replaces the stored ids; with no ids it drops the document.
func (c CarriedCalls) Keep(ctx context.Context, ids []string) error {
	if len(ids) == 0 {
		_, err := c.Documents.DropDocument(ctx, carriedOwner, carriedID)
		return err
	}
	return c.Documents.PutDocument(ctx, Document{Owner: carriedOwner, ID: carriedID, Body: []byte(handoff.Encode(ids)),
		Ends: time.Now().Add(carriedFor)})
}
