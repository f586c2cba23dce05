package responses

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"switchboard/handoff"
)

// A parsedInput is the parsed input of a request.
type parsedInput struct {
	parts        []handoff.Part    // the prompt: the user's messages at the end
	before       []string          // the earlier conversation, as lines "user: …" and "assistant: …"
	instructions []string          // system and developer messages
	approvals    []inputItem       // answers to questions, with no later item of the agent
	mentions     []inputItem       // references to items of earlier responses, and answers to questions in them
	all          []inputItem       // as they came; none for a text
	items        []map[string]any  // all items, for input_items
	size         int               // bytes of the items that are kept whole
	tools        map[string]string // the names of tools that another model called, by the id of the call
}

// inputItem is one item of an input. Its type decides which fields it has.
type inputItem struct {
	Type    string `json:"type"`
	ID      string `json:"id"`
	Role    string `json:"role"`    // message
	Content piece  `json:"content"` // message

	Request string `json:"approval_request_id"` // mcp_approval_response: it answers a question of an agent
	Approve *bool  `json:"approve"`             // likewise
	Reason  string `json:"reason"`              // likewise

	CallID    string `json:"call_id"`   // the call of a tool by another model, or what came of it
	Name      string `json:"name"`      // likewise
	Arguments piece  `json:"arguments"` // likewise
	Input     piece  `json:"input"`     // likewise
	Output    piece  `json:"output"`    // likewise

	raw piece
	at  int // its index in the input
}

// inputPart is one part of a message's content.
type inputPart struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	Refusal  string `json:"refusal,omitempty"`
	ImageURL piece  `json:"image_url,omitempty"`
}

// readInput reads an input: a text, or a list of items.
func readInput(raw []byte) (parsedInput, *fault) {
	var s parsedInput
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return s, s.message("user", []inputPart{{Type: "input_text", Text: text}}, 0)
	}
	var items []piece
	if json.Unmarshal(raw, &items) != nil {
		return s, mistyped("input", "a string or an array of items", "")
	}
	return readItems(items)
}

func readItems(items []piece) (s parsedInput, f *fault) {
	if len(items) > maxInput {
		return s, bad("", "input", fmt.Sprintf("'input' has at most %d items.", maxInput))
	}
	for i, raw := range items {
		it := inputItem{raw: raw, at: i}
		if f := decodeAt(at(i), raw, &it); f != nil {
			return s, f
		}
		if f := s.item(it); f != nil {
			return s, f
		}
		s.all = append(s.all, it)
	}
	return s, nil
}

func at(i int) string { return fmt.Sprintf("input[%d]", i) }

func (s *parsedInput) item(it inputItem) *fault {
	switch it.Type {
	case "", typeMessage:
		var text string
		var parts []inputPart
		switch {
		case json.Unmarshal(it.Content, &text) == nil:
			parts = []inputPart{{Type: "input_text", Text: text}}
		case json.Unmarshal(it.Content, &parts) != nil:
			return mistyped(at(it.at)+".content", "a string or an array of parts", "")
		}
		return s.message(it.Role, parts, it.at)
	case typeApproved:
		if it.Request == "" || it.Approve == nil {
			return bad("missing_required_parameter", at(it.at), "An approval has 'approval_request_id' and 'approve'.")
		}
		s.approvals = append(s.approvals, it)
		s.mentions = append(s.mentions, it)
	case typeThought, typeCall: // the agent knows its own items
		s.dropApprovals()
	case typeApproval, "mcp_list_tools", "compaction":
	case typeReference:
		if !strings.HasPrefix(it.ID, approvalPrefix) {
			s.dropApprovals()
		}
		s.mentions = append(s.mentions, it)
		return nil
	default:
		if !strings.HasSuffix(it.Type, "_call") && !strings.HasSuffix(it.Type, "_output") {
			return bad("invalid_value", at(it.at)+".type",
				"Items of type '"+handoff.Clip(it.Type, 40)+"' are not supported here.")
		}
		if f := s.foreign(it); f != nil {
			return f
		}
	}
	known := map[string]any{"type": it.Type, "id": it.ID}
	if s.size += len(it.raw); s.size <= maxContext {
		_ = json.Unmarshal(it.raw, &known) // never fails for what was read before
	}
	s.items = append(s.items, known)
	return nil
}

// foreign adds the call of a tool by another model, or what came of it, to the earlier conversation.
func (s *parsedInput) foreign(it inputItem) *fault {
	if len(it.raw) > maxContext {
		return contextTooLarge()
	}
	s.spoken()
	if tool, call := strings.CutSuffix(it.Type, "_call"); call {
		name := cmp.Or(it.Name, tool)
		if s.tools == nil {
			s.tools = map[string]string{}
		}
		s.tools[it.CallID] = name
		s.before = append(s.before, "assistant used "+name+": "+cmp.Or(plain(it.Arguments), plain(it.Input), others(it.raw)))
		return nil
	}
	name := cmp.Or(s.tools[it.CallID], strings.TrimSuffix(strings.TrimSuffix(it.Type, "_output"), "_call"))
	said := plain(it.Output)
	if absent(it.Output) {
		said = others(it.raw)
	}
	s.before = append(s.before, name+" answered: "+said)
	return nil
}

