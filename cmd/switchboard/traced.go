package main

import (
	"context"
	"os"
	"path/filepath"

	"go.uber.org/zap"

	"switchboard/cmd/switchboard/traces"
	"switchboard/handoff"
	"switchboard/realtime"
)

// traced sets up tracing, if the plan has an endpoint. Traces are sent until everything else has ended.
func (s *service) traced(p plan) error {
	if p.Traces == "" {
		return nil
	}
	t, err := traces.New(p.Traces, thisBuild().version, s.log.Named("traces"))
	if err != nil {
		return err
	}
	s.traces, s.trace = t, t.Begin
	s.count(t)
	return nil
}

// tracedCalls puts each call into a span of its own.
func (s *service) tracedCalls(calls realtime.Router) realtime.Router {
	if s.traces == nil {
		return calls
	}
	return callTracer{calls, s.traces}
}

// callTracer is a [realtime.Router] whose calls are traced.
type callTracer struct {
	realtime.Router
	traces *traces.Traces
}

// Serve implements [realtime.Router].
func (c callTracer) Serve(ctx context.Context, g *handoff.Grant, v handoff.Voice) error {
	span := c.traces.Call()
	err := c.Router.Serve(handoff.WithSpan(ctx, span), g, v)
	span.End(handoff.CodeOf(err))
	return err
}

// keepTicks returns a function that writes the tick log of an ended call to a file named after the call. A failure is
// only logged: tick logs are for people.
func (s *service) keepTicks(dir string) func(call string, log []byte) {
	return func(call string, log []byte) {
		err := os.MkdirAll(dir, 0o700)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, call+".ticks"), log, 0o600)
		}
		if err != nil {
			s.log.Warn("tick log not kept", zap.String("call", call), zap.Error(err))
		}
	}
}
