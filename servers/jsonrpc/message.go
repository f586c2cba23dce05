// Package jsonrpc is a connection of JSON-RPC 2.0 over a [servers.Wire], which several kinds of agent servers use
// ([Peer]): requests and responses, notifications, and requests of the far end; and the sums of counters over all
// connections to a server ([Counters]).
//
// It must not know methods and their meaning, which belong to the kinds. All data of the far end that it keeps has a
// bound in bytes. It knows of each request whether it was certainly not sent.
package jsonrpc

import (
	"bytes"
	"encoding/json"
	"fmt"

	"switchboard/servers"
)

// A Message is a frame of the far end. Each side numbers its own requests. The number may be 0.
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

// Error returns the code and the message.
func (e *Error) Error() string { return fmt.Sprintf("%d: %s", e.Code, e.Message) }

// Parse decodes a frame; false: it is no request, notification or response.
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

// An outgoing is a frame of ours.
type outgoing struct {
	Version string          `json:"jsonrpc,omitempty"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  any             `json:"params,omitempty"`
	Result  any             `json:"result,omitempty"`
	Error   *Error          `json:"error,omitempty"`
	Trace   *trace          `json:"trace,omitempty"`
}

// A trace is the W3C trace context of a request: the parent of the far end's spans.
type trace struct {
	Parent string `json:"traceparent"`
}

// encode makes a frame. It replaces invalid UTF-8, for which a Codex app-server closes the connection.
func encode(s outgoing) ([]byte, error) {
	frame, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	frame = bytes.ToValidUTF8(frame, []byte("\ufffd"))
	if len(frame) > servers.MaxFrame { // the far end would drop the connection
		return nil, servers.ErrTooLarge
	}
	return frame, nil
}

// values estimates the number of values in JSON, by counting its brackets, braces and commas.
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
