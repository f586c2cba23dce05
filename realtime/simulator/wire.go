package simulator

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"switchboard/handoff"
)

// fields are the fields of a server event, without type and event_id.
type fields map[string]any

// ids makes unique ids that are short enough for the protocol (32 characters).
type ids struct {
	salt string
	n    uint64
}

func newIDs() ids { return ids{salt: rand.Text()[:16]} }

func (i *ids) next(kind string) string {
	i.n++
	return kind + "_" + i.salt + strconv.FormatUint(i.n, 36)
}

// A fault is a refusal in OpenAI's shape.
type fault struct {
	code    string
	param   string
	message string
}

// refusal returns a fault whose message is formatted as by [fmt.Sprintf].
func refusal(code, param, format string, args ...any) *fault {
	return &fault{code: code, param: param, message: fmt.Sprintf(format, args...)}
}

func missing(param string) *fault {
	return refusal("missing_required_parameter", param, "Missing required parameter: '%s'.", param)
}

func unknown(param string) *fault {
	return refusal("unknown_parameter", param, "Unknown parameter: '%s'.", param)
}

func invalid(param, value string, supported ...string) *fault {
	msg := fmt.Sprintf("Invalid value: '%.60s'.", value)
	if len(supported) > 0 {
		msg += " Supported values are: '" + strings.Join(supported, "', '") + "'."
	}
	return &fault{code: "invalid_value", param: param, message: msg}
}

func wrongType(param, want string) *fault {
	return refusal("invalid_type", param, "Invalid type for '%s': expected %s.", param, want)
}

// emit adds an event to the frames to send.
func (s *session) emit(kind string, f fields) {
	f["type"], f["event_id"] = kind, s.ids.next("event")
	b, err := json.Marshal(f)
	if err != nil {
		return // maps of strings, numbers and checked JSON always marshal
	}
	s.out = append(s.out, b)
}

// refuse sends an error event. All its fields are there; empty ones are null.
func (s *session) refuse(f *fault, eventID string) {
	s.emit("error", fields{"error": fields{
		"type": "invalid_request_error", "code": orNull(f.code), "message": f.message, "param": orNull(f.param),
		"event_id": orNull(eventID),
	}})
}

func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// readable reports whether a client's text is JSON that is safe to parse: parsers recurse.
func readable(text string) bool { return !handoff.TooDeep([]byte(text)) && gjson.Valid(text) }

// decode decodes a client's JSON into T. The fault names the field of the wrong type, with path before it.
func decode[T any](raw []byte, path string) (T, *fault) {
	var v T
	err := json.Unmarshal(raw, &v)
	if err == nil {
		return v, nil
	}
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return v, wrongType(strings.Trim(path+"."+e.Field, "."), e.Type.String())
	}
	return v, refusal("invalid_json", "", "The event is not valid JSON.")
}
