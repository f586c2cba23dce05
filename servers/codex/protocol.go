package codex

import (
	"encoding/json"

	"switchboard/handoff"
)

// The part of the app-server protocol that is used, of Codex 0.169.0. The comment of each type names its methods. A
// test checks all field names against recorded frames.

// initializeParams: initialize. clientInfo.name becomes the originator of threads and must be a valid HTTP header
// value.
type initializeParams struct {
	ClientInfo   clientInfo   `json:"clientInfo"`
	Capabilities capabilities `json:"capabilities"`
}

type clientInfo struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

type capabilities struct {
	ExperimentalAPI           bool     `json:"experimentalApi"`       // additionalContext needs it
	RequiredHumanApproval     bool     `json:"requiredHumanApproval"` // we have a person decide each kindHuman command
	OptOutNotificationMethods []string `json:"optOutNotificationMethods"`
}

// initializeResult: initialize. The version is only in userAgent, as "name/VERSION (…".
type initializeResult struct {
	UserAgent string `json:"userAgent"`
}

// threadStartParams: thread/start. Empty fields leave the server's own settings.
type threadStartParams struct {
	Cwd            string `json:"cwd,omitempty"`
	Model          string `json:"model,omitempty"`
	ApprovalPolicy string `json:"approvalPolicy,omitempty"`
	Sandbox        string `json:"sandbox,omitempty"`
	Ephemeral      bool   `json:"ephemeral,omitempty"`
}

// threadResult: thread/start, thread/resume, thread/fork. Only thread/resume has an InitialTurnsPage.
type threadResult struct {
	Thread           wireThread      `json:"thread"`
	Cwd              string          `json:"cwd"`
	ApprovalPolicy   json.RawMessage `json:"approvalPolicy"` // a word, or an object of rules
	Sandbox          sandboxPolicy   `json:"sandbox"`
	InitialTurnsPage *turnsPage      `json:"initialTurnsPage"`
}

type sandboxPolicy struct {
	Type string `json:"type"` // readOnly, workspaceWrite, dangerFullAccess, externalSandbox
}

// threadResumeParams: thread/resume. Without excludeTurns the whole history comes, which costs 55–340 ms
// at 200 turns.
type threadResumeParams struct {
	ThreadID         string       `json:"threadId"`
	ExcludeTurns     bool         `json:"excludeTurns"`
	InitialTurnsPage turnsRequest `json:"initialTurnsPage"`
}

// threadForkParams: thread/fork. The copy has the source's settings, and the ids of its turns.
type threadForkParams struct {
	ThreadID     string `json:"threadId"`
	LastTurnID   string `json:"lastTurnId,omitempty"` // the newest one copied; "": all
	ExcludeTurns bool   `json:"excludeTurns"`
	Ephemeral    bool   `json:"ephemeral,omitempty"`
}

type turnsRequest struct {
	Limit     int    `json:"limit"`
	ItemsView string `json:"itemsView"` // notLoaded, summary or full
}

// threadParams: thread/unsubscribe, thread/read.
type threadParams struct {
	ThreadID string `json:"threadId"`
}

// threadNameParams: thread/name/set.
type threadNameParams struct {
	ThreadID string `json:"threadId"`
	Name     string `json:"name"`
}

// threadReadResult: thread/read.
type threadReadResult struct {
	Thread wireThread `json:"thread"`
}

// threadListParams: thread/list. Without modelProviders only threads of the default provider are listed, without
// sourceKinds only those of terminals and editors.
type threadListParams struct {
	Limit          int      `json:"limit"` // the server clamps it to 1..100
	Cursor         *string  `json:"cursor,omitempty"`
	SourceKinds    []string `json:"sourceKinds"`
	UseStateDBOnly bool     `json:"useStateDbOnly,omitempty"` // without its files: 15 ms a page, not 100 to 600
	SortKey        string   `json:"sortKey"`
	SortDirection  string   `json:"sortDirection"`
	ModelProviders []string `json:"modelProviders"`
}

// threadListResult: thread/list.
type threadListResult struct {
	Data       []wireThread `json:"data"`
	NextCursor *string      `json:"nextCursor"`
}

// turnsListParams: thread/turns/list. Newest first by default. The thread need not be loaded.
type turnsListParams struct {
	ThreadID string  `json:"threadId"`
	Cursor   *string `json:"cursor,omitempty"`
	turnsRequest
}

// turnsPage: thread/turns/list, and initialTurnsPage of thread/resume.
type turnsPage struct {
	Data       []wireTurn `json:"data"`
	NextCursor *string    `json:"nextCursor"`
}

