package responses

import (
	"os"
	"slices"
	"strings"

	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"
)

// How requests continue each other, as the configuration has it.
const (
	Replay      = "replay"       // each sends the whole history
	ResponseIDs = "response_ids" // each names the response before it and sends what is new
)

// disableVariable is the environment variable that makes every request send the whole history. Any value but "",
// "0" and "false" counts.
const disableVariable = "SWITCHBOARD_DISABLE_RESPONSE_THREADING"

// threadingDisabled reads [disableVariable].
func threadingDisabled() bool {
	switch strings.ToLower(os.Getenv(disableVariable)) {
	case "", "0", "false":
		return false
	}
	return true
}

// A Model is how a model is asked. Empty fields leave the server's own setting.
type Model struct {
	Name         string
	Instructions string // sent with every request: nothing inherits them
	Effort       string // of reasoning
	Summary      string // of reasoning
	Verbosity    string
	Encrypted    bool     // have reasoning given back in encrypted form, so that it can be sent again
	Include      []string // what else to give back
	Store        *bool    // nil: as Continuation and Encrypted need it
	Continuation string   // [Replay] or [ResponseIDs]; "" is Replay
	MaxOutput    int64    // tokens of one response
}

// stores reports whether responses are kept by the server that is asked. Reasoning that is given back encrypted is
// for those who want nothing kept.
func (m Model) stores(threading bool) bool {
	if m.Store != nil {
		return *m.Store
	}
	return !m.Encrypted && threading && m.Continuation == ResponseIDs
}

// byID reports whether requests name the response before them, which must then be kept.
func (m Model) byID(threading bool) bool {
	return threading && m.Continuation == ResponseIDs && m.stores(threading)
}

// An asking is what differs from one request of a thread to the next.
type asking struct {
	Plan      plan
	Threading bool         // naming responses is not switched off
	Thread    string       // for the prompt cache
	Tools     []definition // all there are, in an order that never changes, so that the cached prefix holds
	Allowed   []string     // those that may be called
	Final     bool         // no tool may be called any more
}

// A definition is what a model is told of a tool.
type definition struct {
	Name        string
	Description string
	Parameters  map[string]any // JSON schema of an object
}

// request makes a request.
func (m Model) request(a asking) responses.ResponseNewParams {
	items := make(responses.ResponseInputParam, 0, len(a.Plan.Input))
	for _, it := range a.Plan.Input {
		items = append(items, param.Override[responses.ResponseInputItemUnionParam](it))
	}
	p := responses.ResponseNewParams{
		Model: m.Name,
		Input: responses.ResponseNewParamsInputUnion{OfInputItemList: items},
		Store: param.NewOpt(m.stores(a.Threading)),
	}
	if a.Plan.Previous != "" {
		p.PreviousResponseID = param.NewOpt(a.Plan.Previous)
	}
	if m.Instructions != "" {
		p.Instructions = param.NewOpt(m.Instructions)
	}
	if m.MaxOutput > 0 {
		p.MaxOutputTokens = param.NewOpt(m.MaxOutput)
	}
	if a.Thread != "" {
		p.PromptCacheKey = param.NewOpt(a.Thread)
	}
	p.Reasoning = shared.ReasoningParam{Effort: shared.ReasoningEffort(m.Effort),
		Summary: shared.ReasoningSummary(m.Summary)}
	p.Text = responses.ResponseTextConfigParam{Verbosity: responses.ResponseTextConfigVerbosity(m.Verbosity)}
	for _, what := range m.Include {
		p.Include = append(p.Include, responses.ResponseIncludable(what))
	}
	if m.Encrypted && !slices.Contains(p.Include, responses.ResponseIncludableReasoningEncryptedContent) {
		p.Include = append(p.Include, responses.ResponseIncludableReasoningEncryptedContent)
	}
	for _, d := range a.Tools {
		p.Tools = append(p.Tools, responses.ToolUnionParam{OfFunction: &responses.FunctionToolParam{
			Name: d.Name, Description: param.NewOpt(d.Description), Parameters: d.Parameters, Strict: param.NewOpt(true),
		}})
	}
	if len(a.Tools) > 0 {
		p.ParallelToolCalls, p.ToolChoice = param.NewOpt(true), toolChoice(a)
	}
	return p
}

// toolChoice names the tools that may be called, whether those are all or not.
func toolChoice(a asking) responses.ResponseNewParamsToolChoiceUnion {
	if a.Final || len(a.Allowed) == 0 {
		return responses.ResponseNewParamsToolChoiceUnion{OfToolChoiceMode: param.NewOpt(responses.ToolChoiceOptionsNone)}
	}
	allowed := responses.ToolChoiceAllowedParam{Mode: responses.ToolChoiceAllowedModeAuto}
	for _, name := range a.Allowed {
		allowed.Tools = append(allowed.Tools, map[string]any{"type": "function", "name": name})
	}
	return responses.ResponseNewParamsToolChoiceUnion{OfAllowedTools: &allowed}
}
