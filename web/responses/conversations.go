package responses

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"switchboard/handoff"
	"switchboard/sessions"
)

// A conversation is a session that several responses share, without previous_response_id.
type conversation struct {
	ID       string            `json:"id"`
	Created  int64             `json:"created_at"`
	Metadata map[string]string `json:"metadata"`
	Items    []json.RawMessage `json:"items"`            // oldest first
	Told     int               `json:"told"`             // how many of Items the agent has got
	Server   string            `json:"server,omitempty"` // where its session is; "": there is none yet
	Project  string            `json:"project,omitempty"`
	Thread   string            `json:"thread,omitempty"`
	Open     string            `json:"open,omitempty"` // id of the response that will add its items when it ends
}

// maxConversation bounds the items of a conversation, in bytes; the oldest are dropped. The agent's session has them
// all.
const maxConversation = 1 << 20

// object returns a conversation as clients see it.
func (c conversation) object() map[string]any {
	return map[string]any{"id": c.ID, "object": "conversation", "created_at": c.Created, "metadata": c.Metadata}
}

// conversations serves conversations. Each change reads and stores one as a whole, one change at a time.
type conversations struct {
	documents *documents // Set once
	// catchUp is [API.catchUp]. Set once.
	catchUp func(ctx context.Context, g handoff.Grant, id string)

	mu    sync.Mutex
	busy  map[liveKey]bool          // Guarded by mu: conversations to which a response or a request is adding items
	turns map[liveKey]chan struct{} // Guarded by mu: conversations being changed; each is closed after the change
}

// items lists, adds and deletes items. Items that the agent has got cannot be deleted, since its session keeps them.
func (s *conversations) items(
	w http.ResponseWriter, r *http.Request, g handoff.Grant, c conversation, body []byte,
) *fault {
	name := r.PathValue("item")
	if name == "" && r.Method == http.MethodGet {
		return page(w, r, c.Items)
	}
	if name == "" {
		return s.addItems(w, g, c, body)
	}
	at := slices.IndexFunc(c.Items, func(raw json.RawMessage) bool {
		var it reference
		return json.Unmarshal(raw, &it) == nil && it.ID == name
	})
	switch {
	case at < 0:
		return notFound("", "", "Item with id '"+handoff.Clip(name, 80)+"' not found in the conversation.")
	case r.Method == http.MethodGet:
		writeJSON(w, http.StatusOK, c.Items[at])
		return nil
	case at < c.Told:
		return bad("unsupported_endpoint", "", "The agent was told that item already, and its session cannot forget it.")
	}
	c.Items = slices.Delete(c.Items, at, at+1)
	if f := s.put(r.Context(), g.Caller, c); f != nil {
		return f
	}
	writeJSON(w, http.StatusOK, c.object())
	return nil
}

// addItems adds items, which the agent gets with the next response.
func (s *conversations) addItems(w http.ResponseWriter, g handoff.Grant, c conversation, body []byte) *fault {
	var params struct {
		Items json.RawMessage `json:"items"`
	}
	if f := decode(body, &params); f != nil {
		return f
	}
	if absent(params.Items) {
		return bad("missing_required_parameter", "items", "Missing required parameter: 'items'.")
	}
	input, f := readItems(params.Items)
	if f != nil {
		return f
	}
	added := input.numbered(strings.ToLower(rand.Text()))
	c.Items = append(c.Items, added...)
	if f := s.put(context.Background(), g.Caller, c); f != nil {
		return f
	}
	writeJSON(w, http.StatusOK, list(added, false))
	return nil
}

// conversation answers the requests for a conversation or its items.
func (a *API) conversation(w http.ResponseWriter, r *http.Request, g handoff.Grant, id string, body []byte) *fault {
	s := a.conversations
	if g.Caller.Nameless() {
		return faultOf(handoff.Fault(handoff.CodeNotGranted, "a conversation needs a caller with a name", ""))
	}
	if id == "" {
		return s.create(w, g, body)
	}
	items := strings.Contains(r.Pattern, "/items")
	if items {
		s.catchUp(r.Context(), g, id)
	}
	if items && r.Method != http.MethodGet { // a response adds items at its end, too
		key := liveKey{g.Caller, id}
		if f := s.occupy(key); f != nil {
			return f
		}
		defer s.vacate(key)
	}
	if r.Method != http.MethodGet {
		release, f := s.turn(r.Context(), liveKey{g.Caller, id})
		if f != nil {
			return f
		}
		defer release()
	}
	c, f := s.read(r.Context(), g, id)
	if f != nil {
		return f
	}
	switch {
	case items:
		return s.items(w, r, g, c, body)
	case r.Method == http.MethodDelete:
		if _, err := s.documents.DropDocument(r.Context(), g.Caller, id); err != nil {
			return s.documents.fault(err)
		}
		writeJSON(w, http.StatusOK, map[string]any{"id": id, "object": "conversation.deleted", "deleted": true})
		return nil
	case r.Method == http.MethodPost:
		var change struct {
			Metadata map[string]string `json:"metadata"`
		}
		if f := decode(body, &change); f != nil {
			return f
		}
		if f := checkMetadata(change.Metadata); f != nil {
			return f
		}
		c.Metadata = change.Metadata
		if f := s.put(r.Context(), g.Caller, c); f != nil {
			return f
		}
	}
	writeJSON(w, http.StatusOK, c.object())
	return nil
}

