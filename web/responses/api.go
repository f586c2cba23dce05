package responses

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"iter"
	"slices"
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
	retriedFor  = 24 * time.Hour      // how long a request that surely repeats another gets the response of that one
	lostFor     = 10 * time.Minute    // the same if the answer to that was written, but may be lost
	sweepEvery  = time.Minute
	storeWithin = 5 * time.Second
	recovering  = 5 * time.Second // how long after the start the router may not know earlier work yet
)

// deleted is the body of the document of a deleted response.
const deleted = "deleted"

// Attending adds listeners, which hear of handoffs before calls do.
type Attending interface {
	Attend(g handoff.Grant, l handoff.Listener) (leave func())
}

// Work has the known handoffs, and stops them.
type Work interface {
	Handoff(g handoff.Grant, id string) (handoff.Record, error)
	Stop(ctx context.Context, g handoff.Grant, id string, of handoff.StopOf) error
	// HeardForGood records durably that an outcome was read, so that it is not told again.
	HeardForGood(ctx context.Context, g handoff.Grant, id handoff.ID) error
}

// Requests knows which requests began which handoffs.
type Requests interface {
	// Repeats returns the handoff that an equal request has begun; "": there is none.
	Repeats(ctx context.Context, g handoff.Grant, req handoff.Request) (handoff.ID, error)
	// Answered notes that who asked for work has the answer, which may be lost on its way for a time.
	Answered(g handoff.Grant, id handoff.ID, lost time.Duration)
}

// Questions has the open questions of agents.
type Questions interface {
	Questions(g handoff.Grant) []handoff.RecordQuestion
	Decide(ctx context.Context, g handoff.Grant, id handoff.QuestionID, d handoff.Decision) error
	Reply(ctx context.Context, g handoff.Grant, id handoff.QuestionID, reply handoff.Reply) error
}

// Config is what an [API] needs; only Log may be nil.
type Config struct {
	Handoffs  handoff.Handoffs
	Attending Attending
	Work      Work
	Requests  Requests
	Questions Questions
	Directory handoff.Directory
	Store     sessions.Documents
	Log       *zap.Logger // nil: none
}

// An API serves responses.
type API struct {
	cfg       Config        // Set once
	began     time.Time     // Set once
	life      string        // Set once: a random name of this process, for documents
	documents *documents    // Set once
	making    makings       // safe for concurrent use
	live      liveResponses // safe for concurrent use
	taken     sync.Map      // by [liveKey]: the conversations in which something is done at this moment
	listing   chan struct{} // holds one while the document of made sessions changes

	closing chan struct{} // closed by Close; ends the streams
	once    sync.Once     // closes it

	made, repeated, slow atomic.Uint64 // for metrics
}

// New returns an API. It needs [API.Run], which may begin a little after the first request.
func New(cfg Config) (*API, error) {
	if cfg.Handoffs == nil || cfg.Attending == nil || cfg.Work == nil || cfg.Requests == nil || cfg.Questions == nil ||
		cfg.Directory == nil || cfg.Store == nil {
		return nil, errors.New("responses: a part of the configuration is missing")
	}
	cfg.Log = cmp.Or(cfg.Log, zap.NewNop())
	a := &API{
		cfg: cfg, began: time.Now(), life: rand.Text()[:8], documents: &documents{Documents: cfg.Store, log: cfg.Log},
		listing: make(chan struct{}, 1), closing: make(chan struct{}),
	}
	a.live.most, a.live.all = maxLive, map[liveKey]*liveResponse{}
	a.live.following, a.live.leave = context.WithCancel(context.Background())
	return a, nil
}

// Run forgets what is not needed any more until ctx ends, then stops following handoffs, and returns when that has
// ended.
func (a *API) Run(ctx context.Context) error {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for ctx.Err() == nil {
		select {
		case <-tick.C:
			a.live.sweep()
		case <-ctx.Done():
		}
	}
	a.Close()
	a.live.close()
	return nil
}

// Close ends the streams. Responses in the background go on.
func (a *API) Close() { a.once.Do(func() { close(a.closing) }) }

// Metrics yields the metrics of the API.
func (a *API) Metrics() iter.Seq[handoff.Metric] {
	held, open := a.live.count()
	return slices.Values([]handoff.Metric{
		handoff.NewMetric("switchboard_api_responses_open", "Responses that are made.", open),
		handoff.NewMetric("switchboard_api_response_logs_open", "Responses whose events are in memory.", held),
		handoff.NewMetric("switchboard_api_responses_made_total", "Responses that were begun.", a.made.Load()),
		handoff.NewMetric("switchboard_api_responses_repeated_total", "Requests that were sent again and got the response that they had begun.", a.repeated.Load()),
		handoff.NewMetric("switchboard_api_responses_slow_total", "Streams that ended because their reader fell behind.", a.slow.Load()),
		handoff.NewMetric("switchboard_api_responses_unstored_total", "Responses and conversations that the store did not take.", a.documents.unstored.Load()),
	})
}

