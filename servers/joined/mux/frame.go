package mux

import (
	"bytes"
	"encoding/json"

	"switchboard/handoff"
)

// Methods of the protocol that the mux handles, and its own.
const (
	doInitialize = "initialize"
	doNew        = "session/new"
	doLoad       = "session/load"
	doResume     = "session/resume"
	doList       = "session/list"
	doFork       = "session/fork"
	doClose      = "session/close"
	doPrompt     = "session/prompt"
	doCancel     = "session/cancel"
	doAdopt      = "_switchboard/adopt"

	onPermission = "session/request_permission"
	onElicit     = "elicitation/create"
	onWithdraw   = "$/cancel_request"
	onPrompted   = "_switchboard/prompted"
	onAnswered   = "_switchboard/answered"
)

// Error codes of JSON-RPC.
const (
	codeBusy     = -32600 // an invalid request
	codeNoMethod = -32601
	codeFailed   = -32603
)

// A frame is a message of JSON-RPC.
type frame struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   json.RawMessage `json:"error,omitempty"`
}

// read decodes a message; false: it is invalid.
func read(line []byte) (frame, bool) {
	var f frame
	if handoff.TooDeep(line) || json.Unmarshal(line, &f) != nil {
		return f, false
	}
	if bytes.Equal(f.ID, []byte("null")) {
		f.ID = nil
	}
	return f, f.Method != "" || f.ID != nil
}

// line encodes a message. Its raw parts must be valid JSON.
func (f frame) line() []byte {
	f.Version = "2.0"
	line, _ := json.Marshal(f) // valid parts can be encoded
	return line
}

// raw encodes a value of a type that can be encoded.
func raw(value any) json.RawMessage {
	text, _ := json.Marshal(value)
	return text
}

// failure returns the error of a response.
func failure(code int, why string) json.RawMessage {
	return raw(map[string]any{"code": code, "message": why})
}

// busy returns the error of a request that cannot be done while a prompt runs.
func busy(why string) json.RawMessage {
	return raw(map[string]any{
		"code": codeBusy, "message": why, "data": map[string]string{"reason": "switchboard_prompt_runs"},
	})
}

// place is the part of params and results that a mux reads.
type place struct {
	Session string `json:"sessionId"`
	Cwd     string `json:"cwd"`
}

func placeOf(params json.RawMessage) place {
	var p place
	_ = json.Unmarshal(params, &p) // without params it is about no session
	return p
}

// promptTexts returns the text blocks of a prompt.
func promptTexts(params json.RawMessage) json.RawMessage {
	type block struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	var p struct {
		Prompt []block `json:"prompt"`
	}
	_ = json.Unmarshal(params, &p) // the agent refuses an invalid prompt
	texts := []block{}
	for _, b := range p.Prompt {
		if b.Type == "text" {
			texts = append(texts, b)
		}
	}
	return raw(texts)
}

// nameOf returns the name of a client's instance from its first message; "": it has none.
func nameOf(first []byte) string {
	f, ok := read(first)
	if !ok || f.Method != doInitialize {
		return ""
	}
	var hello struct {
		Client struct {
			Meta struct {
				Instance string `json:"switchboard.instance"`
			} `json:"_meta"`
		} `json:"clientInfo"`
	}
	_ = json.Unmarshal(f.Params, &hello) // "" if it fails
	return hello.Client.Meta.Instance
}
