package realtime

import (
	"context"

	"go.uber.org/zap"

	"switchboard/handoff"
)

// A Call is one live voice call.
type Call struct {
	caller handoff.Caller
	id     string
	client leg
	model  leg
	log    *zap.Logger
	hang   chan struct{}
	events chan handoff.Event
}

func newCall(caller handoff.Caller, id string, client, model leg, log *zap.Logger) *Call {
	return &Call{caller: caller, id: id, client: client, model: model, log: log, hang: make(chan struct{}, 1), events: make(chan handoff.Event, 1)}
}

// Events implements [handoff.Voice].
func (c *Call) Events() <-chan handoff.Event { return c.events }

// Say implements [handoff.Voice].
func (c *Call) Say(handoff.Utterance) {}

func (c *Call) hangUp() {
	select {
	case c.hang <- struct{}{}:
	default:
	}
}

func (c *Call) run(ctx context.Context, r Router) error {
	defer c.client.Close(nil)
	defer c.model.Close(nil)
	defer close(c.events)
	for {
		select {
		case e, ok := <-c.client.Received():
			if !ok || !c.model.Send(e) {
				return nil
			}
		case e, ok := <-c.model.Received():
			if !ok || !c.client.Send(e) {
				return nil
			}
		case <-c.hang:
			return nil
		case <-ctx.Done():
			return nil
		}
	}
}
