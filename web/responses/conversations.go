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

// A conversation is a session that responses share without naming each other.
type conversation struct {
	ID       string            `json:"id"`
	Created  int64             `json:"created_at"`
	Metadata map[string]string `json:"metadata"`
	Items    []json.RawMessage `json:"items"`            // oldest first
	Told     int               `json:"told"`             // how many of Items the agent knows
	Server   string            `json:"server,omitempty"` // where its session is; "": it has none yet
	Project  string            `json:"project,omitempty"`
	Thread   string            `json:"thread,omitempty"`
	Open     string            `json:"open,omitempty"` // the response that adds its items when it ends
}

// maxConversation bounds the items of a conversation, in bytes; the oldest go. The session itself keeps all of them.
const maxConversation = 1 << 20

// shown is a conversation as its clients see it.
func (c conversation) shown() map[string]any {
	return map[string]any{"id": c.ID, "object": "conversation", "created_at": c.Created, "metadata": c.Metadata}
}

// conversations are read, changed and stored one change at a time.
type conversations struct {
	documents *documents // Set once
	// catchUp follows the response that a former life of the process was making in a conversation. Set once.
	catchUp func(ctx context.Context, g handoff.Grant, id string)

	mu    sync.Mutex
	busy  map[liveKey]bool          // Guarded by mu: those that somebody adds items to, as a response does until it ends
	turns map[liveKey]chan struct{} // Guarded by mu: those between being read and stored; each is closed after that
}

// items shows, adds and takes away items. What the agent was told stays: its session cannot forget it.
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
	writeJSON(w, http.StatusOK, c.shown())
	return nil
}

// addItems adds what the agent is told with the next response.
func (s *conversations) addItems(w http.ResponseWriter, g handoff.Grant, c conversation, body []byte) *fault {
	var asked struct {
		Items json.RawMessage `json:"items"`
	}
	if f := decode(body, &asked); f != nil {
		return f
	}
	if absent(asked.Items) {
		return bad("missing_required_parameter", "items", "Missing required parameter: 'items'.")
	}
	input, f := readItems(asked.Items)
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
	if items && r.Method != http.MethodGet { // a response that ends adds items too
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
	writeJSON(w, http.StatusOK, c.shown())
	return nil
}

// create answers POST /v1/conversations.
func (s *conversations) create(w http.ResponseWriter, g handoff.Grant, body []byte) *fault {
	var asked struct {
		Metadata map[string]string `json:"metadata"`
		Items    json.RawMessage   `json:"items"`
	}
	if len(body) > 0 {
		if f := decode(body, &asked); f != nil {
			return f
		}
	}
	if f := checkMetadata(asked.Metadata); f != nil {
		return f
	}
	c := conversation{
		ID: conversationPrefix + strings.ToLower(rand.Text()), Created: time.Now().Unix(), Metadata: asked.Metadata,
		Items: []json.RawMessage{},
	}
	if c.Metadata == nil {
		c.Metadata = map[string]string{}
	}
	if !absent(asked.Items) {
		input, f := readItems(asked.Items)
		if f != nil {
			return f
		}
		c.Items = input.numbered(c.ID)
	}
	if f := s.put(context.Background(), g.Caller, c); f != nil {
		return f
	}
	writeJSON(w, http.StatusOK, c.shown())
	return nil
}

// read returns a conversation that the grant may know of.
func (s *conversations) read(ctx context.Context, g handoff.Grant, id string) (conversation, *fault) {
	var c conversation
	gone := notFound("conversation_not_found", "", "Conversation with id '"+handoff.Clip(id, 80)+"' not found.")
	if !strings.HasPrefix(id, conversationPrefix) || len(id) > 128 {
		return c, gone
	}
	d, ok, err := s.documents.Document(ctx, g.Caller, id)
	if err != nil {
		return c, s.documents.fault(err)
	}
	if !ok || json.Unmarshal(d.Body, &c) != nil || c.Server != "" && !g.AllowsServer(c.Server) {
		return c, gone
	}
	return c, nil
}

// put stores a conversation, within its bound.
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

// occupy keeps others from adding items to a conversation, until [conversations.vacate].
func (s *conversations) occupy(key liveKey) *fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy[key] {
		return busy("conversation_locked", "Another response is being made in this conversation.")
	}
	s.busy[key] = true
	return nil
}

// vacate lets others add items to a conversation.
func (s *conversations) vacate(key liveKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.busy, key)
}

// turn waits until nobody else is between reading a conversation and storing what was made of it. The function that it
// returns lets the next one. A response that is being made keeps only its end from others.
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

// leave adds what was said in a response that is over, and lets the next one begin.
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
	if f != nil || c.Open != "" && c.Open != doc.Response.ID { // it was deleted, or has the items already
		return
	}
	if c.Open = ""; doc.Turn != "" { // else nothing ran
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

// opens notes which response is made in a conversation, so that the next life of the process knows it.
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