// itemsListParams: thread/items/list. Without a turn id it lists the whole thread.
type itemsListParams struct {
	ThreadID      string  `json:"threadId"`
	TurnID        string  `json:"turnId,omitempty"`
	Limit         int     `json:"limit"`
	SortDirection string  `json:"sortDirection"`
	Cursor        *string `json:"cursor,omitempty"`
}

// itemsListResult: thread/items/list. Only finished items are listed.
type itemsListResult struct {
	Data       []itemEntry `json:"data"`
	NextCursor *string     `json:"nextCursor"`
}

type itemEntry struct {
	TurnID string   `json:"turnId"`
	Item   wireItem `json:"item"`
}

// turnStartParams: turn/start. The client message id is stored with the message, and is the clientId of its userMessage
// item. It is no idempotency key.
type turnStartParams struct {
	ThreadID            string                  `json:"threadId"`
	Input               []userInput             `json:"input"`
	ClientUserMessageID string                  `json:"clientUserMessageId,omitempty"`
	AdditionalContext   map[string]contextEntry `json:"additionalContext,omitempty"`
}

type userInput struct {
	Type string `json:"type"`          // text, image; messages of others may also have files
	Text string `json:"text"`          // text
	URL  string `json:"url,omitempty"` // image: https: or data:
}

// contextEntry stands before the user's message: as a developer message (application) or as the quoted
// output of a tool (untrusted).
type contextEntry struct {
	Value string `json:"value"`
	Kind  string `json:"kind"`
}

// turnResult: turn/start. If a turn runs already, the input joins it and the result has its id.
type turnResult struct {
	Turn wireTurn `json:"turn"`
}

// turnSteerParams: turn/steer.
type turnSteerParams struct {
	ThreadID            string      `json:"threadId"`
	ExpectedTurnID      string      `json:"expectedTurnId"`
	Input               []userInput `json:"input"`
	ClientUserMessageID string      `json:"clientUserMessageId"` // the clientId of its userMessage, as in turn/start
}

// turnSteerResult: turn/steer.
type turnSteerResult struct {
	TurnID string `json:"turnId"`
}

// turnInterruptParams: turn/interrupt. An empty turn id would interrupt whichever turn runs.
type turnInterruptParams struct {
	ThreadID string `json:"threadId"`
	TurnID   string `json:"turnId"`
}

// wireThread is a thread in thread/start, thread/resume, thread/list and thread/read.
type wireThread struct {
	ID        string       `json:"id"`
	From      string       `json:"forkedFromId"` // the source of a copy; lists have none
	Preview   string       `json:"preview"`      // the first message of the user
	Name      *string      `json:"name"`
	Cwd       string       `json:"cwd"`
	CreatedAt int64        `json:"createdAt"` // seconds
	UpdatedAt int64        `json:"updatedAt"` // seconds
	RecencyAt *int64       `json:"recencyAt"` // seconds
	Ephemeral bool         `json:"ephemeral"` // it is not stored
	Status    threadStatus `json:"status"`
	GitInfo   *struct {
		Branch *string `json:"branch"`
	} `json:"gitInfo"`
}

type threadStatus struct {
	Type        string   `json:"type"` // notLoaded, idle, systemError, active
	ActiveFlags []string `json:"activeFlags,omitempty"`
}

// wireTurn is a turn in turn/started, turn/completed, turn/start and thread/turns/list. In turn/completed
// the items are at most the last message of the agent.
type wireTurn struct {
	ID          string     `json:"id"`
	Status      string     `json:"status"`
	CompletedAt *int64     `json:"completedAt"`
	Items       []wireItem `json:"items"`
	Error       *wireError `json:"error"`
}

// Statuses of a turn. A turn that has ended has completedAt. An interrupted turn without it has just begun or is about
// to end (see [doubtful]), or was cut by a crash of the server.
const (
	statusInProgress  = "inProgress"
	statusCompleted   = "completed"
	statusFailed      = "failed"
	statusInterrupted = "interrupted"
)

// end returns how a turn ended, without its answer.
func (w *wireTurn) end() handoff.TurnEnded {
	e := handoff.TurnEnded{Status: handoff.TurnInterrupted}
	switch w.Status {
	case statusCompleted:
		e.Status = handoff.TurnCompleted
	case statusFailed:
		e.Status = handoff.TurnFailed
	}
	if w.Error != nil {
		e.Code = w.Error.code()
		e.Detail = handoff.ClipRunes(w.Error.Message, maxDetail)
		if d := w.Error.AdditionalDetails; d != nil && *d != "" {
			e.Detail += ": " + handoff.ClipRunes(*d, maxDetail)
		}
	}
	return e
}

