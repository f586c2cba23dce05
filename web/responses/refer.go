package responses

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"switchboard/handoff"
)

// resolveMentions replaces item_references by their items. A request that mentions items and has neither a previous
// response nor a conversation continues the session of the last mentioned item, if its model is the same machine: chats
// of the AI SDK name only items. Items that the session knows are then left out of the input.
func (a *API) resolveMentions(ctx context.Context, g handoff.Grant, req *request) *fault {
	mentions := req.input.mentions
	if len(mentions) == 0 {
		return nil
	}
	var doc document // the response of the last mention that was found
	threads := map[string]bool{}
	items, size := map[int]piece{}, 0 // the items of references, by index in the input
	for _, m := range mentions {
		found, it, f := a.findMention(ctx, g, m, doc)
		if f != nil {
			return f
		}
		if found.Response.ID == "" {
			continue
		}
		doc = found
		threads[doc.Server+"/"+doc.Thread] = true
		if size += len(it); size <= maxContext {
			items[m.at] = piece(it)
		}
	}
	last := mentions[len(mentions)-1].at
	goesOn := req.Previous != nil && *req.Previous == doc.Response.ID
	if req.Previous == nil && req.conversation == "" && doc.Turn != "" && doc.Server == serverOf(req.Model) {
		req.Previous, goesOn = &doc.Response.ID, true
	}
	if !goesOn || len(threads) > 1 && len(req.input.approvals) == 0 {
		if last = -1; size > maxContext {
			return contextTooLarge()
		}
	}
	if f := req.take(readItems(rest(req, last, items))); f != nil {
		return f
	}
	return req.input.check()
}

// findMention returns the mentioned item and its response. The response is empty for an answer to an unknown question.
// doc is the response of an earlier mention, which is used again.
func (a *API) findMention(
	ctx context.Context, g handoff.Grant, m inputItem, doc document,
) (document, json.RawMessage, *fault) {
	id := cmp.Or(m.Request, m.ID)
	if response := responseOf(id); response != doc.Response.ID || response == "" {
		var f *fault
		if doc, _, f = a.find(ctx, g, response); f != nil && !f.isMissing() {
			return document{}, nil, f
		}
	}
	if i := slices.IndexFunc(doc.Response.Output, func(it item) bool { return it.ID == id }); i >= 0 {
		return doc, json.RawMessage(handoff.Encode(doc.Response.Output[i])), nil
	}
	if i := slices.IndexFunc(doc.Input, func(raw json.RawMessage) bool { return idOf(raw) == id }); i >= 0 {
		return doc, doc.Input[i], nil
	}
	if m.Type == typeReference {
		return document{}, nil, bad("", at(m.at), "Item with id '"+handoff.Clip(id, 80)+"' not found.")
	}
	return document{}, nil, nil
}

// idOf returns the id of a stored item.
func idOf(raw json.RawMessage) string {
	var it reference
	_ = json.Unmarshal(raw, &it) // never fails for stored items
	return it.ID
}

// responseOf returns the id of the response that an item's id contains, or "".
func responseOf(id string) string {
	_, of, _ := strings.Cut(id, "_")
	end := strings.LastIndexByte(of, '_')
	if end < 0 {
		return ""
	}
	return responsePrefix + of[:end]
}

// rest returns the input without the items up to index upTo, except instructions and answers to questions. References
// after it are replaced by items.
func rest(req *request, upTo int, items map[int]piece) (kept []piece) {
	for i, it := range req.input.all {
		answer := slices.ContainsFunc(req.input.approvals, func(a inputItem) bool { return a.at == i })
		switch {
		case it.Type == typeReference && i > upTo:
			if items[i] != nil {
				kept = append(kept, items[i])
			}
		case i > upTo, answer, it.Role == "system", it.Role == "developer":
			kept = append(kept, it.raw)
		}
	}
	return kept
}
