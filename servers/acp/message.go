package acp

import (
	"bytes"
	"encoding/json"
	"fmt"

	"switchboard/handoff"
	"switchboard/servers"
)

// Codes of errors that mean something by themselves.
const (
	codeCancelled    = -32800
	codeAuth         = -32000
	codeNoSession    = -32002
	codeBadRequest   = -32600
	codeNoMethod     = -32601
	codeBadParams    = -32602
	codeInternal     = -32603
	maxDetail        = 300 // runes of what is quoted of an agent
	maxID            = 512 // bytes of an id that is kept
	maxOpenQuestions = 256 << 10
)

// A message is one JSON-RPC object. Each side numbers its own requests, from 0: an id is there or not, and 0 is one.
type message struct {
	ID     json.RawMessage `json:"id,omitempty"`
	Method string          `json:"method,omitempty"`
	Params json.RawMessage `json:"params,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
	Error  *rpcError       `json:"error,omitempty"`
}

// rpcError is the error of a response.
type rpcError struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

// Error returns the code and the agent's words.
func (e *rpcError) Error() string { return fmt.Sprintf("%d: %s", e.Code, e.Message) }

// parse decodes a frame, which is a request, a notification or a response.
func parse(frame []byte) (message, bool) {
	var m message
	if handoff.TooDeep(frame) || json.Unmarshal(frame, &m) != nil {
		return message{}, false
	}
	if bytes.Equal(m.ID, []byte("null")) {
		m.ID = nil
	}
	return m, m.Method != "" || m.ID != nil
}

// sent is a frame of ours.
type sent struct {
	Version string          `json:"jsonrpc"` // "2.0"
	ID      json.RawMessage `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  any             `json:"params,omitempty"`
	Result  any             `json:"result,omitempty"`
	Error   *rpcError       `json:"error,omitempty"`
}

// encode makes a frame of at most [servers.MaxFrame] bytes.
func encode(s sent) ([]byte, error) {
	s.Version = "2.0"
	frame, err := json.Marshal(s)
	if err == nil && len(frame) > servers.MaxFrame {
		err = servers.ErrTooLarge
	}
	return frame, err
}
