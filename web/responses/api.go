package responses

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/sessions"
)

// How ids begin.
const (
	responsePrefix     = "resp_"
	conversationPrefix = "conv_"
)

// Bounds of what an API holds.
const (
	maxLive     = 1024                // responses in memory; when all of them live, no more are begun
	keptFor     = 30 * 24 * time.Hour // responses and conversations
	retriedFor  = 10 * time.Minute    // how long a request is known again
	storeWithin = 5 * time.Second
	recovering  = 5 * time.Second // how long after a start work of a former life may still be unknown
)

// deleted is the document of a response that was deleted.
const deleted = "deleted"

// Attending is how an API hears of runs before a call does.
type Attending interface {
	Attend(g handoff.Grant, l handoff.Listener) (leave func())
}

// Work is runs that are known, and their end.
type Work interface {
	Handoff(g handoff.Grant, id string) (handoff.Record, error)
	Stop(ctx context.Context, g handoff.Grant, id string) error
	// HeardForGood notes that an outcome was read: after a kill it is not told again.
	HeardForGood(ctx context.Context, c handoff.Caller, id handoff.RunID) error
}

// Questions is what agents wait for.
type Questions interface {
	Questions(g handoff.Grant) []handoff.RecordQuestion
	Decide(ctx context.Context, g handoff.Grant, id handoff.QuestionID, d handoff.Decision) error
	Reply(ctx context.Context, g handoff.Grant, id handoff.QuestionID, words string) error
}

// Config is what an [API] needs; everything but Log.
type Config struct {
	Runs      handoff.Runs
	Attending Attending
	Work      Work
	Questions Questions
	Directory handoff.Directory
	Store     sessions.Documents
	Log       *zap.Logger // nil: none
}

// An API serves responses.
type API struct {
	*made                        // Set once: what programs made with it
	cfg           Config         // Set once
	began         time.Time      // Set once
	life          string         // Set once: names this process in documents
	documents     *documents     // Set once
	attempts      *attempts      // Set once
	lives         *lives         // Set once
	conversations *conversations // Set once
	listeners     listeners      // safe by itself

	closing chan struct{} // closed by Close: streams end
	once    sync.Once     // closes it
	counts  counts
}

// counts count; anybody may add.
type counts struct{ made, repeated, slow atomic.Uint64 }

// New returns an API. It needs [API.Run], which may begin a little after the first request.
func New(cfg Config) (*API, error) {
	if cfg.Runs == nil || cfg.Attending == nil || cfg.Work == nil || cfg.Questions == nil || cfg.Directory == nil ||
		cfg.Store == nil {
		return nil, errors.New("responses: a part of the configuration is missing")
	}
	if cfg.Log == nil {
		cfg.Log = zap.NewNop()
	}
	documents := &documents{Documents: cfg.Store, log: cfg.Log}
	a := &API{
		made: &made{documents: documents, by: map[handoff.Caller][]string{}}, cfg: cfg, began: time.Now(),
		life: rand.Text()[:8], documents: documents, attempts: &attempts{documents: documents, all: map[string]*attempt{}},
		lives: &lives{all: map[liveKey]*live{}}, closing: make(chan struct{}),
	}
	a.conversations = &conversations{
		documents: documents, catchUp: a.catchUp, busy: map[liveKey]bool{}, turns: map[liveKey]chan struct{}{},
	}
	a.listeners.attending, a.listeners.all = cfg.Attending, map[listenerKey]*listener{}
	a.lives.following, a.lives.leave = context.WithCancel(context.Background())
	return a, nil
}

// Run follows runs until ctx ends, and returns when nobody does any more.
func (a *API) Run(ctx context.Context) error {
	<-ctx.Done()
	a.Close()
	a.lives.close()
	return nil
}

// Close ends the streams. Responses in the background go on.
func (a *API) Close() { a.once.Do(func() { close(a.closing) }) }

// storeEnd stores how a response ended, before anybody sees it.
func (a *API) storeEnd(l *live, doc document) {
	if !l.kept { // so is one that is only read again
		return
	}
	a.documents.put(l.grant.Caller, doc)
	if doc.Response.Conversation != nil {
		a.conversations.leave(l.grant.Caller, doc)
	}
}

