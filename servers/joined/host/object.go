package host

import (
	"encoding/json"
	"regexp"
)

// An object is a JSON object by the exact names of its fields. Go's decoder also fills a field of a struct from one in
// other letters, which an app-server ignores: it would be judged by what does not count.
type object map[string]json.RawMessage

// text returns a field that is a text; "" also where it is something else.
func (o object) text(name string) (text string) {
	_ = json.Unmarshal(o[name], &text) // what is no text is none that may pass
	return text
}

// judgeTrace judges a field that tells the span that a request belongs below, if it is there. It may hold nothing else.
func (o object) judgeTrace(name string) error {
	value, traced := o[name]
	if !traced {
		return nil
	}
	var told object
	if json.Unmarshal(value, &told) != nil || len(told) != 1 || !traceparent.MatchString(told.text("traceparent")) {
		return errMethod
	}
	o.set(name, told)
	return nil
}

// traceparent matches a span of W3C trace context.
var traceparent = regexp.MustCompile(`^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$`)

// set puts a value, which can be encoded, into a field.
func (o object) set(name string, value any) { o[name], _ = json.Marshal(value) }
