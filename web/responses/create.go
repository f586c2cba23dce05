package responses

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"switchboard/handoff"
)

const (
	placedWithin = 5 * time.Second // how long a create waits to answer with an error instead of a response
	readWithin   = 24 * time.Hour  // whoever reads along needs no promise
)

// A posted is a request that may be sent again.
type posted struct {
	at    time.Time     // Set once
	ready chan struct{} // closed once it is known what came of it
	live  *live         // Set once, before ready is closed; nil: it failed
	key   string        // of its run
	body  [32]byte      // Set once: its hash
}

// create answers POST /v1/responses.
func (a *API) create(w http.ResponseWriter, r *http.Request, g handoff.Grant, body []byte) *fault {
	req, f := readRequest(body)
	if f != nil {
		return f
	}
	name, again := retryName(r.Header, g, body)
	sum := sha256.Sum256(body)
	p, first, f := a.post(r.Context(), g, req, sum, name, again)
	switch {
	case f != nil:
		return f
	case !first:
		select {
		case <-p.ready:
		case <-r.Context().Done():
			return nil
		}
		if p.live == nil {
			return busy("request_failed", "The same request has just failed.")
		}
		if p.body != sum {
			return reused()
		}
		a.counts.repeated.Add(1)
		return a.answer(w, r, p.live, req)
	}
	l, f := a.make(r.Context(), g, req, p.key, again)
	if again && f.is(handoff.CodeNotBegun) { // a former life had promised it; who asks again wants it done
		a.rename(g.Caller, name, p)
		l, f = a.make(r.Context(), g, req, p.key, again)
	}
	p.live = l
	close(p.ready)
	if f != nil {
		a.unpost(name, p)
		return f
	}
	if again && p.key != "" { // only now: of what failed nothing is kept
		a.keep(g.Caller, name, p)
	}
	a.counts.made.Add(1)
	return a.answer(w, r, l, req)
}

func reused() *fault {
	return bad("idempotency_key_reused", "", "That Idempotency-Key came with another request.")
}

// retryName is what a request is known by when it is sent again, and whether it says that it is: SDKs repeat a POST
// whose connection broke, most of them without a key.
func retryName(h http.Header, g handoff.Grant, body []byte) (name string, again bool) {
	sum := sha256.New()
	sum.Write([]byte(encode([]string{g.Caller.String(), g.Key})))
	if key := h.Get("Idempotency-Key"); key != "" {
		sum.Write([]byte("key " + key))
		return hex.EncodeToString(sum.Sum(nil)[:16]), true
	}
	sum.Write(body)
	n, _ := strconv.Atoi(h.Get("X-Stainless-Retry-Count"))
	return hex.EncodeToString(sum.Sum(nil)[:16]), n > 0
}

// post finds the request that this one repeats, or notes it as the first. What names its run is in the store before
// the run begins, so that a repetition finds it also after the process was killed.
func (a *API) post(ctx context.Context, g handoff.Grant, req *request, body [32]byte, name string, again bool) (p *posted, first bool, f *fault) {
	a.mu.Lock()
	if p = a.retries[name]; p != nil && again && a.now().Sub(p.at) <= retriedFor {
		a.mu.Unlock()
		return p, false, nil
	}
	p = &posted{at: a.now(), ready: make(chan struct{}), key: "response " + name, body: body}
	a.retries[name] = p
	a.sweepLocked()
	a.mu.Unlock()
	if !req.store() || g.Caller.Nameless() {
		p.key = ""
		return p, true, nil
	}
	if again {
		d, ok, err := a.cfg.Store.Document(ctx, g.Caller, "retry_"+name)
		switch {
		case err != nil: // under another key it might run twice
			close(p.ready)
			a.unpost(name, p)
			return nil, false, a.storeFault(err)
		case ok:
			key, sum, _ := strings.Cut(string(d.Body), "\n")
			if p.key = key; sum != "" && sum != hex.EncodeToString(body[:]) {
				close(p.ready)
				a.unpost(name, p)
				return nil, false, reused()
			}
		}
		return p, true, nil
	}
	a.rename(g.Caller, name, p)
	return p, true, nil
}

// rename gives the run of a request a new key, and keeps it for those who send the request again.
func (a *API) rename(c handoff.Caller, name string, p *posted) {
	p.key = "response " + name + " " + rand.Text()
	a.keep(c, name, p)
}

