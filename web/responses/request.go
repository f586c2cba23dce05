package responses

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"switchboard/handoff"
)

// Bounds of a request.
const (
	maxBody     = 8 << 20   // bytes, with pictures
	maxSchema   = 32 << 10  // of text.format
	maxContext  = 256 << 10 // of instructions and the earlier conversation; also of the pictures that a response keeps
	maxInput    = 1000      // items
	maxMetadata = 16        // entries, with keys of 64 and values of 512 characters

	// minOutputTokens is the smallest max_output_tokens that is accepted. Nothing cuts an answer here, and a client
	// that gives a smaller number counts on that.
	minOutputTokens = 1024
)

// A request is the body of POST /v1/responses, with the fields that are used. The types of openai-go cannot be used:
// they lose all input items if one has no type, which is common.
type request struct {
	Model           string            `json:"model"`
	Input           piece             `json:"input"`
	Instructions    *string           `json:"instructions"`
	Previous        *string           `json:"previous_response_id"`
	Conversation    json.RawMessage   `json:"conversation"`
	Stream          bool              `json:"stream"`
	Background      bool              `json:"background"`
	Store           *bool             `json:"store"`
	Metadata        map[string]string `json:"metadata"`
	Tools           []tool            `json:"tools"`
	ToolChoice      json.RawMessage   `json:"tool_choice"`
	Temperature     *float64          `json:"temperature"`
	TopP            *float64          `json:"top_p"`
	MaxOutputTokens *int              `json:"max_output_tokens"`
	MaxToolCalls    *int              `json:"max_tool_calls"`
	Prompt          piece             `json:"prompt"`
	Reasoning       json.RawMessage   `json:"reasoning"`
	Text            json.RawMessage   `json:"text"`

	choice       string      // tool_choice: auto, none or ""
	conversation string      // its id, or ""
	format       format      // text.format
	input        parsedInput // the parsed input

	sum     string // the SHA-256 of the body
	release func() // gives back the room that is reserved for the response
}

// A piece is a part of a JSON body. Unlike a [json.RawMessage] it is no copy, which saves one of large pictures. So the
// body must not change.
type piece []byte

// UnmarshalJSON implements [json.Unmarshaler]. [json.Unmarshal] passes a part of its input.
func (p *piece) UnmarshalJSON(data []byte) error {
	*p = data
	return nil
}

type tool struct {
	Type  string `json:"type"`
	Label string `json:"server_label"`
}

// format is text.format.
type format struct {
	Type   string          `json:"type"`
	Schema json.RawMessage `json:"schema"`
}

func (r *request) store() bool { return r.Store == nil || *r.Store }

// exact reports whether the answer has to be JSON.
func (r *request) exact() bool {
	return r.format.Type == "json_schema" || r.format.Type == "json_object"
}

// readRequest reads and checks a body.
func readRequest(body []byte) (*request, *fault) {
	var r request
	if f := decode(body, &r); f != nil {
		return nil, f
	}
	f := r.check()
	if f == nil {
		f = r.take(readInput(r.Input))
	}
	if f != nil {
		return nil, f
	}
	if len(r.input.mentions) > 0 { // the input is checked once the mentioned items have been found
		return &r, nil
	}
	return &r, r.input.check()
}

// take takes an input, to which it adds the instructions of the request.
func (r *request) take(input parsedInput, f *fault) *fault {
	if r.input = input; f == nil && r.Instructions != nil && *r.Instructions != "" {
		r.input.instructions = append([]string{*r.Instructions}, r.input.instructions...)
	}
	return f
}

// decode reads JSON, and ignores unknown fields.
func decode(body []byte, v any) *fault { return decodeAt("", body, v) }

// decodeAt reads JSON that is a part of a body; faults name its place.
func decodeAt(place string, body []byte, v any) *fault {
	if handoff.TooDeep(body) { // before it is parsed, because parsers recurse
		return bad("", "", fmt.Sprintf("The body nests deeper than %d.", handoff.MaxDepth))
	}
	err := json.Unmarshal(body, v)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		is, _, _ := strings.Cut(wrong.Value, " ") // of a number it has the digits, too
		return mistyped(strings.Trim(place+"."+wrong.Field, "."), cmp.Or(jsonTypes[wrong.Type.Kind()], "a number"), is)
	}
	if err != nil {
		return bad("", "", "We could not parse the JSON body of your request.")
	}
	return nil
}

// mistyped returns the fault for a value of a wrong type; is, the type that it has, may be "".
func mistyped(param, expected, is string) *fault {
	what := "the body"
	if param != "" {
		what = "'" + param + "'"
	}
	message := "Invalid type for " + what + ": expected " + expected
	switch {
	case strings.HasPrefix(is, "a"), strings.HasPrefix(is, "o"):
		message += ", but got an " + is + " instead"
	case is != "":
		message += ", but got a " + is + " instead"
	}
	return bad("invalid_type", param, message+".")
}

// jsonTypes has the JSON types of Go types, for people; the others are numbers.
var jsonTypes = map[reflect.Kind]string{
	reflect.Bool: "a boolean", reflect.String: "a string", reflect.Slice: "an array", reflect.Struct: "an object",
	reflect.Map: "an object", reflect.Int: "an integer",
}

// isObject reports whether a value is absent or an object.
func isObject(raw []byte) bool {
	return absent(raw) || bytes.HasPrefix(bytes.TrimSpace(raw), []byte("{"))
}

func absent(raw []byte) bool { return len(raw) == 0 || string(raw) == "null" }

func required(param string) *fault {
	return bad("missing_required_parameter", param, "Missing required parameter: '"+param+"'.")
}

