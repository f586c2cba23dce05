package acp

import (
	"context"
	"encoding/json"
	"time"

	"switchboard/handoff"
	"switchboard/servers/jsonrpc"
)

// Methods. Those that begin with an underscore are extensions.
const (
	doInitialize = "initialize"
	doNew        = "session/new"
	doLoad       = "session/load"
	doResume     = "session/resume"
	doList       = "session/list"
	doFork       = "session/fork"
	doClose      = "session/close"
	doSetMode    = "session/set_mode"
	doSetOption  = "session/set_config_option"
	doPrompt     = "session/prompt"
	doCancel     = "session/cancel"
	doSteer      = "_session/steering"
	doAdopt      = "_switchboard/adopt" // of a mux: see the package servers/joined/mux

	onUpdate     = "session/update"
	onPermission = "session/request_permission"
	onElicit     = "elicitation/create"
	onWithdraw   = "$/cancel_request"
	onPrompted   = "_switchboard/prompted"
	onAnswered   = "_switchboard/answered"
)

// hello returns the params of initialize. It offers neither files nor terminals: the agent uses its own. It offers
// notices, else warnings would come as the agent's messages; and elicitation, else questions would come as messages.
func (cfg *Config) hello() json.RawMessage {
	meta := ""
	if cfg.instance != nil && cfg.instance() != "" {
		meta = `,"_meta":` + handoff.Encode(map[string]string{"switchboard.instance": cfg.instance()})
	}
	return json.RawMessage(`{"protocolVersion":1,"clientCapabilities":{` +
		`"fs":{"readTextFile":false,"writeTextFile":false},"terminal":false,"session":{"notices":{}},` +
		`"elicitation":{"form":{}}},` +
		`"clientInfo":{"name":"switchboard","version":"1"` + meta + `}}`)
}

// present is a capability whose value is an object, which may be empty.
type present bool

// UnmarshalJSON implements [json.Unmarshaler]. Any value but null and false means true.
func (f *present) UnmarshalJSON(b []byte) error {
	*f = string(b) != "null" && string(b) != "false"
	return nil
}

// keptCount counts what a mux has dropped for want of room.
type keptCount struct {
	Forgotten uint64 `json:"forgotten"` // prompts that had ended
	Gaps      uint64 `json:"gaps"`      // prompts that lost messages
}

// capabilities are the agent's answer to initialize.
type capabilities struct {
	Protocol int `json:"protocolVersion"`
	Agent    struct {
		Load    bool `json:"loadSession"`
		Prompts struct {
			Image bool `json:"image"`
		} `json:"promptCapabilities"`
		Sessions struct {
			List   present `json:"list"`
			Resume present `json:"resume"`
			Fork   present `json:"fork"`
			Close  present `json:"close"`
		} `json:"sessionCapabilities"`
	} `json:"agentCapabilities"`
	Info struct {
		Version string `json:"version"`
	} `json:"agentInfo"`
	Meta struct {
		Steering struct {
			Supported bool `json:"supported"`
		} `json:"steering"`
		Switchboard struct {
			Keeps bool `json:"keeps"` // there is a mux: prompts outlive the connection, and the next one can adopt them

			keptCount
		} `json:"switchboard"`
	} `json:"_meta"`
}

// openParams are the params of the methods that make or open a session. The protocol requires the list of servers.
type openParams struct {
	Session string     `json:"sessionId,omitempty"`
	Cwd     string     `json:"cwd"`
	Servers []struct{} `json:"mcpServers"`
}

type sessionParams struct {
	Session string `json:"sessionId"`
}

// openResult is the answer of the methods that make or open a session.
type openResult struct {
	Session string         `json:"sessionId"`
	Modes   *modes         `json:"modes"`
	Options []configOption `json:"configOptions"`
}

// modes are the modes of a session. A mode says what the agent does without asking.
type modes struct {
	Current   string `json:"currentModeId"`
	Available []struct {
		ID string `json:"id"`
	} `json:"availableModes"`
}

// configOption is a setting of a session. Agents without modes may have one of the category "mode".
type configOption struct {
	ID       string          `json:"id"`
	Category string          `json:"category"`
	Current  json.RawMessage `json:"currentValue"`
	Options  []struct {
		Value string `json:"value"`
	} `json:"options"`
}

// current returns the value of a setting that is a string; "": it is something else.
func (o *configOption) current() string {
	var word string
	_ = json.Unmarshal(o.Current, &word) // "" if it fails
	return word
}

// listed is a page of sessions.
type listed struct {
	Sessions []struct {
		ID      string `json:"sessionId"`
		Cwd     string `json:"cwd"`
		Title   string `json:"title"`
		Updated stamp  `json:"updatedAt"`
	} `json:"sessions"`
	Next string `json:"nextCursor"`
}

// A stamp is a time, which some agents write without a zone; the zero time if it cannot be read.
type stamp struct{ time.Time }

// UnmarshalJSON implements [json.Unmarshaler].
func (t *stamp) UnmarshalJSON(b []byte) error {
	if t.Time.UnmarshalJSON(b) != nil {
		t.Time, _ = time.Parse(`"2006-01-02T15:04:05"`, string(b))
	}
	return nil
}