// find returns a response as it stands: from memory, from the store, or from what is known of a run that began
// elsewhere, as by voice.
func (a *API) find(ctx context.Context, g handoff.Grant, id string) (document, *live, *fault) {
	if !strings.HasPrefix(id, responsePrefix) || len(id) > 128 {
		return document{}, nil, missing(id)
	}
	if l := a.lives.get(g.Caller, id); l != nil {
		if !l.kept {
			return document{}, nil, missing(id)
		}
		doc := l.now()
		if doc.Server != "" && !g.AllowsServer(doc.Server) {
			return document{}, nil, missing(id)
		}
		return doc, l, nil
	}
	d, ok, err := a.documents.Document(ctx, g.Caller, id)
	if err != nil {
		return document{}, nil, a.documents.fault(err)
	}
	if !ok {
		return a.fromRun(g, id)
	}
	var doc document
	if string(d.Body) == deleted {
		return document{}, nil, missing(id)
	}
	if f := decode(d.Body, &doc); f != nil || !g.AllowsServer(doc.Server) {
		return document{}, nil, missing(id)
	}
	if !ended(doc.Response.Status) {
		return a.again(g, doc)
	}
	return doc, nil, nil
}

// again follows the run of a response whose process ended before it did.
func (a *API) again(g handoff.Grant, doc document) (document, *live, *fault) {
	doc.Seq, doc.Streamed = 0, false // what was streamed is gone with its process
	l := a.newLive(g, doc, true)
	if !a.knows(g, doc.Run) { // it was told, or never began
		l.kept = false // should it become known after all
		l.begin()
		l.apply(func(m *emitter) []event {
			return m.failed(
				"server_error",
				"Switchboard was restarted, and the work is not known any more; the session on its machine tells.",
			)
		})
		return l.now(), nil, nil
	}
	l.begin()
	occupied := doc.Response.Conversation != nil && a.conversations.occupy(
		liveKey{g.Caller, doc.Response.Conversation.ID},
	) == nil
	if f := a.lives.start(l); f != nil {
		if other := a.lives.get(g.Caller, l.id); other != nil {
			return other.now(), other, nil
		}
		if occupied {
			a.conversations.vacate(liveKey{g.Caller, doc.Response.Conversation.ID})
		}
		return document{}, nil, f
	}
	l.awaitPlace()
	return l.now(), l, nil
}

// knows reports whether a run is known. Right after a start the router may still be reading what there is.
func (a *API) knows(g handoff.Grant, run handoff.RunID) bool {
	for {
		if _, err := a.cfg.Work.Handoff(g, string(run)); err == nil {
			return true
		}
		if time.Since(a.began) > recovering {
			return false
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// awaitPlace gives a run that is over the time to show it.
func (l *live) awaitPlace() {
	select {
	case <-l.placed:
	case <-time.After(time.Second):
	}
}

// begin writes how the stream begins.
func (l *live) begin() { l.apply((*emitter).begin) }

// fromRun is a run that no request to this API began.
func (a *API) fromRun(g handoff.Grant, id string) (document, *live, *fault) {
	run := strings.TrimPrefix(id, responsePrefix)
	rec, err := a.cfg.Work.Handoff(g, run)
	if err != nil || rec.Unkept {
		return document{}, nil, missing(id)
	}
	doc := document{
		Response: fresh(
			id, &request{Model: modelOf(rec.Server, rec.Project)}, rec.CreatedAt,
		), Run: handoff.RunID(rec.ID), Part: 1,
		Server: rec.Server, Project: rec.Project, Thread: rec.ThreadID, Turn: rec.TurnID,
	}
	doc.Response.Background = true
	s := said{}
	_ = s.message("user", []inputPart{{Type: "input_text", Text: rec.Prompt}}, 0) // a text is always well
	doc.Input = s.numbered(id)
	if rec.Outcome == "" {
		return a.again(g, doc)
	}
	e := &emitter{resp: doc.Response, label: rec.Server, shown: map[string]bool{}, now: func() time.Time {
		if rec.EndedAt != nil {
			return *rec.EndedAt
		}
		return time.Now()
	}}
	e.begin()
	e.take(handoff.RunSnapshot{Items: rec.Items}, rec)
	e.take(handoff.RunEnded{}, rec)
	doc.Response = e.resp
	return doc, nil, nil
}

func modelOf(server, project string) string {
	if project == "" {
		return server
	}
	return server + "/" + project
}
