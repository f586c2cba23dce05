package responses

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"go.uber.org/zap"

	"switchboard/handoff"
)

// A conversation is a session that several responses share, without previous_response_id. The responses themselves know
// nothing of it: the next one looks at the newest before it.
type conversation struct {
	ID       string            `json:"id"`
	Created  int64             `json:"created_at"`
	Metadata map[string]string `json:"metadata"`
	Items    json.RawMessage   `json:"items,omitempty"`  // what the agent is told until there is a session
	Server   string            `json:"server,omitempty"` // of the session, or of the newest response; "": there was none
	Project  string            `json:"project,omitempty"`
	Thread   string            `json:"thread,omitempty"` // "": there is no session yet
	Open     string            `json:"open,omitempty"`   // id of the newest response, whose session is not known yet
}

// maxConversation bounds the items that a conversation begins with, in bytes.
const maxConversation = 1 << 20

// take reserves a conversation, in which a response is begun or which is deleted, until release is called.
func (a *API) take(g handoff.Grant, id string) (release func(), f *fault) {
	key := liveKey{g.Caller, id}
	if _, taken := a.taken.LoadOrStore(key, true); taken {
		return nil, locked()
	}
	return func() { a.taken.Delete(key) }, nil
}

func locked() *fault {
	return busy("conversation_locked", "Another response is being made in this conversation.")
}

// talk answers the requests for conversations.
func (a *API) talk(w http.ResponseWriter, r *http.Request, g handoff.Grant, id string, body []byte) *fault {
	if g.Caller.Nameless() {
		return faultOf(handoff.Fault(handoff.CodeNotGranted, "a conversation needs a caller with a name", ""))
	}
	if r.Method == http.MethodPost {
		return a.createConversation(w, g, body)
	}
	if r.Method == http.MethodDelete {
		release, f := a.take(g, id)
		if f != nil {
			return f
		}
		defer release()
	}
	c, f := a.conversation(r.Context(), g, id)
	switch {
	case f != nil:
		return f
	case r.Method == http.MethodGet:
		c.reply(w)
		return nil
	}
	if _, err := a.documents.DropDocument(r.Context(), g.Caller, id); err != nil {
		return a.documents.fault(err)
	}
	writeJSON(w, http.StatusOK, map[string]any{"id": id, "object": "conversation.deleted", "deleted": true})
	return nil
}

// reply answers with a conversation as clients see it.
func (c conversation) reply(w http.ResponseWriter) {
	writeJSON(w, http.StatusOK,
		map[string]any{"id": c.ID, "object": "conversation", "created_at": c.Created, "metadata": c.Metadata})
}

func (a *API) createConversation(w http.ResponseWriter, g handoff.Grant, body []byte) *fault {
	c := conversation{
		ID: conversationPrefix + strings.ToLower(rand.Text()), Created: time.Now().Unix(), Metadata: map[string]string{},
	}
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
	if params.Metadata != nil {
		c.Metadata = params.Metadata
	}
	if !absent(params.Items) {
		input, f := readInput(params.Items)
		if f != nil {
			return f
		}
		for _, m := range input.mentions {
			if m.Type == typeReference {
				return unsupported(at(m.at), "An item that is added to a conversation is given whole.")
			}
		}
		if c.Items = params.Items; len(c.Items) > maxConversation {
			return bad("", "items", "The items of a conversation have at most 1 MiB.")
		}
	}
	if f := a.putConversation(g.Caller, c); f != nil {
		return f
	}
	c.reply(w)
	return nil
}

// conversation returns a conversation that the grant allows.
func (a *API) conversation(ctx context.Context, g handoff.Grant, id string) (c conversation, f *fault) {
	unknown := notFound("conversation_not_found", "", "Conversation with id '"+handoff.Clip(id, 80)+"' not found.")
	if !strings.HasPrefix(id, conversationPrefix) || len(id) > 128 {
		return c, unknown
	}
	d, there, err := a.documents.Document(ctx, g.Caller, id)
	if err != nil {
		return c, a.documents.fault(err)
	}
	if !there || json.Unmarshal(d.Body, &c) != nil || c.Server != "" && !g.AllowsServer(c.Server) {
		return c, unknown
	}
	return c, nil
}

// putConversation stores a conversation.
func (a *API) putConversation(owner handoff.Caller, c conversation) *fault {
	if err := a.documents.store(owner, c.ID, []byte(handoff.Encode(c)), keptFor); err != nil {
		return faultOf(handoff.StoreDown(err))
	}
	return nil
}

// catchUp makes the session of the newest response that of the conversation. It fails while that response is open.
func (a *API) catchUp(ctx context.Context, g handoff.Grant, c *conversation) *fault {
	if c.Open == "" {
		return nil
	}
	doc, _, f := a.find(ctx, g, c.Open)
	switch {
	case f.isMissing(): // it never began
	case f != nil:
		return f
	case !ended(doc.Response.Status):
		return locked()
	case doc.Turn != "": // without a turn, nothing ran
		c.Server, c.Project, c.Thread = doc.Server, doc.Project, doc.Thread
	}
	c.Open = ""
	return nil
}

// keepSession keeps the session of a response that is about to be deleted for its conversation.
func (a *API) keepSession(ctx context.Context, g handoff.Grant, doc document) *fault {
	if doc.Response.Conversation == nil {
		return nil
	}
	id := doc.Response.Conversation.ID
	release, f := a.take(g, id)
	if f != nil {
		return f
	}
	defer release()
	c, f := a.conversation(ctx, g, id)
	switch {
	case f.isMissing(), f == nil && c.Open != doc.Response.ID:
		return nil
	case f == nil:
		f = a.catchUp(ctx, g, &c)
	}
	if f != nil {
		return f
	}
	return a.putConversation(g.Caller, c)
}

// beginInConversation begins a response in a conversation: in its session, and with what the agent was not told yet.
// One response runs there at a time.
func (a *API) beginInConversation(
	ctx context.Context, g handoff.Grant, req *request, run handoff.Request,
) (*liveResponse, *fault) {
	release, f := a.take(g, req.conversation)
	if f != nil {
		return nil, f
	}
	defer release()
	c, f := a.conversation(ctx, g, req.conversation)
	if f != nil {
		f.Param = new("conversation")
		return nil, f
	}
	if f := a.catchUp(ctx, g, &c); f != nil {
		return nil, f
	}
	run.Mode, run.Target.Thread = handoff.ModeNext, handoff.NewThread
	switch {
	case c.Thread != "" && serverOf(req.Model) != c.Server:
		return nil, bad("model_mismatch", "model", "The conversation is with the model '"+modelOf(c.Server, c.Project)+
			"'; its session is on that machine.")
	case c.Thread != "":
		run.Target.Server, run.Target.Thread = modelOf(c.Server, c.Project), c.Thread
	case len(c.Items) > 0:
		before, f := readInput(c.Items)
		if f != nil {
			return nil, f
		}
		before.spoken()
		req.input.before = append(before.before, req.input.before...)
		req.input.instructions = append(before.instructions, req.input.instructions...)
		run.Context = req.context()
	}
	return a.begin(ctx, g, req, run, &c)
}

// opens notes the newest response of a conversation, so that a later request or process knows it.
func (a *API) opens(g handoff.Grant, c *conversation, l *liveResponse, model string) {
	if c.Open = l.id; c.Thread == "" {
		c.Server = serverOf(model)
	}
	if f := a.putConversation(g.Caller, *c); f != nil {
		a.cfg.Log.Warn("a conversation does not know its response yet", zap.String("fault", f.Message))
		l.talk = c
	}
}
