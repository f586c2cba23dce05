package turns

import (
	"bytes"
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"

	"switchboard/handoff"
)

// maxFields bounds the fields of a form that is asked; a longer one is for a screen of its own.
const maxFields = 20

// A Form is what an elicitation asks to be filled: the fields of a flat JSON schema, as MCP and ACP have it.
type Form struct {
	fields []field // Set once
}

type field struct {
	key      string
	property property
	options  []option
	custom   string // key of the property for an answer beside the options; "": none
	optional bool
}

// option is an answer that is offered: its name, and what the form has for it.
type option struct{ name, value string }

// property is a field of the schema.
type property struct {
	Type        string   `json:"type"`
	Title       string   `json:"title"`
	Description string   `json:"description"`
	Enum        []string `json:"enum"`
	Names       []string `json:"enumNames"`
	OneOf       []named  `json:"oneOf"`
	Items       struct {
		Enum  []string `json:"enum"`
		AnyOf []named  `json:"anyOf"`
		OneOf []named  `json:"oneOf"`
	} `json:"items"`
	Min int  `json:"minItems"`
	Max *int `json:"maxItems"`
}

type named struct {
	Const string `json:"const"`
	Title string `json:"title"`
}

// ReadForm reads the schema of a form; false: it asks for something that cannot be asked here. A form without fields is
// a plain yes or no.
func ReadForm(schema json.RawMessage) (Form, bool) {
	var s struct {
		Properties json.RawMessage `json:"properties"`
		Required   []string        `json:"required"`
	}
	if len(schema) == 0 || string(schema) == "null" {
		return Form{}, true
	}
	var properties map[string]property
	if json.Unmarshal(schema, &s) != nil || len(s.Properties) > 0 && json.Unmarshal(s.Properties, &properties) != nil {
		return Form{}, false
	}
	var f Form
	for _, key := range keysOf(s.Properties) {
		of, required := properties[key], slices.Contains(s.Required, key)
		if base, other := strings.CutSuffix(key, "_custom"); other && of.Type == "string" && !required {
			if choice, is := properties[base]; is && len(choice.options()) > 0 {
				continue
			}
		}
		one := field{key: key, property: of, options: of.options(), optional: !required}
		if extra, is := properties[key+"_custom"]; is && extra.Type == "string" && len(one.options) > 0 {
			one.custom = key + "_custom"
		}
		if !slices.Contains([]string{"string", "boolean", "integer", "number", "array"}, of.Type) ||
			of.Type == "array" && len(one.options) == 0 {
			return Form{}, false
		}
		f.fields = append(f.fields, one)
	}
	if len(f.fields) == 1 { // to leave the only field out would be no answer
		f.fields[0].optional = false
	}
	return f, len(f.fields) <= maxFields
}

// keysOf returns the keys of an object in the order in which they are written, each once.
func keysOf(object json.RawMessage) (keys []string) {
	d := json.NewDecoder(bytes.NewReader(object))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil
	}
	for d.More() {
		t, err := d.Token()
		key, is := t.(string)
		var value json.RawMessage
		if err != nil || !is || d.Decode(&value) != nil {
			return keys
		}
		if !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	return keys
}

// options returns the answers that a property offers, no two of one name.
func (p *property) options() (all []option) {
	if p.Type == "boolean" {
		return []option{{"yes", "true"}, {"no", "false"}}
	}
	for _, list := range [][]named{p.OneOf, p.Items.AnyOf, p.Items.OneOf} {
		for _, o := range list {
			all = append(all, option{cmp.Or(o.Title, o.Const), o.Const})
		}
	}
	for i, word := range slices.Concat(p.Enum, p.Items.Enum) {
		o := option{word, word}
		if i < len(p.Names) && len(p.Names) == len(p.Enum) {
			o.name = cmp.Or(p.Names[i], word)
		}
		all = append(all, o)
	}
	for i, o := range all {
		if slices.ContainsFunc(all[:i], func(other option) bool { return other.name == o.name }) {
			all[i].name = o.value
		}
	}
	return all
}

// Len returns the number of fields.
func (f Form) Len() int { return len(f.fields) }

// Asks returns the fields as they are asked. If there is only one, its text is the message of the elicitation.
func (f Form) Asks(message string) []handoff.Ask {
	var all []handoff.Ask
	for _, one := range f.fields {
		p := one.property
		ask := handoff.Ask{Text: message, Many: p.Type == "array", Optional: one.optional,
			Only: len(one.options) > 0 && one.custom == ""}
		if len(f.fields) > 1 || message == "" {
			ask.Text = strings.Trim(cmp.Or(p.Title, one.key)+": "+p.Description, ": ")
		}
		for _, o := range one.options {
			ask.Options = append(ask.Options, o.name)
		}
		all = append(all, ask)
	}
	return all
}

// Fill returns the form with the answers to each of its fields, as [handoff.Question.Read] returns them. The error is
// of [handoff.CodeMalformed].
func (f Form) Fill(answers [][]string) (map[string]any, error) {
	if len(answers) != len(f.fields) {
		return nil, handoff.Fault(handoff.CodeMalformed, "each question needs an answer, one on a line", "")
	}
	form := map[string]any{}
	for i := range f.fields {
		if err := f.fields[i].fill(form, answers[i]); err != nil {
			return nil, err
		}
	}
	if len(form) == 0 && len(f.fields) > 0 {
		return nil, handoff.Fault(handoff.CodeMalformed, "nothing is answered", "")
	}
	return form, nil
}

// fill puts the answers to a field into the form.
func (a *field) fill(form map[string]any, answers []string) error {
	unfit := func(why string) error {
		return handoff.Fault(handoff.CodeMalformed, "“"+cmp.Or(a.property.Title, a.key)+"” "+why, "")
	}
	if len(answers) == 0 {
		if !a.optional {
			return unfit("needs an answer")
		}
		return nil
	}
	chosen, own := []string{}, []string{}
	for _, answer := range answers {
		i := slices.IndexFunc(a.options, func(o option) bool { return o.name == answer })
		if i < 0 {
			i = slices.IndexFunc(a.options, func(o option) bool { return strings.EqualFold(o.value, answer) })
		}
		if i < 0 {
			own = append(own, answer)
		} else {
			chosen = append(chosen, a.options[i].value)
		}
	}
	if a.custom != "" && len(own) > 0 {
		form[a.custom] = strings.Join(own, ", ")
		own = nil
	}
	switch p := &a.property; {
	case len(own) > 0 && len(a.options) > 0:
		return unfit("has no answer of that name")
	case len(chosen)+len(own) == 0:
	case p.Type == "array":
		if len(chosen) < p.Min || p.Max != nil && len(chosen) > *p.Max {
			return unfit("takes another number of answers")
		}
		form[a.key] = chosen
	case len(chosen)+len(own) > 1:
		return unfit("takes one answer")
	default:
		value, ok := p.value(append(chosen, own...)[0])
		if !ok {
			return unfit("needs a number")
		}
		form[a.key] = value
	}
	return nil
}

// value returns an answer as the schema types it; false: it is no number.
func (p *property) value(answer string) (any, bool) {
	switch p.Type {
	case "boolean":
		return answer == "true", true
	case "integer":
		n, err := strconv.ParseInt(answer, 10, 64)
		return n, err == nil
	case "number":
		n, err := strconv.ParseFloat(answer, 64)
		return n, err == nil && !math.IsNaN(n) && !math.IsInf(n, 0) // JSON has no such numbers
	}
	return answer, true
}
