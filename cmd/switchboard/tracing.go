package main

import (
	"context"

	"switchboard/cmd/switchboard/traces"
	"switchboard/handoff"
	"switchboard/realtime"
)

// openTraces sets up tracing, if the plan has an endpoint. Traces are sent until everything else has ended.
func (s *service) openTraces() error {
	if s.plan.Traces == "" {
		return nil
	}
	t, err := traces.New(s.plan.Traces, thisBuild().version, s.log.Named("traces"))
	if err != nil {
		return err
	}
	s.traces, s.trace = t, t.Begin
	s.counted = append(s.counted, t)
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
