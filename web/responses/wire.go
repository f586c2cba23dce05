package responses

import (
	"encoding/json"

	"switchboard/handoff"
)

// Statuses of responses and of items.
const (
	queued     = "queued"
	inProgress = "in_progress"
	completed  = "completed"
	failed     = "failed"
	cancelled  = "cancelled"
	incomplete = "incomplete"
)

// ended reports whether a status is final.
func ended(status string) bool { return status != queued && status != inProgress }

// A response is OpenAI's object response. Its output is never null.
type response struct {
	ID                 string            `json:"id"`
	Object             string            `json:"object"`
	CreatedAt          int64             `json:"created_at"`
	CompletedAt        *int64            `json:"completed_at"`
	Status             string            `json:"status"`
	Background         bool              `json:"background"`
	Error              *failure          `json:"error"`
	IncompleteDetails  *details          `json:"incomplete_details"`
	Instructions       *string           `json:"instructions"`
	MaxOutputTokens    *int              `json:"max_output_tokens"`
	Metadata           map[string]string `json:"metadata"`
	Model              string            `json:"model"`
	Output             []item            `json:"output"`
	ParallelToolCalls  bool              `json:"parallel_tool_calls"`
	PreviousResponseID *string           `json:"previous_response_id"`
	Conversation       *reference        `json:"conversation"`
	Reasoning          json.RawMessage   `json:"reasoning"`
	Store              bool              `json:"store"`
	Temperature        float64           `json:"temperature"`
	Text               json.RawMessage   `json:"text"`
	ToolChoice         string            `json:"tool_choice"`
	Tools              []struct{}        `json:"tools"`
	TopP               float64           `json:"top_p"`
	Truncation         string            `json:"truncation"`
	Usage              *usage            `json:"usage"`
}

type failure struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

type details struct {
	Reason string `json:"reason"`
}

type reference struct {
	ID string `json:"id"`
}

type usage struct {
	Input        int64 `json:"input_tokens"`
	InputDetails struct {
		Cached int64 `json:"cached_tokens"`
	} `json:"input_tokens_details"`
	Output        int64 `json:"output_tokens"`
	OutputDetails struct {
		Reasoning int64 `json:"reasoning_tokens"`
	} `json:"output_tokens_details"`
	Total int64 `json:"total_tokens"`
}

// Types of items.
const (
	typeMessage   = "message"
	typeThought   = "reasoning"
	typeCall      = "mcp_call"
	typeApproval  = "mcp_approval_request"
	typeApproved  = "mcp_approval_response"
	typeReference = "item_reference"
)

// An item is an item of a response's output. Its type decides which fields it has.
type item struct {
	ID          string  `json:"id"`
	Type        string  `json:"type"`
	Status      string  `json:"status,omitempty"`
	Role        string  `json:"role,omitempty"`         // message
	Content     *[]part `json:"content,omitempty"`      // message
	Summary     *[]part `json:"summary,omitempty"`      // reasoning
	ServerLabel string  `json:"server_label,omitempty"` // mcp_call, mcp_approval_request: the machine
	Name        string  `json:"name,omitempty"`         // likewise: the tool
	Arguments   *string `json:"arguments,omitempty"`    // likewise, JSON
	Output      *string `json:"output,omitempty"`       // mcp_call
	Error       *string `json:"error,omitempty"`        // mcp_call
}

// A part is a part of a message's content, or of a reasoning's summary.
type part struct {
	Type        string      `json:"type"`
	Text        string      `json:"text"`
	Annotations *[]struct{} `json:"annotations,omitempty"`
	Logprobs    *[]struct{} `json:"logprobs,omitempty"`
}

var none = &[]struct{}{}

// textItem returns a message or a reasoning without an id.
func textItem(kind handoff.ItemKind, status string, parts ...part) item {
	parts = append([]part{}, parts...) // never null
	if kind == handoff.ItemReasoning {
		return item{Type: typeThought, Status: status, Summary: &parts}
	}
	return item{Type: typeMessage, Status: status, Role: "assistant", Content: &parts}
}

func textPart(kind handoff.ItemKind, text string) part {
	if kind == handoff.ItemReasoning {
		return part{Type: "summary_text", Text: text}
	}
	return part{Type: "output_text", Text: text, Annotations: none, Logprobs: none}
}

// textTypes has the prefix of the ids of items with text, and the types of the events about their text, by kind.
var textTypes = map[handoff.ItemKind]struct {
	prefix, added, delta, done, ended string
	logprobs                          *[]struct{}
}{
	handoff.ItemMessage:   {"msg_", evPart, evText, evTextDone, evPartDone, none},
	handoff.ItemReasoning: {"rs_", evSummary, evThought, evThoughtEnd, evSummaryEnd, nil},
}

// An event is an event of a response's stream.
type event struct {
	Type         string      `json:"type"`
	Seq          int         `json:"sequence_number"`
	Response     *response   `json:"response,omitempty"`
	ItemID       string      `json:"item_id,omitempty"`
	OutputIndex  *int        `json:"output_index,omitempty"`
	ContentIndex *int        `json:"content_index,omitempty"`
	SummaryIndex *int        `json:"summary_index,omitempty"`
	Item         *item       `json:"item,omitempty"`
	Part         *part       `json:"part,omitempty"`
	Delta        string      `json:"delta,omitempty"`
	Text         *string     `json:"text,omitempty"`
	Arguments    *string     `json:"arguments,omitempty"`
	Logprobs     *[]struct{} `json:"logprobs,omitempty"`
}

// Types of events.
const (
	evCreated    = "response.created"
	evQueued     = "response.queued"
	evProgress   = "response.in_progress"
	evCompleted  = "response.completed"
	evFailed     = "response.failed"
	evIncomplete = "response.incomplete"
	evAdded      = "response.output_item.added"
	evDone       = "response.output_item.done"
	evPart       = "response.content_part.added"
	evPartDone   = "response.content_part.done"
	evText       = "response.output_text.delta"
	evTextDone   = "response.output_text.done"
	evSummary    = "response.reasoning_summary_part.added"
	evSummaryEnd = "response.reasoning_summary_part.done"
	evThought    = "response.reasoning_summary_text.delta"
	evThoughtEnd = "response.reasoning_summary_text.done"
	evCalling    = "response.mcp_call.in_progress"
	evCalled     = "response.mcp_call.completed"
	evCallFailed = "response.mcp_call.failed"
	evArgs       = "response.mcp_call_arguments.delta"
	evArgsDone   = "response.mcp_call_arguments.done"
)

// frame returns an event in the form of Server-Sent Events.
func frame(e event) []byte {
	return []byte("event: " + e.Type + "\ndata: " + handoff.Encode(e) + "\n\n")
}
