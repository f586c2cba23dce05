package codex

import (
	"encoding/json"
	"fmt"
	"strings"

	"switchboard/handoff"
	"switchboard/servers/turns"
)

// Types of items, in item/started, item/completed and thread/turns/list.
const (
	typeUserMessage  = "userMessage"
	typeHookPrompt   = "hookPrompt"
	typeFunctionOut  = "functionCallOutput"
	typeAgentMessage = "agentMessage"
	typeReasoning    = "reasoning"
	typePlan         = "plan"
	typeCommand      = "commandExecution"
	typeFileChange   = "fileChange"
	typeMCPTool      = "mcpToolCall"
	typeDynamicTool  = "dynamicToolCall"
	typeWebSearch    = "webSearch"
	typeCollab       = "collabAgentToolCall"
	typeSubagent     = "subAgentActivity"
)

// phaseFinal marks the message that answers the request. Other messages of a turn comment on the work. The phase comes
// from the model's provider and may be missing.
const phaseFinal = "final_answer"

// wireItem is one item. Which fields it has depends on its type.
type wireItem struct {
	Type             string          `json:"type"`
	ID               string          `json:"id"`
	Text             string          `json:"text,omitempty"`              // agentMessage, plan
	Phase            *string         `json:"phase,omitempty"`             // agentMessage
	Summary          []string        `json:"summary,omitempty"`           // reasoning
	Content          json.RawMessage `json:"content,omitempty"`           // userMessage: parts; reasoning: raw text
	Delivery         string          `json:"delivery,omitempty"`          // agentMessage: "async", with questions
	Questions        []asyncQuestion `json:"questions,omitempty"`         // agentMessage
	ClientID         *string         `json:"clientId,omitempty"`          // userMessage: of its turn/start
	Command          string          `json:"command,omitempty"`           // commandExecution
	AggregatedOutput *string         `json:"aggregatedOutput,omitempty"`  // commandExecution
	ExitCode         *int            `json:"exitCode,omitempty"`          // commandExecution
	Status           string          `json:"status,omitempty"`            // inProgress, completed, failed, declined
	Changes          []fileChange    `json:"changes,omitempty"`           // fileChange
	Server           string          `json:"server,omitempty"`            // mcpToolCall
	Namespace        *string         `json:"namespace,omitempty"`         // dynamicToolCall
	Tool             string          `json:"tool,omitempty"`              // mcpToolCall, dynamicToolCall
	Arguments        json.RawMessage `json:"arguments,omitempty"`         // mcpToolCall, dynamicToolCall
	Query            string          `json:"query,omitempty"`             // webSearch
	Receivers        []string        `json:"receiverThreadIds,omitempty"` // collabAgentToolCall; empty since multi_agent_v2
	AgentThread      string          `json:"agentThreadId,omitempty"`     // subAgentActivity
	AgentPath        string          `json:"agentPath,omitempty"`         // subAgentActivity: "/root/NAME"
	Activity         string          `json:"kind,omitempty"`              // subAgentActivity: started, …

	by string // the subagent that did it; "": the agent of the turn
}

