package keeper

import (
	"bytes"
	"encoding/json"

	"switchboard/handoff"
)

// Methods of the protocol that mean something to a keeper, and its own.
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

// Codes of errors of JSON-RPC.
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

// read decodes a message; false: it is none.
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

// line encodes a message of parts that were decoded, or can be encoded.
func (f frame) line() []byte {
	f.Version = "2.0"
	line, _ := json.Marshal(f) // raw parts are valid
	return line
}

// raw encodes a value that can be.
func raw(value any) json.RawMessage {
	text, _ := json.Marshal(value)
	return text
}

// failure is the error of a response.
func failure(code int, why string) json.RawMessage {
	return raw(map[string]any{"code": code, "message": why})
}

// busy is the error of what cannot be done while a prompt runs.
func busy(why string) json.RawMessage {
	return raw(map[string]any{
		"code": codeBusy, "message": why, "data": map[string]string{"reason": "switchboard_prompt_runs"},
	})
}

// place is what a keeper reads of params and results.
type place struct {
	Session string `json:"sessionId"`
	Cwd     string `json:"cwd"`
}

func placeOf(params json.RawMessage) place {
	var p place
	_ = json.Unmarshal(params, &p) // without them it is of no session
	return p
}

// words returns of a prompt what is text.
func words(params json.RawMessage) json.RawMessage {
	type block struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	var p struct {
		Prompt []block `json:"prompt"`
	}
	_ = json.Unmarshal(params, &p) // the agent refuses what cannot be read
	texts := []block{}
	for _, b := range p.Prompt {
		if b.Type == "text" {
			texts = append(texts, b)
		}
	}
	return raw(texts)
}

// nameOf returns the name of the instance that a client is of, as the first message says; "": it says none.
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
	_ = json.Unmarshal(f.Params, &hello) // else it has none
	return hello.Client.Meta.Instance
}
