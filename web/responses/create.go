package responses

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"switchboard/handoff"
)

const (
	idempotencyKey = "Idempotency-Key"

	placedWithin = 5 * time.Second // how long create waits for the begin of a run, to answer with an error if it fails
	readWithin   = 24 * time.Hour  // so long that no early answer is made: a reader of the response follows the run
)

// create answers POST /v1/responses.
func (a *API) create(w http.ResponseWriter, r *http.Request, g handoff.Grant, _ string, body []byte) *fault {
	req, f := readRequest(body)
	if f != nil {
		return f
	}
	name, repeats := retryName(r.Header, g, body)
	sum := sha256.Sum256(body)
	p, first, f := a.attempts.register(
		r.Context(), g, &attempt{
			name: name, body: sum, keyed: r.Header.Get(idempotencyKey) != "", kept: req.store(),
		}, repeats,
	)
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
	l, f := a.make(r.Context(), g, req, p)
	if p.live = l; l != nil {
		l.mu.Lock()
		l.settled = a.attempts.settler(g.Caller, p)
		l.mu.Unlock()
	}
	close(p.ready)
	if f != nil {
		a.attempts.forget(p)
		if p.stored && p.keyed { // another request may use the same Idempotency-Key; the key of the run stays
			_ = a.documents.store(g.Caller, "retry_"+p.name, []byte(p.key), keptFor) // it was logged
		}
		return f
	}
	a.counts.made.Add(1)
	return a.answer(w, r, l, req)
}

func reused() *fault {
	return bad("idempotency_key_reused", "", "That Idempotency-Key came with another request.")
}

// A repetition says whether a request repeats an equal one.
type repetition int

const (
	isFirst   repetition = iota
	mayRepeat            // most clients do not say so; then it does if who made the first has no answer
	repeated
)

// retryName returns the name under which repetitions of a request are recognised, and whether the request is one: SDKs
// repeat a POST whose connection broke, most of them without an Idempotency-Key.
func retryName(h http.Header, g handoff.Grant, body []byte) (string, repetition) {
	sum := sha256.New()
	sum.Write([]byte(encode([]string{g.Caller.String(), g.Key})))
	if key := h.Get(idempotencyKey); key != "" {
		sum.Write([]byte("key " + key))
		return hex.EncodeToString(sum.Sum(nil)[:16]), repeated
	}
	sum.Write(body)
	name, count := hex.EncodeToString(sum.Sum(nil)[:16]), h.Get("X-Stainless-Retry-Count")
	switch n, err := strconv.Atoi(count); {
	case err != nil:
		return name, mayRepeat
	case n > 0:
		return name, repeated
	}
	return name, isFirst
}

