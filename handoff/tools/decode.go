package tools

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"switchboard/handoff"
	"switchboard/handoff/wording"
)

// decode reads the arguments of a function call and names the fault, so that the voice model can mend it. The
// raw text is never taken for a prompt. Policy is not among the known names, so none can pass.
func decode(raw string, into any, known []string) error {
	if !utf8.ValidString(raw) {
		return handoff.Fault(handoff.CodeMalformed, "the arguments are not valid UTF-8", "")
	}
	if strings.TrimSpace(raw) == "" {
		raw = "{}"
	}
	if handoff.TooDeep([]byte(raw)) { // first: parsers recurse
		return handoff.Fault(handoff.CodeMalformed, fmt.Sprintf("the arguments nest deeper than %d", handoff.MaxDepth), "")
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal([]byte(raw), &fields); err != nil {
		return handoff.Fault(handoff.CodeMalformed, "the arguments are not a JSON object", err.Error())
	}
	for name := range fields {
		if !slices.Contains(known, name) {
			return handoff.Fault(handoff.CodeMalformed, fmt.Sprintf("there is no argument %.40q; there %s", name, thereAre(known)), "")
		}
	}
	if err := json.Unmarshal([]byte(raw), into); err != nil {
		if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			return handoff.Fault(handoff.CodeMalformed, fmt.Sprintf("the argument %s must be a %s, not a %s", e.Field, wanted(e.Type.Kind().String()), e.Value), "")
		}
		return handoff.Fault(handoff.CodeMalformed, "the arguments are not a JSON object", err.Error())
	}
	return nil
}

func thereAre(known []string) string {
	if len(known) == 0 {
		return "are none"
	}
	return wording.IsAre(known) + " " + strings.Join(known, ", ")
}

func wanted(kind string) string {
	if kind == "int" {
		return "whole number"
	}
	return kind
}
