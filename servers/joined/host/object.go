package host

import (
	"encoding/json"
	"regexp"
)

// An object is a JSON object by the exact names of its fields. Decoded into a struct, "CWD" would fill the field of
// "cwd" too; an app-server ignores it, and the gate would judge a value that does not count.
type object map[string]json.RawMessage

// text returns a field that is a string; "": it is missing or something else.
func (o object) text(name string) (text string) {
	_ = json.Unmarshal(o[name], &text) // "" if it fails
	return text
}

// judgeTrace judges a field with the parent span of a request, if it is there. The field may hold nothing else.
func (o object) judgeTrace(name string) error {
	value, traced := o[name]
	if !traced {
		return nil
	}
	var trace object
	if json.Unmarshal(value, &trace) != nil || len(trace) != 1 || !traceparent.MatchString(trace.text("traceparent")) {
		return errMethod
	}
	o.set(name, trace)
	return nil
}

// traceparent matches a traceparent of W3C Trace Context.
var traceparent = regexp.MustCompile(`^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$`)

// setIn is like set for a field inside of other fields.
func (o object) setIn(path []string, value any) {
	if len(path) > 1 {
		in := object{}
		_ = json.Unmarshal(o[path[0]], &in) // what is no object is replaced
		in.setIn(path[1:], value)
		value = in
	}
	o.set(path[0], value)
}

// set encodes a value into a field. The value must be one that can be encoded.
func (o object) set(name string, value any) { o[name], _ = json.Marshal(value) }