// fresh returns a new response without output.
func fresh(id string, req *request, at time.Time) response {
	resp := response{
		ID: id, Object: "response", CreatedAt: at.Unix(), Status: inProgress,
		Background: req.Background, Instructions: req.Instructions, Metadata: req.Metadata, Model: req.Model,
		Output: []item{}, ParallelToolCalls: true, PreviousResponseID: req.Previous,
		Reasoning: json.RawMessage(`{"effort":null,"summary":null}`), Store: req.store(), Temperature: 1,
		Text:       json.RawMessage(`{"format":{"type":"text"}}`),
		ToolChoice: cmp.Or(req.choice, "auto"), Tools: []struct{}{}, TopP: 1, Truncation: "disabled",
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

// make begins a response, or returns the one that an earlier process began for the same request. After an error,
// nothing has begun.
func (a *API) make(ctx context.Context, g handoff.Grant, req *request, p *attempt) (*liveResponse, *fault) {
	if p.response != "" {
		switch l, f := a.existing(ctx, g, p.response); {
		case f != nil:
			return nil, f
		case l == nil:
			p.response = ""
		case a.begun(g, l.run()):
			return l, nil
		default: // an earlier process promised the run and never began it, so it begins now
			a.live.drop(g.Caller, p.response)
			p.keepLong = true // because the new run has another id than the response
		}
	}
	target, f := findModel(ctx, a.cfg.Directory, g, req.Model)
	if f == nil {
		f = a.resolveMentions(ctx, g, req)
	}
	if f != nil {
		return nil, f
	}
	if req.Background && g.Caller.Nameless() {
		return nil, faultOf(
			handoff.Fault(handoff.CodeNotGranted, "a response in the background needs a caller with a name", ""),
		)
	}
	run := handoff.Request{Key: p.key, Again: p.again, Target: target, Input: req.input.parts, Context: req.context()}
	run.Unkept = !req.store() || g.Caller.Nameless()
	switch {
	case len(req.input.approvals) > 0:
		return a.answerApprovals(ctx, g, req, p)
	case req.conversation != "":
		return a.beginInConversation(ctx, g, req, p, run)
	case req.Previous != nil:
		if f := a.continuePrevious(ctx, g, req, &run); f != nil {
			return nil, f
		}
	case run.Unkept:
		run.Mode = handoff.ModeAside
	default:
		run.Target.Thread = handoff.NewThread
	}
	return a.begin(ctx, g, req, p, run)
}

// findModel returns the target for a model: a machine, or one of its projects.
func findModel(
	ctx context.Context, d handoff.Directory, g handoff.Grant, name string,
) (handoff.Target, *fault) {
	for _, s := range d.Servers(ctx, g) {
		switch rest, in := strings.CutPrefix(name, s.Name+"/"); {
		case name != s.Name && (!in || !slices.Contains(s.Projects, rest)):
		case s.Health == handoff.HealthDown:
			return handoff.Target{}, faultOf(handoff.Fault(handoff.CodeUnreachable, s.Name, s.Problem))
		default:
			return handoff.Target{Server: name}, nil
		}
	}
	return handoff.Target{}, notFound("model_not_found", "model", "The model '"+handoff.Clip(name, 80)+
		"' does not exist or you do not have access to it. GET /v1/models lists what there is.")
}

// continuePrevious makes the run continue the previous response.
func (a *API) continuePrevious(ctx context.Context, g handoff.Grant, req *request, run *handoff.Request) *fault {
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
		return bad(
			"model_mismatch",
			"model",
			"The previous response is of the model '"+doc.Response.Model+"'; its session is on that machine.",
		)
	case doc.Thread == "" || doc.Turn == "":
		return bad(
			"previous_response_not_found", "previous_response_id",
			"The previous response never ran, so there is no session to go on in.",
		)
	}
	for _, q := range openQuestions(a.cfg.Questions, g, doc) {
		return bad(
			"approval_required",
			"input",
			"Approval required for "+approvalID(id, q.ID)+": answer it with an mcp_approval_response.",
		)
	}
	run.Target.Server, run.Target.Thread, run.After = modelOf(doc.Server, doc.Project), doc.Thread, doc.Turn
	if run.Unkept { // in a copy of the session that is not kept; the session itself does not change
		run.Mode = handoff.ModeAside
	}
	return nil
}

func serverOf(model string) string {
	server, _, _ := strings.Cut(model, "/")
	return server
}

// begin starts the run, and follows it with a live response.
func (a *API) begin(
	ctx context.Context, g handoff.Grant, req *request, p *attempt, run handoff.Request,
) (*liveResponse, *fault) {
	var by *listener
	if !req.Background {
		by = a.listeners.enter(g)
		run.By, run.Within = by, readWithin
	}
	quit := func() {
		if by != nil {
			a.listeners.exit(g, by, "")
		}
	}
	id, err := a.cfg.Runs.Start(ctx, g, run)
	if err != nil {
		quit()
		return nil, faultOf(err)
	}
	// p.response is an id that the client knows already, from a run that never began.
	name := cmp.Or(p.response, responsePrefix+string(id))
	if run.Again && p.response == "" && run.Key != "" {
		if l, f := a.existing(ctx, g, name); l != nil || f != nil { // the run was begun before, under the same key
			quit()
			if f == nil && l.over() && req.conversation != "" { // an open response vacates it at its end
				a.conversations.vacate(liveKey{g.Caller, req.conversation})
			}
			return l, f
		}
	}
	if rec, err := a.cfg.Work.Handoff(g, string(id)); run.Again && err == nil && rec.Unkept &&
		rec.State == handoff.StatusDelivered {
		quit()
		return a.unkept(g, req, name, rec), nil
	}
	if req.conversation != "" { // because a repetition may find another session in the conversation
		p.keepLong = true
		a.conversations.opens(g, req.conversation, name)
	}
	a.attempts.setResponse(g.Caller, p, name)
	doc := document{
		Response: fresh(
			name, req, time.Now(),
		), Input: req.input.kept(name), Run: id, Part: 1, Streamed: req.Stream, Exact: req.exact(),
		Server: serverOf(req.Model),
	}
	l := a.newLive(g, doc, !run.Unkept)
	if by != nil {
		l.expected, l.unfollow = true, sync.OnceFunc(func() { a.listeners.exit(g, by, id) })
	}
	if run.Key != "" {
		l.request = &run
	}
	return a.place(ctx, l, doc, p)
}

// unkept returns the response to a repetition of a request with store: false whose run has ended: only its outcome is
// known.
func (a *API) unkept(g handoff.Grant, req *request, name string, rec handoff.Record) *liveResponse {
	l := a.newLive(
		g, document{Response: fresh(name, req, rec.CreatedAt), Run: handoff.RunID(rec.ID), Part: 1, Server: rec.Server},
		false,
	)
	l.begin()
	l.apply(func(m *emitter) []event {
		return m.failed("response_not_kept", fmt.Sprintf(
			"This request was sent before, and its work ended: %q. With 'store': false its answer is not kept, and it does not run again.",
			rec.Outcome,
		))
	})
	return l
}

// begun reports whether a run was begun, or may have been. It is false for a run that an earlier process promised and
// never began.
func (a *API) begun(g handoff.Grant, id handoff.RunID) bool {
	rec, err := a.cfg.Work.Handoff(g, string(id))
	return err != nil || rec.Fault == nil || rec.Fault.Code != handoff.CodeNotBegun
}

// existing returns a response that was begun before, or nil. For a deleted one it returns an error.
func (a *API) existing(ctx context.Context, g handoff.Grant, name string) (*liveResponse, *fault) {
	if l := a.live.get(g.Caller, name); l != nil {
		return l, nil
	}
	switch _, ok, err := a.documents.Document(ctx, g.Caller, name); {
	case err != nil:
		return nil, a.documents.fault(err)
	case !ok:
		return nil, nil
	}
	doc, l, f := a.find(ctx, g, name)
	if f != nil || l != nil {
		return l, f
	}
	return a.ended(g, doc), nil
}

// ended returns an ended response as a live one, whose events can be read.
func (a *API) ended(g handoff.Grant, doc document) *liveResponse {
	l := a.newLive(g, doc, false)
	resp := doc.Response
	status, output := resp.Status, resp.Output
	l.emit.resp.Output = []item{}
	l.outcome = len(doc.Asked) == 0
	l.begin()
	l.apply(func(m *emitter) []event {
		for i := range output {
			it := output[i]
			m.resp.Output = append(m.resp.Output, it)
			m.emit(event{Type: evAdded, OutputIndex: &i, Item: &it})
			m.done(i)
		}
		m.resp = resp
		m.lifecycle(cmp.Or(map[string]string{completed: evCompleted, failed: evFailed}[status], evIncomplete))
		return m.take(nil, handoff.Record{})
	})
	return l
}

// place stores a response, begins to follow its run, and waits until the run is in the ledger or has failed to begin.
func (a *API) place(ctx context.Context, l *liveResponse, doc document, p *attempt) (*liveResponse, *fault) {
	if l.kept {
		a.documents.put(l.grant.Caller, doc)
	}
	l.begin()
	if f := a.live.start(l); f != nil {
		if l.unfollow != nil {
			l.unfollow()
		}
		return nil, f
	}
	select {
	case <-l.placed:
	case <-time.After(placedWithin):
	case <-ctx.Done():
	}
	l.mu.Lock()
	startFault := l.startFault
	l.mu.Unlock()
	if startFault == nil {
		return l, nil
	}
	a.live.drop(l.grant.Caller, l.id)
	if l.kept {
		a.documents.drop(l.grant.Caller, l.id)
	}
	a.attempts.rename(l.grant.Caller, p) // so that a repetition of the request begins another run
	f := faultOf(startFault)
	f.replied = func(told bool) { l.settle(func() { l.told, l.expected = told, false }) }
	return nil, f
}
