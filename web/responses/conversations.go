package responses

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
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

// conversationItems shows, adds and takes away items. What the agent was told stays: its session cannot forget it.
func (a *API) conversationItems(w http.ResponseWriter, r *http.Request, g handoff.Grant, c conversation, body []byte) *fault {
	name := r.PathValue("item")
	if name == "" && r.Method == http.MethodGet {
		return page(w, r, c.Items)
	}
	if name == "" {
		return a.addItems(w, g, c, body)
	}
	at := slices.IndexFunc(c.Items, func(raw json.RawMessage) bool {
		var it reference
		return json.Unmarshal(raw, &it) == nil && it.ID == name
	})
	switch {
	case at < 0:
		f := bad("", "", "Item with id '"+handoff.Clip(name, 80)+"' not found in the conversation.")
		f.Status = http.StatusNotFound
		return f
	case r.Method == http.MethodGet:
		writeJSON(w, http.StatusOK, c.Items[at])
		return nil
	case at < c.Told:
		return bad("unsupported_endpoint", "", "The agent was told that item already, and its session cannot forget it.")
	}
	c.Items = slices.Delete(c.Items, at, at+1)
	if f := a.putConversation(r.Context(), g.Caller, c); f != nil {
		return f
	}
	writeJSON(w, http.StatusOK, c.shown())
	return nil
}

// addItems adds what the agent is told with the next response.
func (a *API) addItems(w http.ResponseWriter, g handoff.Grant, c conversation, body []byte) *fault {
	var asked struct {
		Items json.RawMessage `json:"items"`
	}
	if f := decode(body, &asked); f != nil {
		return f
	}
	if absent(asked.Items) {
		return bad("missing_required_parameter", "items", "Missing required parameter: 'items'.")
	}
	s, f := readInput(asked.Items)
	if f != nil {
		return f
	}
	added := s.numbered(strings.ToLower(rand.Text()))
	c.Items = append(c.Items, added...)
	if f := a.putConversation(context.Background(), g.Caller, c); f != nil {
		return f
	}
	writeJSON(w, http.StatusOK, list(added, false))
	return nil
}

func (a *API) conversations(w http.ResponseWriter, r *http.Request, g handoff.Grant, id string, body []byte) *fault {
	if g.Caller.Nameless() {
		return faultOf(handoff.Fault(handoff.CodeNotGranted, "a conversation needs a caller with a name", ""))
	}
	if id == "" {
		return a.newConversation(w, g, body)
	}
	items := strings.Contains(r.Pattern, "/items")
	if items {
		a.catchUp(r.Context(), g, id)
	}
	if items && r.Method != http.MethodGet { // a response that ends adds items too
		key := liveKey{g.Caller, id}
		if f := a.occupy(key); f != nil {
			return f
		}
		defer a.vacate(key)
	}
	if r.Method != http.MethodGet {
		release, f := a.turn(r.Context(), liveKey{g.Caller, id})
		if f != nil {
			return f
		}
		defer release()
	}
	c, f := a.conversation(r.Context(), g, id)
	if f != nil {
		return f
	}
	switch {
	case items:
		return a.conversationItems(w, r, g, c, body)
	case r.Method == http.MethodDelete:
		if _, err := a.cfg.Store.DropDocument(r.Context(), g.Caller, id); err != nil {
			return a.storeFault(err)
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
		if f := a.putConversation(r.Context(), g.Caller, c); f != nil {
			return f
		}
	}
	writeJSON(w, http.StatusOK, c.shown())
	return nil
}

func (a *API) newConversation(w http.ResponseWriter, g handoff.Grant, body []byte) *fault {
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
	c := conversation{ID: conversationPrefix + strings.ToLower(rand.Text()), Created: a.now().Unix(), Metadata: asked.Metadata, Items: []json.RawMessage{}}
	if c.Metadata == nil {
		c.Metadata = map[string]string{}
	}
	if !absent(asked.Items) {
		s, f := readInput(asked.Items)
		if f != nil {
			return f
		}
		c.Items = s.numbered(c.ID)
	}
	if f := a.putConversation(context.Background(), g.Caller, c); f != nil {
		return f
	}
	writeJSON(w, http.StatusOK, c.shown())
	return nil
}

func (a *API) conversation(ctx context.Context, g handoff.Grant, id string) (conversation, *fault) {
	var c conversation
	gone := bad("conversation_not_found", "", "Conversation with id '"+handoff.Clip(id, 80)+"' not found.")
	gone.Status = http.StatusNotFound
	if !strings.HasPrefix(id, conversationPrefix) || len(id) > 128 {
		return c, gone
	}
	d, ok, err := a.cfg.Store.Document(ctx, g.Caller, id)
	if err != nil {
		return c, a.storeFault(err)
	}
	if !ok || json.Unmarshal(d.Body, &c) != nil || c.Server != "" && !g.AllowsServer(c.Server) {
		return c, gone
	}
	return c, nil
}

func (a *API) putConversation(ctx context.Context, owner handoff.Caller, c conversation) *fault {
	for size := len(encode(c.Items)); size > maxConversation && len(c.Items) > 0; {
		size -= len(c.Items[0])
		c.Items, c.Told = c.Items[1:], max(c.Told-1, 0)
	}
	ctx, cancel := context.WithTimeout(ctx, storeWithin)
	defer cancel()
	err := a.cfg.Store.PutDocument(ctx, sessions.Document{Owner: owner, ID: c.ID, Body: []byte(encode(c)), Ends: a.now().Add(keptFor)})
	if err != nil {
		return a.storeFault(err)
	}
	return nil
}

// converse begins a response in a conversation: one at a time.
func (a *API) converse(ctx context.Context, g handoff.Grant, req *request, p *posted, run handoff.Request) (*live, *fault) {
	a.catchUp(ctx, g, req.conversation)
	key := liveKey{g.Caller, req.conversation}
	if f := a.occupy(key); f != nil {
		return nil, f
	}
	l, f := a.speak(ctx, g, req, p, run)
	if f != nil {
		a.vacate(key)
	}
	return l, f
}

// occupy keeps others from adding items to a conversation, until [API.vacate].
func (a *API) occupy(key liveKey) *fault {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.busy[key] {
		return busy("conversation_locked", "Another response is being made in this conversation.")
	}
	a.busy[key] = true
	return nil
}

func (a *API) vacate(key liveKey) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.busy, key)
}

