package traces

import (
	"encoding/hex"
	"math/rand/v2"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"switchboard/handoff"
)

// A span is a [handoff.Span], and a Span of OTLP in JSON. Until End its fields belong to whoever ends it, then to
// [Traces.Run]; traces, TraceID, SpanID and sampled are set once.
type span struct {
	traces  *Traces
	sampled bool // whether it is sent
	began   time.Time

	TraceID    string      `json:"traceId"`
	SpanID     string      `json:"spanId"`
	ParentID   string      `json:"parentSpanId,omitempty"`
	Name       string      `json:"name"`
	Kind       int         `json:"kind"`
	Start      int64       `json:"startTimeUnixNano,string"`
	Stop       int64       `json:"endTimeUnixNano,string"`
	Attributes []attribute `json:"attributes,omitempty"`
	Links      []link      `json:"links,omitempty"`
	Status     object      `json:"status,omitempty"` // what went wrong
}

// A link names a span of another trace.
type link struct {
	TraceID string `json:"traceId"`
	SpanID  string `json:"spanId"`
}

// An object is one of JSON.
type object map[string]any

// An attribute is a KeyValue of OTLP with a text.
type attribute struct {
	Key   string `json:"key"`
	Value object `json:"value"`
}

func newAttribute(key, text string) attribute { return attribute{key, object{"stringValue": text}} }

// Numbers of OTLP.
const (
	kindInternal = 1 // SPAN_KIND_INTERNAL
	statusError  = 2 // STATUS_CODE_ERROR
)

// newID returns a random id of n bytes in hexadecimal digits. It is not zero, which would be invalid.
func newID(n int) string {
	id := make([]byte, 0, n)
	for len(id) < n {
		id = append(id, byte(1+rand.N(255)))
	}
	return hex.EncodeToString(id)
}

// newSpan begins a span. parent is "" for the first of a trace.
func (t *Traces) newSpan(name, trace, parent string, sampled bool) *span {
	now := time.Now()
	return &span{
		traces: t, sampled: sampled, began: now,
		TraceID: trace, SpanID: newID(8), ParentID: parent, Name: name, Kind: kindInternal, Start: now.UnixNano(),
	}
}

// first begins the first span of a trace.
func (t *Traces) first(name string) *span {
	trace := newID(16)
	return t.newSpan(name, trace, "", t.share.takes(trace))
}

// traceParent matches a traceparent of W3C Trace Context; what later versions append is not used.
var traceParent = regexp.MustCompile(`^[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(?:-|$)`)

// Begin is a [handoff.Tracer].
func (t *Traces) Begin(name string, from http.Header) handoff.Span {
	m := traceParent.FindStringSubmatch(from.Get("Traceparent"))
	if m == nil || strings.Trim(m[1], "0") == "" || strings.Trim(m[2], "0") == "" { // zero is no id
		return t.first(name)
	}
	flags, _ := strconv.ParseUint(m[3], 16, 8) // matched
	sampled := flags&1 == 1
	if !t.share.asParent {
		sampled = t.share.takes(m[1])
	}
	return t.newSpan(name, m[1], m[2], sampled)
}

// Begin implements [handoff.Span].
func (s *span) Begin(name string) handoff.Span {
	return s.traces.newSpan(name, s.TraceID, s.SpanID, s.sampled)
}

// End implements [handoff.Span].
func (s *span) End(code handoff.Code, fields ...string) {
	if !s.sampled {
		return
	}
	s.Stop = s.Start + int64(time.Since(s.began))
	for field := range slices.Chunk(fields, 2) {
		if field[1] != "" {
			s.Attributes = append(s.Attributes, newAttribute("switchboard."+field[0], field[1]))
		}
	}
	if code != "" {
		s.Attributes = append(s.Attributes, newAttribute("switchboard.code", string(code)))
		s.Status = object{"code": statusError, "message": string(code)}
	}
	s.traces.ended(s)
}

// Parent implements [handoff.Span].
func (s *span) Parent() string {
	flags := "-00"
	if s.sampled {
		flags = "-01"
	}
	return "00-" + s.TraceID + "-" + s.SpanID + flags
}

// Call returns the span of a call, the root of its own trace. A span that begins below it is the root of another trace,
// linked to that of the call: a call can last an hour, and people look at one handoff at a time.
func (t *Traces) Call() handoff.Span { return callSpan{t.first("call")} }

// callSpan is the span of a call.
type callSpan struct{ *span }

// Begin implements [handoff.Span].
func (s callSpan) Begin(name string) handoff.Span {
	first := s.traces.first(name)
	first.Links = []link{{s.TraceID, s.SpanID}}
	return first
}

// sampling says which traces are sent.
type sampling struct {
	asParent bool    // a trace that a client began, as the client says
	share    float64 // of the others, 0 to 1
}

// newSampling reads OTEL_TRACES_SAMPLER and its argument. The default sends every trace, unless its client does not.
func newSampling() sampling {
	name, asParent := strings.CutPrefix(strings.ToLower(os.Getenv("OTEL_TRACES_SAMPLER")), "parentbased_")
	switch name {
	case "always_on":
		return sampling{asParent, 1}
	case "always_off":
		return sampling{asParent, 0}
	case "traceidratio":
		share, err := strconv.ParseFloat(os.Getenv("OTEL_TRACES_SAMPLER_ARG"), 64)
		if err != nil || share < 0 || share > 1 {
			share = 1
		}
		return sampling{asParent, share}
	}
	return sampling{true, 1}
}

// takes decides by the trace's id, so that all services that sample by it send the same traces.
func (s sampling) takes(trace string) bool {
	n, err := strconv.ParseUint(trace[16:], 16, 64)
	return err == nil && n>>1 < uint64(s.share*(1<<63))
}
