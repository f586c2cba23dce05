package call

import "switchboard/handoff"

// spans holds the spans of handoffs whose outcome the caller has not heard, by handoff. The loop of the call owns it.
// Without tracing it is empty.
type spans map[string]workSpans

// workSpans are the spans of one function call that began a handoff.
type workSpans struct {
	request handoff.Span // until the caller has heard the outcome
	saying  handoff.Span // from the outcome until then; nil: there is no outcome yet
	tool    string
}

// begin keeps the span of a function call that began a handoff, or ends it with an error.
func (s spans) begin(run, tool string, span handoff.Span, err error) {
	switch {
	case err != nil:
		span.End(handoff.CodeOf(err), "tool", tool)
	case span.Parent() != "":
		s[run] = workSpans{request: span, tool: tool}
	}
}

// say begins the span in which an outcome is told.
func (s spans) say(run string) {
	if w, ok := s[run]; ok {
		w.saying = w.request.Begin("say")
		s[run] = w
	}
}

// end ends the spans of a handoff; heard says whether the caller heard its outcome in this call.
func (s spans) end(run string, heard bool) {
	w, ok := s[run]
	if !ok {
		return
	}
	delete(s, run)
	told := "later"
	if heard {
		told = "heard"
	}
	if w.saying != nil {
		w.saying.End("", "told", told)
	}
	w.request.End("", "tool", w.tool, "told", told)
}

// endAll ends all spans, when the call ends.
func (s spans) endAll() {
	for run := range s {
		s.end(run, false)
	}
}