// create answers POST /v1/conversations.
func (s *conversations) create(w http.ResponseWriter, g handoff.Grant, body []byte) *fault {
	var params struct {
		Metadata map[string]string `json:"metadata"`
		Items    json.RawMessage   `json:"items"`
	}
	if len(body) > 0 {
		if f := decode(body, &params); f != nil {
			return f
		}
	}
	if f := checkMetadata(params.Metadata); f != nil {
		return f
	}
	c := conversation{
		ID: conversationPrefix + strings.ToLower(rand.Text()), Created: time.Now().Unix(), Metadata: params.Metadata,
		Items: []json.RawMessage{},
	}
	if c.Metadata == nil {
		c.Metadata = map[string]string{}
	}
	if !absent(params.Items) {
		input, f := readItems(params.Items)
		if f != nil {
			return f
		}
		c.Items = input.numbered(c.ID)
	}
	if f := s.put(context.Background(), g.Caller, c); f != nil {
		return f
	}
	writeJSON(w, http.StatusOK, c.object())
	return nil
}

// read returns a conversation that the grant allows.
func (s *conversations) read(ctx context.Context, g handoff.Grant, id string) (conversation, *fault) {
	var c conversation
	unknown := notFound("conversation_not_found", "", "Conversation with id '"+handoff.Clip(id, 80)+"' not found.")
	if !strings.HasPrefix(id, conversationPrefix) || len(id) > 128 {
		return c, unknown
	}
	d, ok, err := s.documents.Document(ctx, g.Caller, id)
	if err != nil {
		return c, s.documents.fault(err)
	}
	if !ok || json.Unmarshal(d.Body, &c) != nil || c.Server != "" && !g.AllowsServer(c.Server) {
		return c, unknown
	}
	return c, nil
}

// put stores a conversation. It drops the oldest items above [maxConversation].
func (s *conversations) put(ctx context.Context, owner handoff.Caller, c conversation) *fault {
	for size := len(encode(c.Items)); size > maxConversation && len(c.Items) > 0; {
		size -= len(c.Items[0])
		c.Items, c.Told = c.Items[1:], max(c.Told-1, 0)
	}
	ctx, cancel := context.WithTimeout(ctx, storeWithin)
	defer cancel()
	err := s.documents.PutDocument(
		ctx, sessions.Document{Owner: owner, ID: c.ID, Body: []byte(encode(c)), Ends: time.Now().Add(keptFor)},
	)
	if err != nil {
		return s.documents.fault(err)
	}
	return nil
}

// occupy reserves a conversation for adding items, until [conversations.vacate]. It fails if the conversation is
// reserved.
func (s *conversations) occupy(key liveKey) *fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy[key] {
		return busy("conversation_locked", "Another response is being made in this conversation.")
	}
	s.busy[key] = true
	return nil
}

// vacate ends the reservation of a conversation.
func (s *conversations) vacate(key liveKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.busy, key)
}

// turn waits until no other change of a conversation is under way, and begins one, which lasts until release is called.
// An open response holds the turn only at its end.
func (s *conversations) turn(ctx context.Context, key liveKey) (release func(), f *fault) {
	ctx, cancel := context.WithTimeout(ctx, storeWithin)
	defer cancel()
	mine := make(chan struct{})
	for {
		s.mu.Lock()
		others := s.turns[key]
		if others == nil {
			s.turns[key] = mine
			s.mu.Unlock()
			return func() {
				s.mu.Lock()
				delete(s.turns, key)
				s.mu.Unlock()
				close(mine)
			}, nil
		}
		s.mu.Unlock()
		select {
		case <-others:
		case <-ctx.Done():
			return nil, busy("conversation_locked", "The conversation is being changed.")
		}
	}
}

// leave adds the items of an ended response to its conversation, and ends the reservation.
func (s *conversations) leave(owner handoff.Caller, doc document) {
	id := doc.Response.Conversation.ID
	defer s.vacate(liveKey{owner, id})
	ctx, cancel := context.WithTimeout(context.Background(), storeWithin)
	defer cancel()
	release, f := s.turn(ctx, liveKey{owner, id})
	if f != nil {
		s.documents.log.Warn(fmt.Sprintf("a conversation is not stored: %s", f.Message))
		return
	}
	defer release()
	c, f := s.read(ctx, handoff.Grant{Caller: owner}, id)
	if f != nil || c.Open != "" && c.Open != doc.Response.ID { // deleted, or the items were added before
		return
	}
	if c.Open = ""; doc.Turn != "" { // without a turn, nothing ran
		c.Items = append(c.Items, doc.Input...)
		for _, it := range shortened(doc.Response.Output, 4<<10) {
			c.Items = append(c.Items, json.RawMessage(encode(it)))
		}
		c.Server, c.Project, c.Thread, c.Told = doc.Server, doc.Project, doc.Thread, len(c.Items)
	}
	if f := s.put(ctx, owner, c); f != nil {
		s.documents.log.Warn(fmt.Sprintf("a conversation is not stored: %s", f.Message))
	}
}

// opens stores the id of the open response in a conversation, so that a later process knows it.
func (s *conversations) opens(g handoff.Grant, id, response string) {
	ctx, cancel := context.WithTimeout(context.Background(), storeWithin)
	defer cancel()
	release, f := s.turn(ctx, liveKey{g.Caller, id})
	if f == nil {
		defer release()
		var c conversation
		if c, f = s.read(ctx, g, id); f == nil {
			c.Open = response
			f = s.put(ctx, g.Caller, c)
		}
	}
	if f != nil {
		s.documents.log.Warn(fmt.Sprintf("a conversation does not know its response: %s", f.Message))
	}
}
