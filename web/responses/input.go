package responses

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"switchboard/handoff"
)

// said is what the input of a request says.
type said struct {
	parts        []handoff.Part   // what the agent is asked now
	before       []string         // what was said before, as lines "user: …"
	instructions []string         // of system and developer messages
	approvals    []approval       // answers to questions that nothing follows
	mentions     []mention        // of items of earlier responses
	items        []map[string]any // the input as items, for input_items
	size         int              // bytes of items that are kept as they came
}

// An approval answers a question of an agent.
type approval struct {
	Request string `json:"approval_request_id"`
	Approve *bool  `json:"approve"`
	Reason  string `json:"reason"`

	at int // its place in the input
}

// inputItem is one item of an input. Which fields it has depends on its type.
type inputItem struct {
	Type    string `json:"type"`
	ID      string `json:"id"`
	Role    string `json:"role"`
	Content piece  `json:"content"`
	CallID  string `json:"call_id"`
}

// inputPart is one part of a message's content.
type inputPart struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	Refusal  string `json:"refusal,omitempty"`
	ImageURL piece  `json:"image_url,omitempty"`
}

// readInput reads an input: a text, or a list of items.
func readInput(raw []byte) (said, *fault) {
	var s said
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return s, s.message("user", []inputPart{{Type: "input_text", Text: text}}, 0)
	}
	var items []piece
	if json.Unmarshal(raw, &items) != nil {
		return s, mistyped("input", "a string or an array of items", "")
	}
	if len(items) > maxInput {
		return s, bad("", "input", fmt.Sprintf("'input' has at most %d items.", maxInput))
	}
	for i, raw := range items {
		var it inputItem
		if f := decodeAt(at(i), raw, &it); f != nil {
			return s, f
		}
		if f := s.item(it, raw, i); f != nil {
			return s, f
		}
	}
	return s, nil
}

// readItems reads items that stand alone: they refer to no others.
func readItems(raw []byte) (said, *fault) {
	s, f := readInput(raw)
	for _, m := range s.mentions {
		if m.reference && f == nil {
			f = unsupported(at(m.at), "An item that is added to a conversation is given whole.")
		}
	}
	return s, f
}

func at(i int) string { return fmt.Sprintf("input[%d]", i) }

func (s *said) item(it inputItem, raw []byte, i int) *fault {
	switch it.Type {
	case "", typeMessage:
		parts, f := readParts(it.Content, i)
		if f != nil {
			return f
		}
		return s.message(it.Role, parts, i)
	case typeApproved:
		var a approval
		if f := decodeAt(at(i), raw, &a); f != nil {
			return f
		}
		if a.Request == "" || a.Approve == nil {
			return bad("missing_required_parameter", at(i), "An approval has 'approval_request_id' and 'approve'.")
		}
		a.at = i
		s.approvals = append(s.approvals, a)
		s.mentions = append(s.mentions, mention{at: i, id: a.Request})
	case typeThought, typeCall: // what the agent did; it knows that
		s.goOn()
	case typeApproval, "mcp_list_tools", "compaction":
	case "function_call_output", "custom_tool_call_output", "computer_call_output", "local_shell_call_output", "shell_call_output", "apply_patch_call_output":
		return bad("", "input", "No tool call found for function call output with call_id "+handoff.Clip(it.CallID, 80)+".")
	case typeReference:
		if !strings.HasPrefix(it.ID, approvalPrefix) {
			s.goOn()
		}
		s.mentions = append(s.mentions, mention{at: i, id: it.ID, reference: true})
		return nil
	default:
		return bad("invalid_value", at(i)+".type", "Items of type '"+handoff.Clip(it.Type, 40)+"' are not supported here.")
	}
	known := map[string]any{"type": it.Type, "id": it.ID}
	if s.size += len(raw); s.size <= maxBeside { // the agent knows the rest
		_ = json.Unmarshal(raw, &known) // it was read before
	}
	s.items = append(s.items, known)
	return nil
}

// goOn notes that the agent went on after what was answered.
func (s *said) goOn() {
	s.approvals = nil
	s.mentions = slices.DeleteFunc(s.mentions, func(m mention) bool { return !m.reference })
}

