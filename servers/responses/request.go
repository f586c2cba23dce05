package responses

import (
	"os"
	"slices"
	"strings"

	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"
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
	MaxOutput    int64    // tokens of one response
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
	Threading bool         // whether responses may be named
	Thread    string       // key for the prompt cache
	Tools     []definition // all tools, always in the same order, so that the cached prefix stays valid
	Allowed   []string     // names of the tools that may be called
	Final     bool         // no tool may be called
}

// A definition describes a tool to a model.
type definition struct {
	Name        string
	Description string
	Parameters  map[string]any // JSON schema of an object
}

// request returns the parameters of a request.
func (m Model) request(a requestOptions) responses.ResponseNewParams {
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
	for _, part := range m.Include {
		p.Include = append(p.Include, responses.ResponseIncludable(part))
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

// toolChoice names the tools that may be called, even if those are all.
func toolChoice(a requestOptions) responses.ResponseNewParamsToolChoiceUnion {
	if a.Final || len(a.Allowed) == 0 {
		return responses.ResponseNewParamsToolChoiceUnion{OfToolChoiceMode: param.NewOpt(responses.ToolChoiceOptionsNone)}
	}
	allowed := responses.ToolChoiceAllowedParam{Mode: responses.ToolChoiceAllowedModeAuto}
	for _, name := range a.Allowed {
		allowed.Tools = append(allowed.Tools, map[string]any{"type": "function", "name": name})
	}
	return responses.ResponseNewParamsToolChoiceUnion{OfAllowedTools: &allowed}
}