// adoptedParams are a mux's params for a prompt that an earlier connection sent.
type adoptedParams struct {
	Session string  `json:"sessionId"`
	Cwd     string  `json:"cwd"`
	Prompt  []block `json:"prompt"`
	Gap     bool    `json:"gap"` // messages of it were dropped
}

// answeredParams are a mux's params for the end of such a prompt.
type answeredParams struct {
	Session string          `json:"sessionId"`
	Result  json.RawMessage `json:"result"`
	Error   *jsonrpc.Error  `json:"error"`
	Ended   string          `json:"ended"` // why the agent ended before it answered
}

// block is a piece of a prompt or of an agent's message.
type block struct {
	Type     string `json:"type"` // text, image; others are not read
	Text     string `json:"text,omitempty"`
	MimeType string `json:"mimeType,omitempty"`
	Data     string `json:"data,omitempty"` // base64
}

type promptParams struct {
	Session string  `json:"sessionId"`
	Prompt  []block `json:"prompt"`
	Meta    *meta   `json:"_meta,omitempty"`
}

// meta is the _meta of a prompt.
type meta struct {
	Trace    string    `json:"traceparent,omitempty"` // of W3C Trace Context: the parent span
	Steering *steering `json:"steering,omitempty"`
}

// traceOf returns the _meta with the span of ctx; nil: there is no span.
func traceOf(ctx context.Context) *meta {
	if parent := handoff.SpanOf(ctx).Parent(); parent != "" {
		return &meta{Trace: parent}
	}
	return nil
}

// steering asks the agent not to start a turn if the one that is steered has ended: nobody would follow it.
type steering struct {
	Idle string `json:"idleBehavior"`
}

type steered struct {
	Outcome string `json:"outcome"` // injected, promptRequired, startedNewTurn
}

// prompted is the answer to a prompt: its turn has ended.
type prompted struct {
	Stop  string          `json:"stopReason"` // end_turn, max_tokens, max_turn_requests, refusal, cancelled
	Usage json.RawMessage `json:"usage"`      // nil: not known; null: there was none
}

// usage is what a turn used.
type usage struct {
	Input       int64 `json:"inputTokens"`
	Output      int64 `json:"outputTokens"`
	CachedRead  int64 `json:"cachedReadTokens"`
	CachedWrite int64 `json:"cachedWriteTokens"`
	Thought     int64 `json:"thoughtTokens"`
}

// updateParams are the params of session/update. The kind of an update decides which fields are set.
type updateParams struct {
	Session string `json:"sessionId"`
	Update  update `json:"update"`
}

type update struct {
	Kind    string          `json:"sessionUpdate"`
	Message string          `json:"messageId"`
	Content json.RawMessage `json:"content"` // a block of a chunk, a list of a tool call

	toolCall
	Mode    string         `json:"currentModeId"`
	Options []configOption `json:"configOptions"`
	Meta    updateMeta     `json:"_meta"`
}

// updateMeta are extensions of some agents.
type updateMeta struct {
	Origin struct {
		Kind string `json:"kind"` // human, or another reason why the agent works
	} `json:"_claude/origin"`
	Codex struct {
		Status struct {
			Type string `json:"type"` // active, idle, systemError
		} `json:"threadStatus"`
	} `json:"codex"`
	Output struct {
		Data string `json:"data"`
	} `json:"terminal_output_delta"`
	Exit struct {
		Code *int `json:"exit_code"`
	} `json:"terminal_exit"`
}

// toolCall is a tool call, or the changed fields of one.
type toolCall struct {
	ID        string          `json:"toolCallId"`
	Name      string          `json:"name"`
	Title     string          `json:"title"`
	ToolKind  string          `json:"kind"`   // read, edit, delete, move, search, execute, think, fetch, or another
	Status    string          `json:"status"` // pending, in_progress, completed, failed
	Input     json.RawMessage `json:"rawInput"`
	Output    json.RawMessage `json:"rawOutput"`
	Locations []struct {
		Path string `json:"path"`
	} `json:"locations"`
}

// content is a piece of a tool call's content, which each update replaces.
type content struct {
	Type    string  `json:"type"` // content, diff, terminal
	Content block   `json:"content"`
	Path    string  `json:"path"`
	Old     *string `json:"oldText"` // nil: the file is new
	New     string  `json:"newText"`
}

type permissionParams struct {
	Session string `json:"sessionId"`
	Call    struct {
		toolCall
		Content json.RawMessage `json:"content"`
	} `json:"toolCall"`
	Options []permissionOption `json:"options"`
}

type permissionOption struct {
	ID   string `json:"optionId"`
	Name string `json:"name"`
	Kind string `json:"kind"` // allow_once, allow_always, reject_once, reject_always
}

// outcome is the answer to a request for permission.
type outcome struct {
	Outcome struct {
		Outcome string `json:"outcome"` // selected, cancelled
		Option  string `json:"optionId,omitempty"`
	} `json:"outcome"`
}

type elicitParams struct {
	Session string          `json:"sessionId"`
	Mode    string          `json:"mode"` // form, url
	Message string          `json:"message"`
	Schema  json.RawMessage `json:"requestedSchema"`
}

// elicited is the answer to an elicitation.
type elicited struct {
	Action  string         `json:"action"` // accept, decline, cancel
	Content map[string]any `json:"content,omitempty"`
}
