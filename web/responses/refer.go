package responses

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"switchboard/handoff"
)

// A mention is where an input names an item of an earlier response: by an item_reference, or by the answer to a
// question.
type mention struct {
	at        int // its place in the input
	id        string
	reference bool
}

// settle puts items in the place of their references. A request that mentions items and names no session goes on in
// the session of the last one, if its model is on that machine: chats of the AI SDK name their items and nothing else.
// What that session knows is then left out.
func (a *API) settle(ctx context.Context, g handoff.Grant, req *request) *fault {
	mentions := req.said.mentions
	if len(mentions) == 0 {
		return nil
	}
	var doc document // of the last mention that is known
	threads := map[string]bool{}
	stands, size := map[int]json.RawMessage{}, 0
	for _, m := range mentions {
		found, it, f := a.mentioned(ctx, g, m, doc)
		if f != nil {
			return f
		}
		if found.Response.ID == "" {
			continue
		}
		doc = found
		threads[doc.Server+"/"+doc.Thread] = true
		if size += len(it); size <= maxBeside {
			stands[m.at] = it
		}
	}
	last := mentions[len(mentions)-1].at
	goesOn := req.Previous != nil && *req.Previous == doc.Response.ID
	if req.Previous == nil && req.conversation == "" && doc.Turn != "" && doc.Server == serverOf(req.Model) {
		req.Previous, goesOn = &doc.Response.ID, true
	}
	if !goesOn || len(threads) > 1 && len(req.said.approvals) == 0 {
		if last = -1; size > maxBeside {
			return tooMuchBeside()
		}
	}
	if f := req.read(rest(req, last, stands)); f != nil {
		return f
	}
	return req.said.check()
}

// mentioned returns the response of a mentioned item, and the item. No response: the answer is to a question that
// nobody knows. doc is one that was found before.
func (a *API) mentioned(
	ctx context.Context, g handoff.Grant, m mention, doc document,
) (document, json.RawMessage, *fault) {
	response := responseOf(m.id)
	if response != doc.Response.ID || response == "" {
		var f *fault
		if doc, _, f = a.find(ctx, g, response); f != nil && f.Status != http.StatusNotFound {
			return document{}, nil, f
		}
	}
	if i := slices.IndexFunc(doc.Response.Output, func(it item) bool { return it.ID == m.id }); i >= 0 {
		return doc, json.RawMessage(encode(doc.Response.Output[i])), nil
	}
	for _, raw := range doc.Input {
		var it reference
		if json.Unmarshal(raw, &it) == nil && it.ID == m.id {
			return doc, raw, nil
		}
	}
	if m.reference {
		return document{}, nil, bad("", at(m.at), "Item with id '"+handoff.Clip(m.id, 80)+"' not found.")
	}
	return document{}, nil, nil
}

// responseOf returns the id of the response that an item's id tells, or "".
func responseOf(id string) string {
	_, of, _ := strings.Cut(id, "_")
	end := strings.LastIndexByte(of, '_')
	if end < 0 {
		return ""
	}
	return responsePrefix + of[:end]
}

// rest returns the input without the items up to a place, but for instructions and answers to questions, and with items
// in the place of their references.
func rest(req *request, upTo int, stands map[int]json.RawMessage) []byte {
	var items []piece
	_ = json.Unmarshal(req.Input, &items) // it was read before
	kept := []json.RawMessage{}
	for i, raw := range items {
		var it inputItem
		_ = json.Unmarshal(raw, &it) // likewise
		answer := slices.ContainsFunc(req.said.approvals, func(a approval) bool { return a.at == i })
		switch {
		case it.Type == typeReference && i > upTo:
			if stands[i] != nil {
				kept = append(kept, stands[i])
			}
		case i > upTo, answer, it.Role == "system", it.Role == "developer":
			kept = append(kept, json.RawMessage(raw))
		}
	}
	return []byte(encode(kept))
}

func tooMuchBeside() *fault {
	return bad("", "input", fmt.Sprintf("Instructions and what was said before have at most %d bytes.", maxBeside))
}