type wireError struct {
	Message           string          `json:"message"`
	AdditionalDetails *string         `json:"additionalDetails"`
	Info              json.RawMessage `json:"codexErrorInfo"` // a word, or an object with one key
}

// Notifications that are used.
const (
	noteTurnStarted      = "turn/started"
	noteTurnCompleted    = "turn/completed"
	noteItemStarted      = "item/started"
	noteItemCompleted    = "item/completed"
	noteMessageDelta     = "item/agentMessage/delta"
	noteOutputDelta      = "item/commandExecution/outputDelta"
	noteUsage            = "thread/tokenUsage/updated" // after each answer of the model
	noteError            = "error"
	noteReviewed         = "item/autoApprovalReview/completed"
	noteThreadStatus     = "thread/status/changed"
	noteThreadName       = "thread/name/updated"
	noteThreadSettings   = "thread/settings/updated"
	noteThreadClosed     = "thread/closed"
	noteThreadArchived   = "thread/archived" // without thread/closed
	noteThreadDeleted    = "thread/deleted"  // without thread/closed
	noteThreadUnarchived = "thread/unarchived"
	noteRequestResolved  = "serverRequest/resolved"
	noteGoal             = "thread/goal/updated"
	noteGoalCleared      = "thread/goal/cleared" // also when a thread without a goal is resumed
)

// optOut are the notifications that the server must not send: we do not read them, and some come with every step.
var optOut = []string{
	"account/rateLimits/updated", "account/updated", "app/list/updated", "configWarning", "deprecationNotice",
	"hook/completed", "hook/started", "item/commandExecution/terminalInteraction", "item/fileChange/outputDelta",
	"item/fileChange/patchUpdated", "item/mcpToolCall/progress", "item/plan/delta", "item/reasoning/summaryPartAdded",
	"item/reasoning/summaryTextDelta", "item/reasoning/textDelta", "mcpServer/startupStatus/updated",
	"remoteControl/status/changed", "skills/changed", "thread/environment/connected", "thread/environment/disconnected",
	"thread/queue/changed", "thread/readState/changed", "thread/started", "turn/diff/updated",
	"turn/moderationMetadata", "turn/plan/updated", "warning",
	"thread/realtime/item/completed", "thread/realtime/item/started", "thread/realtime/item/transcript/delta",
	"thread/realtime/itemAdded", "thread/realtime/outputAudio/delta", "thread/realtime/transcript/delta",
	"thread/realtime/transcript/done",
}

// note is a notification or a request of the server, as far as it is used. Each method fills some of the fields.
type note struct {
	ThreadID   string          `json:"threadId"`
	TurnID     string          `json:"turnId"`     // item/*, error and requests
	Turn       *wireTurn       `json:"turn"`       // turn/started, turn/completed
	Item       *wireItem       `json:"item"`       // item/started, item/completed
	ItemID     string          `json:"itemId"`     // deltas and requests
	Delta      string          `json:"delta"`      // deltas
	WillRetry  bool            `json:"willRetry"`  // error
	Status     *threadStatus   `json:"status"`     // thread/status/changed
	ThreadName *string         `json:"threadName"` // thread/name/updated
	RequestID  json.RawMessage `json:"requestId"`  // serverRequest/resolved
	Settings   *threadSettings `json:"threadSettings"`
	ReviewID   string          `json:"reviewId"` // item/autoApprovalReview/completed, as the next two
	Review     json.RawMessage `json:"review"`
	Action     json.RawMessage `json:"action"`
	Usage      *wireUsage      `json:"tokenUsage"` // thread/tokenUsage/updated
	Goal       *wireGoal       `json:"goal"`       // thread/goal/updated

	works bool // turn/completed: subagents of the turn still work
}

// wireUsage: thread/tokenUsage/updated.
type wireUsage struct {
	Total wireTokens `json:"total"` // of the thread
	Last  wireTokens `json:"last"`  // of the newest answer of the model
}

type wireTokens struct {
	Input     int64 `json:"inputTokens"`
	Cached    int64 `json:"cachedInputTokens"`
	Output    int64 `json:"outputTokens"`
	Reasoning int64 `json:"reasoningOutputTokens"`
}

// threadSettings: thread/settings/updated, when somebody has changed what the next turns may do.
type threadSettings struct {
	Cwd            string          `json:"cwd"`
	ApprovalPolicy json.RawMessage `json:"approvalPolicy"`
	Sandbox        sandboxPolicy   `json:"sandboxPolicy"`
}
