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

// Prefixes of ids.
const (
	responsePrefix     = "resp_"
	conversationPrefix = "conv_"
)

// Bounds of what an API holds.
const (
	maxLive     = 1024                // responses in memory; when none of them has ended, no more are begun
	keptFor     = 30 * 24 * time.Hour // how long responses and conversations are stored
	retriedFor  = 24 * time.Hour      // how long a repeated request gets the response of the first one
	lostFor     = 10 * time.Minute    // the same for one whose answer was written, but may be lost
	storeWithin = 5 * time.Second
	recovering  = 5 * time.Second // how long after the start the router may not know earlier work yet
)

// deleted is the body of the document of a deleted response.
const deleted = "deleted"

// Attending adds listeners, which hear of runs before calls do.
type Attending interface {
	Attend(g handoff.Grant, l handoff.Listener) (leave func())
}

// Work has the known runs, and stops them.
type Work interface {
	Handoff(g handoff.Grant, id string) (handoff.Record, error)
	Stop(ctx context.Context, g handoff.Grant, id string) error
	// HeardForGood records durably that an outcome was read, so that it is not told again.
	HeardForGood(ctx context.Context, g handoff.Grant, id handoff.RunID) error
}

// Questions has the open questions of agents.
type Questions interface {
	Questions(g handoff.Grant) []handoff.RecordQuestion
	Decide(ctx context.Context, g handoff.Grant, id handoff.QuestionID, d handoff.Decision) error
	Reply(ctx context.Context, g handoff.Grant, id handoff.QuestionID, words string) error
}

// Config is what an [API] needs; only Log may be nil.
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
	*madeSessions                // Set once
	cfg           Config         // Set once
	began         time.Time      // Set once
	life          string         // Set once: a random name of this process, for documents
	documents     *documents     // Set once
	attempts      *attempts      // Set once
	live          *liveResponses // Set once
	conversations *conversations // Set once
	listeners     listeners      // safe for concurrent use

	closing chan struct{} // closed by Close; ends the streams
	once    sync.Once     // closes it
	counts  counts
}

// counts has counters for metrics.
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
		madeSessions: &madeSessions{documents: documents, by: map[handoff.Caller][]string{}}, cfg: cfg, began: time.Now(),
		life: rand.Text()[:8], documents: documents, attempts: &attempts{documents: documents, all: map[string]*attempt{}},
		live: &liveResponses{all: map[liveKey]*liveResponse{}}, closing: make(chan struct{}),
	}
	a.conversations = &conversations{
		documents: documents, catchUp: a.catchUp, busy: map[liveKey]bool{}, turns: map[liveKey]chan struct{}{},
	}
	a.listeners.attending, a.listeners.all = cfg.Attending, map[listenerKey]*listener{}
	a.live.following, a.live.leave = context.WithCancel(context.Background())
	return a, nil
}

// Run waits until ctx ends, then stops following runs, and returns when that has ended.
func (a *API) Run(ctx context.Context) error {
	<-ctx.Done()
	a.Close()
	a.live.close()
	return nil
}

// Close ends the streams. Responses in the background go on.
func (a *API) Close() { a.once.Do(func() { close(a.closing) }) }

// storeEnd stores an ended response. It is called before its end is shown.
func (a *API) storeEnd(l *liveResponse, doc document) {
	if !l.kept {
		return
	}
	a.documents.put(l.grant.Caller, doc)
	if doc.Response.Conversation != nil {
		a.conversations.leave(l.grant.Caller, doc)
	}
}

// find returns the present state of a response: from memory, from the store, or made of a run that another front began,
// such as a call. The live response is nil unless the run is being followed.
func (a *API) find(ctx context.Context, g handoff.Grant, id string) (document, *liveResponse, *fault) {
	if !strings.HasPrefix(id, responsePrefix) || len(id) > 128 {
		return document{}, nil, missing(id)
	}
	if l := a.live.get(g.Caller, id); l != nil {
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
		return a.resume(g, doc)
	}
	return doc, nil, nil
}

// resume follows the run of a stored response that had not ended when its process did.
func (a *API) resume(g handoff.Grant, doc document) (document, *liveResponse, *fault) {
	doc.Seq, doc.Streamed = 0, false // the log of its events is lost
	l := a.newLive(g, doc, true)
	known, err := a.knows(g, doc.Run)
	if err != nil {
		return document{}, nil, faultOf(err)
	}
	if !known { // its outcome was heard, or it never began
		l.kept = false // do not store the failure, in case the run becomes known after all
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
	if f := a.live.start(l); f != nil {
		if other := a.live.get(g.Caller, l.id); other != nil {
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

// knows reports whether a run is known. Shortly after the start it waits, because the router may still be reading
// earlier work. An error means that it cannot be told yet.
func (a *API) knows(g handoff.Grant, run handoff.RunID) (bool, error) {
	for {
		switch _, err := a.cfg.Work.Handoff(g, string(run)); {
		case err == nil:
			return true, nil
		case time.Since(a.began) <= recovering:
		case handoff.AsError(err).Code == handoff.CodeStoreDown:
			return false, err
		default:
			return false, nil
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// awaitPlace waits shortly for an event of the run, so that a run that has ended is shown as ended.
func (l *liveResponse) awaitPlace() {
	select {
	case <-l.placed:
	case <-time.After(time.Second):
	}
}

// begin writes the first events of the stream.
func (l *liveResponse) begin() { l.apply((*emitter).begin) }

// fromRun returns a response for a run that no request to this API began.
func (a *API) fromRun(g handoff.Grant, id string) (document, *liveResponse, *fault) {
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
	s := parsedInput{}
	_ = s.message("user", []inputPart{{Type: "input_text", Text: rec.Prompt}}, 0) // never fails for a text
	doc.Input = s.numbered(id)
	if rec.Outcome == "" {
		return a.resume(g, doc)
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
