package realtime

import (
	"context"
	"net/url"

	"go.uber.org/zap"

	"switchboard/handoff"
)

// Probe opens a session of the model and closes it at once, before anything is said in it. Of c it needs ModelURL,
// Model, Aliases and Key. Its errors are those that a caller would get: [handoff.CodeVoiceUnreachable], or one that
// says what the server refused. It does not notice what a server refuses only after the socket is open.
func Probe(ctx context.Context, c Config) error {
	u, err := url.Parse(c.ModelURL)
	if err != nil {
		return handoff.Fault(handoff.CodeMalformed, "the model's URL", "want ws:// or wss:// with a host")
	}
	f := &Front{config: c, model: u, log: zap.NewNop(), counts: newFrontCounts(), reach: dialLimit}
	model, fault := f.dialModel(ctx, "", nil)
	if fault != nil {
		return fault
	}
	model.Abandon()
	return nil
}