// find returns the present state of a response: from memory, from the store, or made of a handoff that another front
// began, such as a call. The live response is nil unless the handoff is being followed.
func (a *API) find(ctx context.Context, g handoff.Grant, id string) (document, *liveResponse, *fault) {
	if !strings.HasPrefix(id, responsePrefix) || len(id) > 128 {
		return document{}, nil, missing(id)
	}
	if l := a.live.get(g.Caller, id); l != nil {
		doc := l.now()
		if !l.kept || doc.Server != "" && !g.AllowsServer(doc.Server) {
			return document{}, nil, missing(id)
		}
		return doc, l, nil
	}
	doc, there, f := a.stored(ctx, g, id)
	switch {
	case f != nil:
		return document{}, nil, f
	case !there:
		return a.fromHandoff(g, id)
	case !ended(doc.Response.Status):
		return a.resume(g, doc)
	}
	return doc, nil, nil
}

// stored returns a response as it is stored. For a deleted one it returns a fault.
func (a *API) stored(ctx context.Context, g handoff.Grant, id string) (doc document, there bool, f *fault) {
	d, there, err := a.documents.Document(ctx, g.Caller, id)
	switch {
	case err != nil:
		return doc, false, a.documents.fault(err)
	case !there:
		return doc, false, nil
	case string(d.Body) == deleted || decode(d.Body, &doc) != nil || !g.AllowsServer(doc.Server):
		return doc, false, missing(id)
	case doc.Response.ID != id: // its handoff was begun again
		return a.stored(ctx, g, doc.Response.ID)
	}
	return doc, true, nil
}

// existing returns a response that was begun before, or nil. For a deleted one it returns a fault.
func (a *API) existing(ctx context.Context, g handoff.Grant, id string) (*liveResponse, *fault) {
	if l := a.live.get(g.Caller, id); l != nil {
		return l, nil
	}
	doc, there, f := a.stored(ctx, g, id)
	if !there || f != nil {
		return nil, f
	}
	if !ended(doc.Response.Status) {
		var l *liveResponse
		if doc, l, f = a.resume(g, doc); l != nil || f != nil {
			return l, f
		}
	}
	to, begun := phaseOutcome, doc // it has ended; its events can be read
	if len(doc.Asked) > 0 {
		to = phaseLeft
	}
	begun.Response.Output = []item{}
	l := a.newLive(g, begun, false)
	l.apply(to, func(m *emitter) { m.replay(doc.Response) })
	return l, nil
}

// resume follows the handoff of a stored response that had not ended when its process did.
func (a *API) resume(g handoff.Grant, doc document) (document, *liveResponse, *fault) {
	doc.Seq, doc.Streamed = 0, false // the log of its events is lost
	l := a.newLive(g, doc, true)
	rec, err := a.known(g, doc.Run)
	if handoff.CodeOf(err) == handoff.CodeStoreDown {
		return document{}, nil, faultOf(err)
	}
	if err != nil { // its outcome was heard, or it never began
		l.kept = false // do not store the failure, in case the handoff becomes known after all
		l.apply(phaseLeft, func(m *emitter) {
			m.fail("server_error",
				"Switchboard was restarted, and the work is not known any more; the session on its machine tells.")
		})
		return l.now(), nil, nil
	}
	release, f := a.live.reserve()
	if f != nil {
		return document{}, nil, f
	}
	l = a.live.start(l)
	release()
	shown := l.placed
	if rec.Outcome != "" { // a handoff that has ended is shown as ended
		shown = l.over
	}
	select {
	case <-shown:
	case <-time.After(time.Second):
	}
	return l.now(), l, nil
}

// known returns a handoff. Shortly after the start it waits while the router is still reading earlier work.
func (a *API) known(g handoff.Grant, id handoff.ID) (handoff.Record, error) {
	for {
		rec, err := a.cfg.Work.Handoff(g, string(id))
		if handoff.CodeOf(err) != handoff.CodeStoreDown || time.Since(a.began) > recovering {
			return rec, err
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// fromHandoff returns a response for a handoff that no request to this API began.
func (a *API) fromHandoff(g handoff.Grant, id string) (document, *liveResponse, *fault) {
	rec, err := a.cfg.Work.Handoff(g, strings.TrimPrefix(id, responsePrefix))
	if err != nil || rec.Unkept {
		return document{}, nil, missing(id)
	}
	input := parsedInput{}
	_ = input.message("user", []inputPart{{Type: "input_text", Text: rec.Prompt}}, 0) // never fails for a text
	doc := document{
		Response: fresh(id, &request{Model: modelOf(rec.Server, rec.Project), Background: true}, rec.CreatedAt),
		Input:    input.numbered(id), Run: handoff.ID(rec.ID), Part: 1,
		Server: rec.Server, Project: rec.Project, Thread: rec.ThreadID, Turn: rec.TurnID,
	}
	if rec.Outcome == "" {
		return a.resume(g, doc)
	}
	e := &emitter{resp: doc.Response, label: rec.Server, shown: map[string]bool{}, now: func() time.Time {
		return *cmp.Or(rec.EndedAt, new(time.Now()))
	}}
	e.begin()
	e.take(handoff.EventSnapshot{Items: rec.Items}, rec)
	e.take(handoff.EventEnded{}, rec)
	doc.Response = e.resp
	return doc, nil, nil
}

// modelOf returns the model for a machine or one of its projects, and serverOf the machine of a model.
func modelOf(server, project string) string {
	if project == "" {
		return server
	}
	return server + "/" + project
}

func serverOf(model string) string {
	server, _, _ := strings.Cut(model, "/")
	return server
}
