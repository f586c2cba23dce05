package handoff

import (
	"context"
	"net/http"
)

// A Span is one operation on the path of a handoff, in a trace for operators. Its name is a word of the vocabulary:
// request, handoff, resolve, attach, start, follow, say. A span has codes, kinds and names from the configuration:
// never the caller's words, names of sessions, ids of callers or secrets.
//
// Code on that path begins a child of the span in its context, by [BeginSpan]. Without tracing, that is a span that
// records nothing and costs nothing. Methods may be called from any goroutine and never wait.
type Span interface {
	// Begin begins a child of this span. The child may end later than this one.
	Begin(name string) Span
	// End ends the span, once, with fields as name, value, name, value; a field with an empty value is left out.
	// The code says what went wrong; "": nothing.
	End(code Code, fields ...string)
	// Parent returns the W3C traceparent for requests to other services; "": nothing is traced.
	Parent() string
}

// A Tracer begins the first span of a trace. from has the headers of the request, in which the client may name a parent
// span. A nil Tracer traces nothing.
type Tracer func(name string, from http.Header) Span

// Begin begins the first span of a trace, and returns a context with it.
func (t Tracer) Begin(ctx context.Context, name string, from http.Header) (context.Context, Span) {
	if t == nil {
		return ctx, noSpan{}
	}
	span := t(name, from)
	return WithSpan(ctx, span), span
}

// spanKey is the key of the span in a context.
type spanKey struct{}

// WithSpan returns a context with a span.
func WithSpan(ctx context.Context, s Span) context.Context {
	if s == (noSpan{}) {
		return ctx
	}
	return context.WithValue(ctx, spanKey{}, s)
}

// SpanOf returns the span of a context, never nil.
func SpanOf(ctx context.Context) Span {
	if s, ok := ctx.Value(spanKey{}).(Span); ok {
		return s
	}
	return noSpan{}
}

// BeginSpan begins a child of a context's span, and returns a context with it.
func BeginSpan(ctx context.Context, name string) (context.Context, Span) {
	s := SpanOf(ctx).Begin(name)
	return WithSpan(ctx, s), s
}

// noSpan records nothing.
type noSpan struct{}

func (noSpan) Begin(string) Span   { return noSpan{} }
func (noSpan) End(Code, ...string) {}
func (noSpan) Parent() string      { return "" }
