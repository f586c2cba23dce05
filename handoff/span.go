package handoff

import (
	"context"
	"net/http"
)

// A Span is a stretch of the path of a handoff that operators see as part of a trace. Its name is a word of the
// vocabulary: request, handoff, resolve, attach, start, follow, say. A span holds codes, kinds and names from the
// configuration: never words, names of sessions, ids of callers or secrets.
//
// Whoever does something on that path begins a span below the one in its context; nobody but the edges needs more than
// the context. Where nothing is traced, that is a span which records nothing, and costs nothing. Methods may be used
// from any goroutine and never wait.
type Span interface {
	// Begin begins a span below this one. That may outlive this one.
	Begin(name string) Span
	// End ends the span, once, with fields as name, value, name, value; a field without a value is left out.
	// The code says what went wrong; "": nothing.
	End(code Code, fields ...string)
	// Parent is the span as the W3C traceparent of what is asked from elsewhere; "": nothing is traced.
	Parent() string
}

// A Tracer begins the first span of a trace. The headers are those of the request that asked for it, which may name a
// span of the client's that it belongs below. A nil Tracer traces nothing.
type Tracer func(name string, from http.Header) Span

// Begin begins the first span of a trace, and returns a context with it.
func (t Tracer) Begin(ctx context.Context, name string, from http.Header) (context.Context, Span) {
	if t == nil {
		return ctx, noSpan{}
	}
	span := t(name, from)
	return WithSpan(ctx, span), span
}

// spanKey is where a context has its span.
type spanKey struct{}

// WithSpan returns a context below whose span the next ones begin.
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

// BeginSpan begins a span below that of a context, and returns a context with it.
func BeginSpan(ctx context.Context, name string) (context.Context, Span) {
	s := SpanOf(ctx).Begin(name)
	return WithSpan(ctx, s), s
}

// noSpan records nothing.
type noSpan struct{}

func (noSpan) Begin(string) Span   { return noSpan{} }
func (noSpan) End(Code, ...string) {}
func (noSpan) Parent() string      { return "" }