// readConversation reads the conversation: an id, or an object with one.
func (r *request) readConversation() *fault {
	if absent(r.Conversation) || json.Unmarshal(r.Conversation, &r.conversation) == nil {
		return nil
	}
	var ref reference
	if json.Unmarshal(r.Conversation, &ref) != nil || ref.ID == "" {
		return mistyped("conversation", "an id, or an object with one", "")
	}
	r.conversation = ref.ID
	return nil
}

func checkMetadata(m map[string]string) *fault {
	if len(m) > maxMetadata {
		return bad("", "metadata", fmt.Sprintf("Metadata has at most %d entries.", maxMetadata))
	}
	for k, v := range m {
		if utf8.RuneCountInString(k) > 64 || utf8.RuneCountInString(v) > 512 {
			return bad("", "metadata", "Keys of metadata have at most 64 characters, values at most 512.")
		}
	}
	return nil
}

// check checks the parameters. It refuses those that no agent of the fleet can follow, unless it does no harm to ignore
// them.
func (r *request) check() *fault {
	if r.Model == "" {
		f := required("model")
		f.Message += " GET /v1/models lists what there is."
		return f
	}
	if absent(r.Input) {
		return required("input")
	}
	if f := cmp.Or(r.readConversation(), checkMetadata(r.Metadata)); f != nil {
		return f
	}
	for _, t := range r.Tools { // SDKs show approval requests of an MCP server only if the request has it as a tool
		if t.Type != "mcp" || t.Label != serverOf(r.Model) {
			return bad("unsupported_tool", "tools", "The agents of this fleet use their own tools, so a request cannot bring any. "+
				"To receive their questions, it has one tool of the type 'mcp' with the 'server_label' '"+
				handoff.Clip(serverOf(r.Model), 80)+"'.")
		}
	}
	own := absent(r.ToolChoice) || json.Unmarshal(r.ToolChoice, &r.choice) == nil
	switch {
	case !isObject(r.Reasoning):
		return mistyped("reasoning", "an object", "")
	case max(len(r.Reasoning), len(r.Text)) > 2*maxSchema: // they are stored with the response
		return bad("", "", fmt.Sprintf("'reasoning' and 'text' have at most %d bytes each.", 2*maxSchema))
	case r.Previous != nil && r.conversation != "":
		return bad("mutually_exclusive_parameters", "conversation",
			"Give 'previous_response_id' or 'conversation', not both.")
	case r.Background && !r.store():
		return unsupported("background", "Background responses need 'store' to be true.")
	case r.conversation != "" && !r.store():
		return unsupported("store", "A response in a conversation is stored with it.")
	case !own || !slices.Contains([]string{"", "auto", "none"}, r.choice):
		return unsupported("tool_choice",
			"The agents choose their tools themselves: 'tool_choice' is 'auto', 'none' (you bring no tools), or absent.")
	case r.MaxOutputTokens != nil && *r.MaxOutputTokens < minOutputTokens:
		return unsupported("max_output_tokens", fmt.Sprintf(
			"The agents' answers are not cut: 'max_output_tokens' is absent, or at least %d and without effect.", minOutputTokens))
	case r.MaxToolCalls != nil:
		return unsupported("max_tool_calls", "Unsupported parameter: 'max_tool_calls' is not supported with this model.")
	case !absent(r.Prompt):
		return unsupported("prompt", "Unsupported parameter: 'prompt' is not supported with this model.")
	}
	return r.readText()
}

// ignored returns the parameters of the request that have no effect.
func (r *request) ignored() (names []string) {
	if r.Temperature != nil && *r.Temperature != 1 {
		names = append(names, "temperature")
	}
	if r.TopP != nil && *r.TopP != 1 {
		names = append(names, "top_p")
	}
	if r.MaxOutputTokens != nil {
		names = append(names, "max_output_tokens")
	}
	return names
}

// readText reads and checks text.format.
func (r *request) readText() *fault {
	if absent(r.Text) {
		return nil
	}
	var text struct {
		Format format `json:"format"`
	}
	if json.Unmarshal(r.Text, &text) != nil {
		return mistyped("text", "an object with an object 'format'", "")
	}
	switch r.format = text.Format; r.format.Type {
	case "", "text", "json_object":
	case "json_schema":
		if absent(r.format.Schema) || !isObject(r.format.Schema) || len(r.format.Schema) > maxSchema {
			return bad("invalid_value", "text.format.schema",
				fmt.Sprintf("'text.format.schema' is a JSON schema of at most %d bytes: an object.", maxSchema))
		}
	default:
		return unsupported("text.format", "'text.format' is text, json_object or json_schema.")
	}
	return nil
}

// context returns the context of the prompt for the agent: the earlier conversation, instructions and the answer's
// format.
func (r *request) context() []handoff.Context {
	var all []handoff.Context
	tell := func(key string, trusted bool, value string) {
		if value != "" {
			all = append(all, handoff.Context{Key: key, Trusted: trusted, Value: value})
		}
	}
	tell(handoff.DisableResponseThreading, true, r.Metadata[handoff.DisableResponseThreading])
	tell("conversation_so_far", false, strings.Join(r.input.before, "\n"))
	tell("instructions_of_the_caller", true, strings.Join(r.input.instructions, "\n\n"))
	switch r.format.Type {
	case "json_object":
		tell("answer_format", true, "The final answer is one JSON object and nothing else: no fence, no words around it.")
	case "json_schema":
		tell("answer_format", true, "The final answer is one JSON value and nothing else: no fence, no words around it. "+
			"It fits this JSON schema: "+string(r.format.Schema))
	}
	return all
}
