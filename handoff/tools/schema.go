package tools

import (
	"encoding/json"
	"strings"

	"switchboard/handoff"
)

// A property is one argument of a tool, as the voice model is told of it.
type property struct {
	Name        string   `json:"-"`
	Required    bool     `json:"-"`
	Type        string   `json:"type"`
	Description string   `json:"description,omitempty"`
	Enum        []string `json:"enum,omitempty"`
	Minimum     int      `json:"minimum,omitempty"`
	Maximum     int      `json:"maximum,omitempty"`
}

// text is an argument of words.
func text(name, description string) property {
	return property{Name: name, Type: "string", Description: description}
}

// count is an argument that says how many.
func count(name, description string, most int) property {
	return property{Name: name, Type: "integer", Description: description, Minimum: 1, Maximum: most}
}

// choice is an argument that is one of a few words.
func choice(name, description string, words ...string) property {
	return property{Name: name, Type: "string", Description: description, Enum: words}
}

// must returns a property that has to be given.
func must(p property) property {
	p.Required = true
	return p
}

// schema is the JSON schema of an object with these properties in this order, which is the one a model writes
// them in, and no others.
func schema(properties []property) json.RawMessage {
	var fields []string
	var required []string
	for _, p := range properties {
		fields = append(fields, handoff.Encode(p.Name)+":"+handoff.Encode(p))
		if p.Required {
			required = append(required, p.Name)
		}
	}
	rest := ""
	if required != nil {
		rest = `"required":` + handoff.Encode(required) + `,`
	}
	return json.RawMessage(`{"type":"object","properties":{` + strings.Join(fields, ",") + `},` + rest + `"additionalProperties":false}`)
}
