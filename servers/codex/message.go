package codex

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"regexp"

	"switchboard/handoff"
	"switchboard/servers"
)

// A message is one JSON-RPC frame. The app-server sends no "jsonrpc" field. Only notifications carry
// emittedAtMs.
type message struct {
	ID          json.RawMessage `json:"id,omitempty"`
	Method      string          `json:"method,omitempty"`
	Params      json.RawMessage `json:"params,omitempty"`
	Result      json.RawMessage `json:"result,omitempty"`
	Error       *rpcError       `json:"error,omitempty"`
	EmittedAtMs int64           `json:"emittedAtMs,omitempty"`
}

// rpcError is the error of a response. Nearly every refusal has code -32600, so that only the text tells
// them apart.
type rpcError struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

// holder is the program that has a session open, as a machine that joined tells it; "": not known.
func (e *rpcError) holder() string {
	var data struct {
		Holder string `json:"holder"`
	}
	_ = json.Unmarshal(e.Data, &data) // an app-server tells none
	if !programName.MatchString(data.Holder) {
		return ""
	}
	return data.Holder
}

// programName matches the name of a program, which is said aloud.
var programName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9 ]{0,29}$`)

// Error returns the code and the server's words.
func (e *rpcError) Error() string { return fmt.Sprintf("%d: %s", e.Code, e.Message) }

// A messageKind says what a frame is.
type messageKind int

const (
	kindNotification messageKind = iota
	kindRequest                  // the server asks us
	kindResponse
	kindMalformed
)

// parse decodes a frame.
func parse(frame []byte) (message, messageKind) {
	var m message
	if json.Unmarshal(frame, &m) != nil {
		return message{}, kindMalformed
	}
	hasID := len(m.ID) > 0 && !bytes.Equal(m.ID, []byte("null"))
	switch {
	case m.Method != "" && hasID:
		return m, kindRequest
	case m.Method != "":
		return m, kindNotification
	case hasID && (m.Error != nil || m.Result != nil):
		return m, kindResponse
	}
	return m, kindMalformed
}

// encode makes a frame. The server closes connections that send invalid UTF-8, so it is replaced.
func encode(v any) ([]byte, error) {
	frame, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return bounded(bytes.ToValidUTF8(frame, []byte("\ufffd")))
}

// bounded refuses a frame that the server would drop the connection for: 20 MiB were refused.
func bounded(frame []byte) ([]byte, error) {
	if len(frame) > servers.MaxFrame {
		return nil, servers.ErrTooLarge
	}
	return frame, nil
}

// request is a request or, without an id, a notification of ours.
type request struct {
	ID     *int64 `json:"id,omitempty"`
	Method string `json:"method"`
	Params any    `json:"params,omitempty"`
	Trace  *trace `json:"trace,omitempty"` // of requests that belong to a trace
}

// A trace is the W3C trace context of a request: what the app-server traces of it belongs below that span.
type trace struct {
	Parent string `json:"traceparent"`
}

// traceOf returns what a request tells of the trace that it belongs to; nil: it belongs to none.
func traceOf(ctx context.Context) *trace {
	if parent := handoff.SpanOf(ctx).Parent(); parent != "" {
		return &trace{parent}
	}
	return nil
}

// answer is our response to a request of the server. The id is sent back as it came.
type answer struct {
	ID     json.RawMessage `json:"id"`
	Result any             `json:"result"`
}
