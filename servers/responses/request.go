package responses

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
)

// How requests follow each other, as the configuration names it.
const (
	Replay      = "replay"       // each request sends the whole history
	ResponseIDs = "response_ids" // each request names the response before it and sends only new items
)

// disableVariable is the environment variable that makes every request send the whole history. Its values "", "0" and
// "false" do not.
const disableVariable = "SWITCHBOARD_DISABLE_RESPONSE_THREADING"

// threadingDisabled reports whether [disableVariable] is set.
func threadingDisabled() bool {
	switch strings.ToLower(os.Getenv(disableVariable)) {
	case "", "0", "false":
		return false
	}
	return true
}

// A Model says how to request responses. Empty fields leave the default of the API.
type Model struct {
	Name         string
	Instructions string // sent with every request, as a response does not inherit them
	Effort       string // of reasoning
	Summary      string // of reasoning
	Verbosity    string
	Encrypted    bool     // return reasoning in encrypted form, so that it can be sent again
	Include      []string // what else to return
	Store        *bool    // nil: as Continuation and Encrypted require
	Continuation string   // [Replay] or [ResponseIDs]; "" is Replay
}

// stores reports whether the API is asked to keep responses. Encrypted reasoning is for users who want nothing kept.
func (m Model) stores(threading bool) bool {
	if m.Store != nil {
		return *m.Store
	}
	return !m.Encrypted && threading && m.Continuation == ResponseIDs
}

// byID reports whether requests name the response before them, which the API must keep then.
func (m Model) byID(threading bool) bool {
	return threading && m.Continuation == ResponseIDs && m.stores(threading)
}

// requestOptions are what differs between the requests of a thread.
type requestOptions struct {
	Plan      plan
	Threading bool     // whether responses may be named
	Thread    string   // key for the prompt cache
	Tools     []tool   // all tools, always in the same order, so that the cached prefix stays valid
	Allowed   []string // names of the tools that may be called
	Final     bool     // no tool may be called
}

// A request has the fields of a request that we use.
type request struct {
	Model        string            `json:"model"`
	Input        []json.RawMessage `json:"input"`
	Store        bool              `json:"store"`
	Stream       bool              `json:"stream"`
	Previous     string            `json:"previous_response_id,omitempty"`
	Instructions string            `json:"instructions,omitempty"`
	CacheKey     string            `json:"prompt_cache_key,omitempty"`
	Reasoning    reasoning         `json:"reasoning,omitzero"`
	Text         format            `json:"text,omitzero"`
	Include      []string          `json:"include,omitempty"`
	Tools        []tool            `json:"tools,omitempty"`
	Parallel     bool              `json:"parallel_tool_calls,omitempty"`
	Choice       any               `json:"tool_choice,omitempty"` // "none" or allowed
}

type reasoning struct {
	Effort  string `json:"effort,omitempty"`
	Summary string `json:"summary,omitempty"`
}

type format struct {
	Verbosity string `json:"verbosity"`
}

// A tool is a function that the model may call.
type tool struct {
	Strict      bool           `json:"strict"`
	Parameters  map[string]any `json:"parameters"`
	Name        string         `json:"name"`
	Description string         `json:"description"`
	Type        string         `json:"type"`
}

// allowed names the tools that may be called.
type allowed struct {
	Mode  string              `json:"mode"`
	Tools []map[string]string `json:"tools"`
	Type  string              `json:"type"`
}

// encryptedReasoning is what a request includes to get reasoning that can be sent again.
const encryptedReasoning = "reasoning.encrypted_content"

// request returns the request for what is asked now.
func (m Model) request(a requestOptions) request {
	p := request{
		Model: m.Name, Input: append([]json.RawMessage{}, a.Plan.Input...), Store: m.stores(a.Threading), Stream: true,
		Previous: a.Plan.Previous, Instructions: m.Instructions, CacheKey: a.Thread,
		Reasoning: reasoning{m.Effort, m.Summary}, Text: format{m.Verbosity}, Include: slices.Clone(m.Include), Tools: a.Tools,
	}
	if m.Encrypted && !slices.Contains(p.Include, encryptedReasoning) {
		p.Include = append(p.Include, encryptedReasoning)
	}
	if len(a.Tools) > 0 {
		p.Parallel, p.Choice = true, toolChoice(a)
	}
	return p
}

// toolChoice names the tools that may be called, even if those are all.
func toolChoice(a requestOptions) any {
	if a.Final || len(a.Allowed) == 0 {
		return "none"
	}
	choice := allowed{Mode: "auto", Type: "allowed_tools"}
	for _, name := range a.Allowed {
		choice.Tools = append(choice.Tools, map[string]string{"type": "function", "name": name})
	}
	return choice
}
