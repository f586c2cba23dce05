package simulator

import (
	"bytes"
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

// Error makes a fault an error: that of decoding a field.
func (f *fault) Error() string { return f.message }

// decode decodes a client's JSON into T. The fault names the field of the wrong type, with path before it.
func decode[T any](raw []byte, path string) (v T, f *fault) {
	f = decodingFault(json.Unmarshal(raw, &v), path)
	return v, f
}

// decodeStrictly decodes a client's JSON over what v has, and refuses fields that v does not know.
func decodeStrictly(raw []byte, v any, path string) *fault {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	err := d.Decode(v)
	if err != nil {
		if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
			return unknown(path + "." + strings.Trim(name, `"`))
		}
	}
	return decodingFault(err, path)
}

func decodingFault(err error, path string) *fault {
	if err == nil {
		return nil
	}
	if f, ok := errors.AsType[*fault](err); ok {
		return f
	}
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return refusal("invalid_type", strings.Trim(path+"."+e.Field, "."), "Invalid type for '%s': expected %s.",
			strings.Trim(path+"."+e.Field, "."), e.Type.String())
	}
	return refusal("invalid_json", "", "The event is not valid JSON.")
}
