package mcp

import (
	"context"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"switchboard/handoff"
)

// progress notifies the client every [progressEvery] that the call goes on, if the client asked for that. stop ends
// this and waits until it has ended.
func (c *call) progress(ctx context.Context) (stop func()) {
	token := c.req.Params.GetProgressToken()
	if token == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var notifying sync.WaitGroup
	notifying.Go(func() {
		tick := time.NewTicker(progressEvery)
		defer tick.Stop()
		for n := 1.0; ; n++ {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
			message := "The work goes on."
			if text := c.doing.Load(); text != nil {
				message = *text
			}
			_ = c.req.Session.NotifyProgress(ctx, // the client may have left
				&mcp.ProgressNotificationParams{ProgressToken: token, Progress: n, Message: message})
		}
	})
	return func() { cancel(); notifying.Wait() }
}

// happened keeps what the agent does now, for the next notification.
func (c *call) happened(e handoff.Event) {
	var text string
	switch k := e.Kind.(type) {
	case handoff.EventDoing:
		text = k.Text
	case handoff.EventWaiting:
		text = "It waits for other work there."
	case handoff.EventLost:
		text = "The machine is out of reach and is looked for."
	default:
		return
	}
	if text = handoff.Clip(text, maxProgress); text != "" {
		c.doing.Store(&text)
	}
}

// maxProgress bounds the text of a notification of progress, in bytes.
const maxProgress = 200