// keep stores the key of a request's run, and what was asked under it. Where the second is missing, a former version
// stored it.
func (a *API) keep(c handoff.Caller, name string, p *posted) {
	a.store(c, "retry_"+name, []byte(p.key+"\n"+hex.EncodeToString(p.body[:])), retriedFor)
}

// unpost forgets a request that failed: sent again it is a new one.
func (a *API) unpost(name string, p *posted) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.retries[name] == p {
		delete(a.retries, name)
	}
}

// fresh is a response of which nothing is done.
func (a *API) fresh(id string, req *request, at time.Time) response {
	resp := response{
		ID: id, Object: "response", CreatedAt: at.Unix(), Status: inProgress, Background: req.Background, Instructions: req.Instructions,
		Metadata: req.Metadata, Model: req.Model, Output: []item{}, ParallelToolCalls: true, PreviousResponseID: req.Previous,
		Reasoning: json.RawMessage(`{"effort":null,"summary":null}`), Store: req.store(), Temperature: 1, Text: json.RawMessage(`{"format":{"type":"text"}}`),
		ToolChoice: "auto", Tools: []struct{}{}, TopP: 1, Truncation: "disabled",
	}
	if resp.Metadata == nil {
		resp.Metadata = map[string]string{}
	}
	if !absent(req.Reasoning) {
		resp.Reasoning = req.Reasoning
	}
	if !absent(req.Text) {
		resp.Text = req.Text
	}
	if req.conversation != "" {
		resp.Conversation = &reference{req.conversation}
	}
	return resp
}

// make begins a response. When it fails, nothing is left of it.
func (a *API) make(ctx context.Context, g handoff.Grant, req *request, key string, again bool) (*live, *fault) {
	target, f := a.model(ctx, g, req.Model)
	if f != nil {
		return nil, f
	}
	if req.Background && g.Caller.Nameless() {
		return nil, faultOf(handoff.Fault(handoff.CodeNotGranted, "a response in the background needs a caller with a name", ""))
	}
	run := handoff.Request{Key: key, Again: again, Target: target, Input: req.said.parts, Context: req.beside()}
	run.Unkept = !req.store() || g.Caller.Nameless()
	switch {
	case len(req.said.approvals) > 0:
		return a.decided(ctx, g, req, again)
	case req.conversation != "":
		return a.converse(ctx, g, req, run)
	case req.Previous != nil:
		if f := a.goOn(ctx, g, req, &run); f != nil {
			return nil, f
		}
	case run.Unkept:
		run.Mode = handoff.ModeAside
	default:
		run.Target.Thread = handoff.NewThread
	}
	return a.begin(ctx, g, req, run)
}

// model finds the machine, or its project, that a model names.
func (a *API) model(ctx context.Context, g handoff.Grant, name string) (handoff.Target, *fault) {
	for _, s := range a.cfg.Directory.Servers(ctx, g) {
		switch rest, in := strings.CutPrefix(name, s.Name+"/"); {
		case name != s.Name && (!in || !slices.Contains(s.Projects, rest)):
		case s.Health == handoff.HealthDown:
			return handoff.Target{}, faultOf(handoff.Fault(handoff.CodeUnreachable, s.Name, s.Problem))
		default:
			return handoff.Target{Server: name}, nil
		}
	}
	f := bad("model_not_found", "model", "The model '"+handoff.Clip(name, 80)+"' does not exist or you do not have access to it. GET /v1/models lists what there is.")
	f.Status = http.StatusNotFound
	return handoff.Target{}, f
}

// goOn lets the run continue a response.
func (a *API) goOn(ctx context.Context, g handoff.Grant, req *request, run *handoff.Request) *fault {
	id := *req.Previous
	doc, _, f := a.find(ctx, g, id)
	switch {
	case f != nil && f.Status == http.StatusNotFound:
		return noPrevious(id)
	case f != nil:
		return f
	case !ended(doc.Response.Status):
		return busy("previous_response_in_progress", "The previous response is still in progress.")
	case serverOf(req.Model) != doc.Server:
		return bad("model_mismatch", "model", "The previous response is of the model '"+doc.Response.Model+"'; its session is on that machine.")
	case doc.Thread == "" || doc.Turn == "":
		return bad("previous_response_not_found", "previous_response_id", "The previous response never ran, so there is no session to go on in.")
	}
	for _, q := range a.open(g, doc) {
		return bad("approval_required", "input", "Approval required for "+approvalID(q.ID)+": answer it with an mcp_approval_response.")
	}
	run.Target.Server, run.Target.Thread, run.After = modelOf(doc.Server, doc.Project), doc.Thread, doc.Turn
	if run.Unkept { // in a copy of which nothing is kept; what it goes on from stays as it is
		run.Mode = handoff.ModeAside
	}
	return nil
}

