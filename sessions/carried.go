package sessions

import (
	"context"
	"encoding/json"
	"time"

	"switchboard/handoff"
)

// CarriedCalls keeps the ids of the calls that the voice model's server carries for this process, which has the whole
// store.
type CarriedCalls struct{ Documents Documents }

const (
	carriedID = "calls: at the voice model's server"
	// carriedFor is longer than such a call can last.
	carriedFor = 24 * time.Hour
)

// carriedOwner is nobody: a principal of the settings has no colon.
var carriedOwner = handoff.Caller{Principal: ":service"}

// Left returns what was kept last.
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

// Keep replaces it. Nothing is kept of no calls.
func (c CarriedCalls) Keep(ctx context.Context, ids []string) error {
	if len(ids) == 0 {
		_, err := c.Documents.DropDocument(ctx, carriedOwner, carriedID)
		return err
	}
	body, err := json.Marshal(ids)
	if err != nil {
		return handoff.Fault(handoff.CodeInternal, "", err.Error())
	}
	return c.Documents.PutDocument(ctx, Document{Owner: carriedOwner, ID: carriedID, Body: body,
		Ends: time.Now().Add(carriedFor)})
}