// plain returns a JSON text, or the texts of a list of parts, without its quotes; of other values their JSON.
func plain(raw []byte) string {
	var text string
	var parts []inputPart
	if json.Unmarshal(raw, &text) == nil || absent(raw) {
		return text
	}
	if json.Unmarshal(raw, &parts) == nil {
		for _, p := range parts {
			text += p.Text
		}
	}
	return cmp.Or(text, string(raw))
}

// others returns the fields of an item that say what it is about, as JSON.
func others(raw []byte) string {
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(raw, &fields) // never fails for what was read before
	for _, name := range []string{"type", "id", "call_id", "status", "name"} {
		delete(fields, name)
	}
	return handoff.Encode(fields)
}

// spoken moves the user's messages so far into the earlier conversation: somebody else's item follows.
func (s *parsedInput) spoken() {
	s.dropApprovals()
	if len(s.parts) > 0 {
		s.before = append(s.before, "user: "+handoff.InputText(s.parts))
		s.parts = nil
	}
}

// dropApprovals drops the approvals so far: a later item of the agent shows that they were used.
func (s *parsedInput) dropApprovals() {
	s.approvals = nil
	s.mentions = slices.DeleteFunc(s.mentions, func(m inputItem) bool { return m.Type != typeReference })
}

// message adds a message. The user's messages after the last one of the assistant are the prompt.
func (s *parsedInput) message(role string, parts []inputPart, i int) *fault {
	var prompt []handoff.Part
	var words strings.Builder
	content := make([]map[string]any, 0, len(parts))
	textType := "input_text"
	if role == "assistant" {
		textType = "output_text"
	}
	for n, p := range parts {
		place := fmt.Sprintf("%s.content[%d]", at(i), n)
		switch p.Type {
		case "input_text", "output_text", "text", "refusal":
			text := p.Text + p.Refusal
			words.WriteString(text)
			prompt = append(prompt, handoff.Text(text))
			content = append(content, map[string]any{"type": textType, "text": text})
		case "input_image":
			var url string
			if json.Unmarshal(p.ImageURL, &url) != nil || url == "" {
				return unsupported(place, "A picture is given by 'image_url'.")
			}
			if !strings.HasPrefix(url, "https://") && !strings.HasPrefix(url, "data:image/") {
				return bad("invalid_value", place+".image_url", "'image_url' begins with https:// or data:image/.")
			}
			prompt = append(prompt, handoff.Image{URL: url})
			content = append(content, map[string]any{"type": p.Type, "image_url": url, "detail": "auto"})
		default:
			return unsupported(place, "Parts of type '"+handoff.Clip(p.Type, 40)+"' are not supported here.")
		}
	}
	switch role {
	case "user":
		s.parts = append(s.parts, prompt...)
	case "assistant":
		s.spoken()
		s.before = append(s.before, "assistant: "+words.String())
	case "system", "developer":
		s.instructions = append(s.instructions, words.String())
	default:
		return bad("invalid_value", at(i)+".role", "A role is user, assistant, system or developer.")
	}
	s.items = append(s.items, map[string]any{"type": typeMessage, "role": role, "status": completed, "content": content})
	return nil
}

// check checks the input as a whole: that it has a prompt or approvals, and is within its bounds.
func (s *parsedInput) check() *fault {
	size := 0
	for _, text := range slices.Concat(s.before, s.instructions) {
		size += len(text)
	}
	if size > maxContext {
		return contextTooLarge()
	}
	known := map[string]bool{}
	for _, a := range s.approvals {
		if known[a.Request] {
			return bad("", "input", "Approval request '"+handoff.Clip(a.Request, 80)+"' is answered twice.")
		}
		known[a.Request] = true
	}
	blank := func(p handoff.Part) bool {
		text, words := p.(handoff.Text)
		return words && strings.TrimSpace(string(text)) == ""
	}
	switch {
	case len(s.parts) == 0 && len(s.approvals) == 0:
		return bad("", "input", "The input ends without a message of the user.")
	case len(s.parts) > 0 && !slices.ContainsFunc(s.parts, func(p handoff.Part) bool { return !blank(p) }):
		return bad("invalid_value", "input", "The input is empty.")
	case len(s.parts) > 0 && len(s.approvals) > 0:
		return unsupported("input", "Answer the agent's question first, and say more in the next request.")
	}
	return nil
}

// kept returns the items that a response keeps of its input. A picture that no longer fits into maxContext is left out.
func (s *parsedInput) kept(id string) []json.RawMessage {
	size := 0
	for _, it := range s.items {
		parts, _ := it["content"].([]map[string]any)
		for _, p := range parts {
			url, _ := p["image_url"].(string)
			if url != "" && size+len(url) > maxContext {
				p["image_url"], url = nil, ""
			}
			size += len(url)
		}
	}
	return s.numbered(id)
}

// numbered returns the items, each with an id that is unique in the response.
func (s *parsedInput) numbered(id string) []json.RawMessage {
	out := make([]json.RawMessage, len(s.items))
	taken := map[string]bool{"": true}
	for i, it := range s.items {
		known, _ := it["id"].(string)
		if taken[known] {
			it["id"] = "in_" + id[min(len(responsePrefix), len(id)):] + "_" + strconv.Itoa(i)
		}
		taken[known] = true
		out[i] = json.RawMessage(handoff.Encode(it))
	}
	return out
}