func serverOf(model string) string {
	server, _, _ := strings.Cut(model, "/")
	return server
}

// begin starts the run and makes its response live.
func (a *API) begin(ctx context.Context, g handoff.Grant, req *request, run handoff.Request) (*live, *fault) {
	var by *ear
	if !req.Background {
		by = a.ears.enter(g)
		run.By, run.Within = by, readWithin
	}
	quit := func() {
		if by != nil {
			a.ears.exit(g, by, "")
		}
	}
	id, err := a.cfg.Runs.Start(ctx, g, run)
	if err != nil {
		quit()
		return nil, faultOf(err)
	}
	if rec, err := a.cfg.Work.Handoff(g, string(id)); run.Again && err == nil && rec.Fault != nil && rec.Fault.Code == handoff.CodeNotBegun {
		quit()
		return nil, faultOf(rec.Fault)
	}
	if l := a.same(ctx, g, id); l != nil { // it was begun before, under the same key
		quit()
		return l, nil
	}
	name := responsePrefix + string(id)
	doc := document{
		Response: a.fresh(name, req, a.now()), Input: req.said.numbered(name), Run: id, Part: 1, Streamed: req.Stream, Exact: req.exact(),
		Server: serverOf(req.Model),
	}
	l := a.newLive(g, doc, !run.Unkept)
	if by != nil {
		l.tells, l.leave = true, func() { a.ears.exit(g, by, id) }
	}
	return a.place(ctx, l, doc)
}

// same returns the response of a run that was begun before, or nil.
func (a *API) same(ctx context.Context, g handoff.Grant, id handoff.RunID) *live {
	name := responsePrefix + string(id)
	if l := a.live(g.Caller, name); l != nil {
		return l
	}
	if _, ok, err := a.cfg.Store.Document(ctx, g.Caller, name); err != nil || !ok {
		return nil
	}
	doc, l, f := a.find(ctx, g, name)
	if f != nil || l != nil {
		return l
	}
	return a.ended(g, doc)
}

// ended is a response that is over, as one that can be read.
func (a *API) ended(g handoff.Grant, doc document) *live {
	l := a.newLive(g, doc, false)
	resp := doc.Response
	status, output := resp.Status, resp.Output
	l.emit.resp.Output = []item{}
	l.begin()
	l.apply(func(m *emitter) []event {
		for i := range output {
			shown := output[i]
			m.resp.Output = append(m.resp.Output, shown)
			m.emit(event{Type: evAdded, OutputIndex: &i, Item: &shown})
			m.done(i)
		}
		m.resp = resp
		typ := map[string]string{completed: evCompleted, failed: evFailed}[status]
		if typ == "" {
			typ = evIncomplete
		}
		m.lifecycle(typ)
		return m.take(nil, handoff.Record{})
	})
	return l
}

// place stores a response, begins to follow its run and waits until that is written down, or cannot be begun.
func (a *API) place(ctx context.Context, l *live, doc document) (*live, *fault) {
	if l.kept {
		a.put(l.grant.Caller, doc)
	}
	l.begin()
	if f := a.start(l); f != nil {
		if l.leave != nil {
			l.leave()
		}
		return nil, f
	}
	t := time.NewTimer(placedWithin)
	defer t.Stop()
	select {
	case <-l.placed:
	case <-t.C:
	case <-ctx.Done():
	}
	l.mu.Lock()
	early := l.early
	l.mu.Unlock()
	if early == nil {
		return l, nil
	}
	a.forget(l)
	return nil, faultOf(early)
}

// forget takes a response out of memory and of the store.
func (a *API) forget(l *live) {
	a.mu.Lock()
	delete(a.lives, liveKey{l.grant.Caller, l.id})
	a.mu.Unlock()
	if !l.kept {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), storeWithin)
	defer cancel()
	_, _ = a.cfg.Store.DropDocument(ctx, l.grant.Caller, l.id) // what stays says that it failed
}
