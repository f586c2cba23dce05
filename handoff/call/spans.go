package call

import "switchboard/handoff"

// spans are those of work whose outcome the caller has not heard, by run. The loop of the call owns them. Where nothing
// is traced there are none.
type spans map[string]workSpans

// workSpans are the spans of one function call that gave work.
type workSpans struct {
	request handoff.Span // until the caller has heard the outcome
	saying  handoff.Span // from the outcome on; nil: there is none yet
	tool    string
}

// begin keeps the span of a function call that began a run, or ends it with why it did not.
func (s spans) begin(run, tool string, span handoff.Span, err error) {
	switch {
	case err != nil:
		span.End(handoff.CodeOf(err), "tool", tool)
	case span.Parent() != "":
		s[run] = workSpans{request: span, tool: tool}
	}
}

// say notes that there is an outcome to be told.
func (s spans) say(run string) {
	if w, ok := s[run]; ok {
		w.saying = w.request.Begin("say")
		s[run] = w
	}
}

// end ends the spans of a run, with whether the caller heard of its outcome in this call.
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

// endAll ends what is left when the call does.
func (s spans) endAll() {
	for run := range s {
		s.end(run, false)
	}
}
