// Package jsonrpc is one connection of JSON-RPC 2.0, as kinds of agent servers speak it over a [servers.Wire]: requests
// and their answers, notifications, and what the far end asks ([Peer]), and the counters of all connections to a server
// ([Counters]).
//
// It must not know what is asked: methods and their meaning belong to the kinds. Whatever the far end sends, what is
// kept of it has a bound in bytes, and of each request it is known whether it certainly never left.
package jsonrpc

import (
	"bytes"
	"encoding/json"
	"fmt"

	"switchboard/servers"
)

// A Message is a frame of the far end. Each side numbers its own requests, and 0 is a number.
type Message struct {
	ID     json.RawMessage `json:"id,omitempty"` // nil: a notification
	Method string          `json:"method,omitempty"`
	Params json.RawMessage `json:"params,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
	Error  *Error          `json:"error,omitempty"`
}

// An Error is the error of a response.
type Error struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

// Error returns the code and the words of the far end.
func (e *Error) Error() string { return fmt.Sprintf("%d: %s", e.Code, e.Message) }

// Parse decodes a frame, which is a request, a notification or a response; false: it is none of these.
func Parse(frame []byte) (Message, bool) {
	var m Message
	if json.Unmarshal(frame, &m) != nil {
		return Message{}, false
	}
	if bytes.Equal(m.ID, []byte("null")) {
		m.ID = nil
	}
	return m, m.Method != "" || m.ID != nil
}

// A sent is a frame of ours.
type sent struct {
	Version string          `json:"jsonrpc,omitempty"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  any             `json:"params,omitempty"`
	Result  any             `json:"result,omitempty"`
	Error   *Error          `json:"error,omitempty"`
	Trace   *trace          `json:"trace,omitempty"`
}

// A trace is the W3C trace context of a request: what the far end traces of it belongs below that span.
type trace struct {
	Parent string `json:"traceparent"`
}

// encode makes a frame. A codex app-server closes connections that send invalid UTF-8, so that it is replaced.
func encode(s sent) ([]byte, error) {
	frame, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	return bounded(bytes.ToValidUTF8(frame, []byte("\ufffd")))
}

// bounded refuses a frame that the far end would drop the connection for.
func bounded(frame []byte) ([]byte, error) {
	if len(frame) > servers.MaxFrame {
		return nil, servers.ErrTooLarge
	}
	return frame, nil
}

// values counts what stands apart in JSON: elements, members and what holds them.
func values(frame []byte) int {
	n := 0
	for i := 0; i < len(frame); i++ {
		switch frame[i] {
		case '{', '[', ',':
			n++
		case '"':
			for i++; i < len(frame) && frame[i] != '"'; i++ {
				if frame[i] == '\\' {
					i++
				}
			}
		}
	}
	return n
}