func readParts(raw []byte, i int) ([]inputPart, *fault) {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return []inputPart{{Type: "input_text", Text: text}}, nil
	}
	var parts []inputPart
	if json.Unmarshal(raw, &parts) != nil {
		return nil, mistyped(at(i)+".content", "a string or an array of parts", "")
	}
	return parts, nil
}

// message takes a message. What a user says after everything else is what the agent is asked.
func (s *said) message(role string, parts []inputPart, i int) *fault {
	var asked []handoff.Part
	var words strings.Builder
	shown := make([]map[string]any, 0, len(parts))
	textType := "input_text"
	if role == "assistant" {
		textType = "output_text"
	}
	for n, p := range parts {
		switch p.Type {
		case "input_text", "output_text", "text", "refusal":
			text := p.Text + p.Refusal
			words.WriteString(text)
			asked = append(asked, handoff.Text(text))
			shown = append(shown, map[string]any{"type": textType, "text": text})
		case "input_image":
			var url string
			if json.Unmarshal(p.ImageURL, &url) != nil || url == "" {
				return unsupported(fmt.Sprintf("%s.content[%d]", at(i), n), "A picture is given by 'image_url'.")
			}
			if !strings.HasPrefix(url, "https://") && !strings.HasPrefix(url, "data:image/") {
				return bad(
					"invalid_value", fmt.Sprintf("%s.content[%d].image_url", at(i), n),
					"'image_url' begins with https:// or data:image/.",
				)
			}
			asked = append(asked, handoff.Image{URL: url})
			shown = append(shown, map[string]any{"type": p.Type, "image_url": url, "detail": "auto"})
		default:
			return unsupported(
				fmt.Sprintf("%s.content[%d]", at(i), n), "Parts of type '"+handoff.Clip(p.Type, 40)+"' are not supported here.",
			)
		}
	}
	switch role {
	case "user":
		s.parts = append(s.parts, asked...)
	case "assistant":
		s.goOn()
		if len(s.parts) > 0 {
			s.before = append(s.before, "user: "+handoff.InputText(s.parts))
			s.parts = nil
		}
		s.before = append(s.before, "assistant: "+words.String())
	case "system", "developer":
		s.instructions = append(s.instructions, words.String())
	default:
		return bad("invalid_value", at(i)+".role", "A role is user, assistant, system or developer.")
	}
	s.items = append(s.items, map[string]any{"type": typeMessage, "role": role, "status": completed, "content": shown})
	return nil
}

// check tells what the input lacks, or has too much of.
func (s *said) check() *fault {
	size := 0
	for _, text := range slices.Concat(s.before, s.instructions) {
		size += len(text)
	}
	if size > maxBeside {
		return tooMuchBeside()
	}
	known := map[string]bool{}
	for _, a := range s.approvals {
		if known[a.Request] {
			return bad("", "input", "Approval request '"+handoff.Clip(a.Request, 80)+"' is answered twice.")
		}
		known[a.Request] = true
	}
	empty := len(s.parts) > 0
	for _, p := range s.parts {
		text, words := p.(handoff.Text)
		empty = empty && words && strings.TrimSpace(string(text)) == ""
	}
	switch {
	case empty:
		return bad("invalid_value", "input", "The input is empty.")
	case len(s.parts) == 0 && len(s.approvals) == 0:
		return bad("", "input", "The input ends without a message of the user.")
	case len(s.parts) > 0 && len(s.approvals) > 0:
		return unsupported("input", "Answer the agent's question first, and say more in the next request.")
	}
	return nil
}

// kept is what a response keeps of its input: no pictures but small ones, which would stay in memory and in the store.
func (s *said) kept(id string) []json.RawMessage {
	size := 0
	for _, it := range s.items {
		parts, _ := it["content"].([]map[string]any)
		for _, p := range parts {
			url, _ := p["image_url"].(string)
			if size += len(url); size > maxBeside {
				p["image_url"] = nil
			}
		}
	}
	return s.numbered(id)
}

// numbered gives the items ids that are unique in a response, as clients page by them.
func (s *said) numbered(id string) []json.RawMessage {
	out := make([]json.RawMessage, len(s.items))
	for i, it := range s.items {
		if known, _ := it["id"].(string); known == "" {
			it["id"] = "in_" + id[min(len(responsePrefix), len(id)):] + "_" + strconv.Itoa(i)
		}
		out[i] = json.RawMessage(encode(it))
	}
	return out
}