// turn waits until nobody else is between reading a conversation and storing what was made of it. The function that it
// returns lets the next one. A response that is being made keeps only its end from others.
func (a *API) turn(ctx context.Context, key liveKey) (release func(), f *fault) {
	ctx, cancel := context.WithTimeout(ctx, storeWithin)
	defer cancel()
	mine := make(chan struct{})
	for {
		a.mu.Lock()
		others := a.turns[key]
		if others == nil {
			a.turns[key] = mine
			a.mu.Unlock()
			return func() {
				a.mu.Lock()
				delete(a.turns, key)
				a.mu.Unlock()
				close(mine)
			}, nil
		}
		a.mu.Unlock()
		select {
		case <-others:
		case <-ctx.Done():
			return nil, busy("conversation_locked", "The conversation is being changed.")
		}
	}
}

func (a *API) speak(ctx context.Context, g handoff.Grant, req *request, p *posted, run handoff.Request) (*live, *fault) {
	c, f := a.conversation(ctx, g, req.conversation)
	if f != nil {
		f.Param = new("conversation")
		return nil, f
	}
	run.Mode, run.Target.Thread = handoff.ModeNext, handoff.NewThread
	if c.Thread != "" {
		if serverOf(req.Model) != c.Server {
			return nil, bad("model_mismatch", "model", "The conversation is with the model '"+modelOf(c.Server, c.Project)+"'; its session is on that machine.")
		}
		run.Target.Server, run.Target.Thread = modelOf(c.Server, c.Project), c.Thread
	}
	if untold := c.Items[min(c.Told, len(c.Items)):]; len(untold) > 0 {
		before, f := readInput(json.RawMessage(encode(untold)))
		if f != nil {
			return nil, f
		}
		if text := handoff.InputText(before.parts); text != "" {
			before.before = append(before.before, "user: "+text)
		}
		if len(before.before) > 0 {
			req.said.before = append(before.before, req.said.before...)
			run.Context = req.beside()
		}
	}
	return a.begin(ctx, g, req, p, run)
}

// leaveConversation adds what was said in a response that is over, and lets the next one begin.
func (a *API) leaveConversation(owner handoff.Caller, doc document) {
	id := doc.Response.Conversation.ID
	defer a.vacate(liveKey{owner, id})
	ctx, cancel := context.WithTimeout(context.Background(), storeWithin)
	defer cancel()
	release, f := a.turn(ctx, liveKey{owner, id})
	if f != nil {
		a.cfg.Log.Warn(fmt.Sprintf("a conversation is not stored: %s", f.Message))
		return
	}
	defer release()
	c, f := a.conversation(ctx, handoff.Grant{Caller: owner}, id)
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
	if f := a.putConversation(ctx, owner, c); f != nil {
		a.cfg.Log.Warn(fmt.Sprintf("a conversation is not stored: %s", f.Message))
	}
}

// opens notes which response is made in a conversation, so that the next life of the process knows it.
func (a *API) opens(g handoff.Grant, id, response string) {
	ctx, cancel := context.WithTimeout(context.Background(), storeWithin)
	defer cancel()
	release, f := a.turn(ctx, liveKey{g.Caller, id})
	if f == nil {
		defer release()
		var c conversation
		if c, f = a.conversation(ctx, g, id); f == nil {
			c.Open = response
			f = a.putConversation(ctx, g.Caller, c)
		}
	}
	if f != nil {
		a.cfg.Log.Warn(fmt.Sprintf("a conversation does not know its response: %s", f.Message))
	}
}

// catchUp follows the response that a former life of the process was making in a conversation. If it is over, its
// items are there afterwards; else nobody writes there until it is.
func (a *API) catchUp(ctx context.Context, g handoff.Grant, id string) {
	c, f := a.conversation(ctx, g, id)
	if f != nil || c.Open == "" || a.live(g.Caller, c.Open) != nil {
		return
	}
	doc, l, f := a.find(ctx, g, c.Open)
	switch {
	case f != nil:
		return
	case l != nil:
		a.settleEnd(g, l)
	case ended(doc.Response.Status) && doc.Response.Conversation != nil && a.occupy(liveKey{g.Caller, id}) == nil:
		if c, f = a.conversation(ctx, g, id); f != nil || c.Open != doc.Response.ID { // somebody else was faster
			a.vacate(liveKey{g.Caller, id})
			return
		}
		a.leaveConversation(g.Caller, doc)
	}
}

// settleEnd gives a run that is over the time to end its response.
func (a *API) settleEnd(g handoff.Grant, l *live) {
	rec, err := a.cfg.Work.Handoff(g, string(l.run))
	if err != nil || rec.Outcome == "" {
		return
	}
	late := time.After(time.Second)
	for {
		_, over, changed, _ := l.read(0)
		if over {
			return
		}
		select {
		case <-changed:
		case <-late:
			return
		}
	}
}
