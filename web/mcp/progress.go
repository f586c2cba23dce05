package mcp

import (
	"context"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"switchboard/handoff"
)

// progress tells the client every few seconds that the call goes on, if it asked for that, until the returned function
// is called, which waits for it.
func (c *call) progress(ctx context.Context) (stop func()) {
	token := c.req.Params.GetProgressToken()
	if token == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var telling sync.WaitGroup
	telling.Go(func() {
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
			_ = c.req.Session.NotifyProgress(
				ctx,
				&mcp.ProgressNotificationParams{ProgressToken: token, Progress: n, Message: message},
			) // a client that left is not told
		}
	})
	return func() { cancel(); telling.Wait() }
}

// happened keeps what the agent does now as the next sign.
func (c *call) happened(e handoff.RunEvent) {
	var text string
	switch k := e.Kind.(type) {
	case handoff.RunDoing:
		text = k.Text
	case handoff.RunWaiting:
		text = "It waits for other work there."
	case handoff.RunLost:
		text = "The machine is out of reach and is looked for."
	default:
		return
	}
	if text = handoff.Clip(text, maxSign); text != "" {
		c.doing.Store(&text)
	}
}

// maxSign bounds a sign of progress, in bytes.
const maxSign = 200
