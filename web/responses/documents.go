package responses

import (
	"context"
	"encoding/json"
	"slices"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/sessions"
)

// A document is a response as it is stored.
type document struct {
	Response response          `json:"response"`
	Input    []json.RawMessage `json:"input"`
	Run      handoff.ID        `json:"run"`
	Part     int               `json:"part"`           // the number of the response among those of its handoff, from 1
	Seq      uint64            `json:"seq"`            // the last event of the handoff that was followed
	Life     string            `json:"life,omitempty"` // [API.life] of the process in whose log Seq counts
	Server   string            `json:"server"`
	Project  string            `json:"project,omitempty"`
	Thread   string            `json:"thread,omitempty"`
	Turn     handoff.TurnID    `json:"turn,omitempty"`
	Asked    []string          `json:"asked,omitempty"` // ids of the approval requests that it ended with
	Shown    []string          `json:"shown,omitempty"` // ids of the agent's items that responses of the handoff have
	Streamed bool              `json:"streamed,omitempty"`
	Exact    bool              `json:"exact,omitempty"`
	Sum      string            `json:"sum,omitempty"` // of its request, if that answered questions
}

// documents stores responses, conversations and requests.
type documents struct {
	sessions.Documents             // Set once
	log                *zap.Logger // Set once

	unstored atomic.Uint64 // documents that could not be stored
}

// put stores a response, and reports whether that was possible. If it is too large, the output and arguments of its
// tools are cut.
func (d *documents) put(c handoff.Caller, doc document) bool {
	body := []byte(handoff.Encode(doc))
	for most := 4 << 10; len(body) > sessions.MaxDocument && most >= 256; most /= 4 {
		doc.Response.Output = shortened(doc.Response.Output, most)
		body = []byte(handoff.Encode(doc))
	}
	return d.store(c, doc.Response.ID, body, keptFor) == nil
}

// store stores a document.
func (d *documents) store(c handoff.Caller, id string, body []byte, keep time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), storeWithin)
	defer cancel()
	err := d.PutDocument(ctx, sessions.Document{Owner: c, ID: id, Body: body, Ends: time.Now().Add(keep)})
	if err != nil {
		d.unstored.Add(1)
		d.log.Warn("a response is not stored", zap.String("principal", c.Principal), zap.Error(err))
	}
	return err
}

// drop removes a document. On failure it stays until its time is over.
func (d *documents) drop(c handoff.Caller, id string) {
	ctx, cancel := context.WithTimeout(context.Background(), storeWithin)
	defer cancel()
	_, _ = d.DropDocument(ctx, c, id)
}

// fault returns the fault for an error of the store. Only the log has the details.
func (d *documents) fault(err error) *fault {
	d.log.Warn("the store does not answer", zap.Error(err))
	return faultOf(handoff.StoreDown(err))
}

// shortened returns items with the output and arguments of tools cut to most bytes each.
func shortened(items []item, most int) []item {
	out := slices.Clone(items)
	for i := range out {
		if o := out[i].Output; o != nil && len(*o) > most {
			out[i].Output = new("…" + handoff.Tail(*o, most))
		}
		if s := out[i].Arguments; s != nil && len(*s) > most {
			out[i].Arguments = new(`{"cut":true}`)
		}
	}
	return out
}