// agentName returns the name of a subagent, the end of its path; "": it has none.
func agentName(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

// agents returns the threads of the subagents to which an item gives work.
func (w *wireItem) agents() []string {
	switch {
	case w.Type == typeCollab:
		return w.Receivers
	case w.Type == typeSubagent && w.AgentThread != "" && w.Activity != "completed" && w.Activity != "interrupted":
		return []string{w.AgentThread}
	}
	return nil
}

type fileChange struct {
	Path string          `json:"path"`
	Kind json.RawMessage `json:"kind,omitempty"` // {"type": add, delete or update, "move_path"}
	Diff string          `json:"diff,omitempty"` // of an update its hunks; else the file
}

// maxArguments bounds the arguments of a tool, in bytes. Longer ones are left out, since a part would be invalid JSON.
const maxArguments = 64 << 10

// maxOutput is how much of the end of a command's output an item has, in bytes.
const maxOutput = 64 << 10

// fromUser reports whether an item is input of the agent, which is not reported.
func (w *wireItem) fromUser() bool {
	return w.Type == typeUserMessage || w.Type == typeHookPrompt || w.Type == typeFunctionOut
}

// client returns the id that a client gave to a userMessage, or "".
func (w *wireItem) client() string {
	if w.ClientID == nil {
		return ""
	}
	return *w.ClientID
}

// item translates an item.
func (w *wireItem) item() turns.Item {
	streamed := w.Type == typeAgentMessage || w.Type == typeReasoning
	return turns.Item{
		Item: w.shown(), Streamed: streamed, Paths: w.paths(),
		Answer: w.Phase != nil && *w.Phase == phaseFinal && !w.asks(), // questions have this phase, too
	}
}

// reported translates the items of a turn, without the agent's input and without items of too long ids.
func reported(items []wireItem) []turns.Item {
	var all []turns.Item
	for i := range items {
		if w := &items[i]; !w.fromUser() && w.fit() {
			all = append(all, w.item())
		}
	}
	return all
}

// shown returns an item as people see it.
func (w *wireItem) shown() handoff.Item {
	i := handoff.Item{ID: w.ID, Kind: handoff.ItemOther, Text: w.Text, By: w.by}
	i.Failed = w.Status == "failed" || w.Status == "declined"
	switch w.Type {
	case typeAgentMessage:
		i.Kind = handoff.ItemMessage
	case typeReasoning:
		i.Kind, i.Text = handoff.ItemReasoning, strings.Join(w.Summary, "\n\n")
	case typeCommand:
		i.Kind, i.Text, i.Exit = handoff.ItemCommand, plainCommand(w.Command), w.ExitCode
		if w.AggregatedOutput != nil {
			i.Output = handoff.Tail(*w.AggregatedOutput, maxOutput)
		}
	case typeFileChange:
		i.Kind, i.Text = handoff.ItemFileChange, strings.Join(w.paths(), "\n")
		i.Changes = w.changes()
	case typeMCPTool, typeDynamicTool:
		i.Kind, i.Text = handoff.ItemToolCall, w.toolName()
		if len(w.Arguments) <= maxArguments {
			i.Arguments = string(w.Arguments)
		}
	case typeWebSearch:
		i.Kind, i.Text = handoff.ItemToolCall, strings.TrimSpace("web search "+w.Query)
	case typePlan:
		i.Kind = handoff.ItemPlan
	case typeSubagent:
		i.Text = strings.TrimSpace("subagent " + agentName(w.AgentPath) + " " + w.Activity)
	default:
		i.Text = w.Type
	}
	i.Text = handoff.Clip(i.Text, maxText)
	return i
}

// paths returns the paths of a fileChange; nil: they are longer than maxPaths together.
func (w *wireItem) paths() []string {
	size := 0
	for _, c := range w.Changes {
		if size += len(c.Path); size > maxPaths {
			return nil
		}
	}
	paths := make([]string, len(w.Changes))
	for i, c := range w.Changes {
		paths[i] = c.Path
	}
	return paths
}

func (w *wireItem) toolName() string {
	prefix := w.Server
	if w.Namespace != nil {
		prefix = *w.Namespace
	}
	if prefix == "" {
		return w.Tool
	}
	return prefix + "." + w.Tool
}

// userText returns the text of a userMessage, without images and files.
func (w *wireItem) userText() string {
	var parts []userInput
	if json.Unmarshal(w.Content, &parts) != nil {
		return ""
	}
	var texts []string
	for _, p := range parts {
		if p.Text != "" {
			texts = append(texts, p.Text)
		}
	}
	return strings.Join(texts, "\n")
}

// changes returns the changed files of an edit, with handoff.MaxDiff bytes of their diffs; nil: the paths are longer
// than maxPaths together.
func (w *wireItem) changes() []handoff.FileChange {
	room := handoff.MaxDiff
	var all []handoff.FileChange
	for i := range w.paths() {
		c, hunks := w.Changes[i].change()
		room = c.Show(hunks, room)
		all = append(all, c)
	}
	return all
}

// change translates the change of one file, and returns its hunks. App-servers give the hunks of an update, but the
// text of a file that is added or deleted.
func (f fileChange) change() (c handoff.FileChange, hunks string) {
	var kind struct {
		Type string  `json:"type"`
		Move *string `json:"move_path"`
	}
	_ = json.Unmarshal(f.Kind, &kind) // "" if it fails
	c, hunks = handoff.FileChange{Path: f.Path, Kind: kind.Type}, f.Diff
	if kind.Move != nil {
		c.To = *kind.Move
	}
	if sign, whole := map[string]string{"add": "+", "delete": "-"}[kind.Type]; whole && f.Diff != "" &&
		!strings.HasPrefix(f.Diff, "@@ ") {
		lines := strings.SplitAfter(strings.TrimSuffix(f.Diff, "\n"), "\n")
		head := fmt.Sprintf("@@ -0,0 +1,%d @@\n", len(lines))
		if kind.Type == "delete" {
			head = fmt.Sprintf("@@ -1,%d +0,0 @@\n", len(lines))
		}
		hunks = head + sign + strings.Join(lines, sign) + "\n"
	}
	return c, hunks
}

// plainCommand removes the shell from a command line that Codex has wrapped in one. A command line that it cannot take
// apart safely is returned unchanged.
func plainCommand(command string) string {
	for _, shell := range []string{"bash", "zsh", "sh"} {
		_, rest, ok := strings.Cut(command, shell+" -lc ")
		if !ok || strings.ContainsAny(command[:len(command)-len(rest)-len(shell+" -lc ")], " '\"") {
			continue
		}
		for _, quote := range []string{"'", `"`} {
			inner := strings.TrimSuffix(strings.TrimPrefix(rest, quote), quote)
			if len(inner) == len(rest)-2 && !strings.ContainsAny(inner, quote+`\`) {
				return inner
			}
		}
		if !strings.ContainsAny(rest, `'"\ `) {
			return rest
		}
	}
	return command
}
