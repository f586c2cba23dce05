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
	"strings"
	"time"

	"switchboard/handoff"
)

const (
	placedWithin = 5 * time.Second // how long create waits for the begin of a handoff, to answer if that fails
	readWithin   = 24 * time.Hour  // so long that no early answer is made: a reader of the response follows the handoff
)

// ignoredHeader names the parameters of a request that have no effect.
const ignoredHeader = "Switchboard-Ignored"

// create answers POST /v1/responses.
func (a *API) create(w http.ResponseWriter, r *http.Request, g handoff.Grant, _ string, body []byte) *fault {
	req, f := readRequest(body)
	if f != nil {
		return f
	}
	if names := req.ignored(); len(names) > 0 {
		w.Header().Set(ignoredHeader, strings.Join(names, ", "))
	}
	sum := sha256.Sum256(body)
	req.sum = hex.EncodeToString(sum[:])
	l, f := a.respond(r.Context(), g, req, identify(r.Header, g, req.sum))
	if f != nil {
		return f
	}
	return a.answer(w, r, l, req)
}

// respond returns the response to a request: that of the equal one that it repeats, or a new one.
func (a *API) respond(
	ctx context.Context, g handoff.Grant, req *request, run handoff.Request,
) (*liveResponse, *fault) {
	defer a.making.enter(ctx, run)()
	if ctx.Err() != nil {
		return nil, faultOf(context.Cause(ctx))
	}
	id, err := a.cfg.Requests.Repeats(ctx, g, run)
	switch {
	case err != nil:
		return nil, faultOf(err)
	case id != "":
		a.repeated.Add(1)
		return a.again(ctx, g, req, id)
	}
	l, f := a.make(ctx, g, req, run)
	if f == nil {
		a.made.Add(1)
	}
	return l, f
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

// make begins a response; run says which request it is. After an error, nothing has begun, or it has ended.
func (a *API) make(
	ctx context.Context, g handoff.Grant, req *request, run handoff.Request,
) (l *liveResponse, f *fault) {
	if req.release, f = a.live.reserve(); f != nil {
		return nil, f
	}
	defer req.release()
	target, f := a.findModel(ctx, g, req.Model)
	if f == nil {
		f = a.resolveMentions(ctx, g, req)
	}
	if f != nil {
		return nil, f
	}
	if req.Background && g.Caller.Nameless() {
		return nil, faultOf(
			handoff.Fault(handoff.CodeNotGranted, "a response in the background needs a caller with a name", ""))
	}
	run.Target, run.Input, run.Context = target, req.input.parts, req.context()
	run.Unkept = !req.store() || g.Caller.Nameless()
	switch {
	case len(req.input.approvals) > 0:
		return a.answerApprovals(ctx, g, req)
	case req.conversation != "":
		return a.beginInConversation(ctx, g, req, run)
	case req.Previous != nil:
		if f := a.continuePrevious(ctx, g, req, &run); f != nil {
			return nil, f
		}
	case !run.Unkept:
		run.Target.Thread = handoff.NewThread
	}
	if run.Unkept { // in a copy of the session, or a new one, that is not kept
		run.Mode = handoff.ModeAside
	}
	return a.begin(ctx, g, req, run, nil)
}

// findModel returns the target for a model: a machine, or one of its projects.
func (a *API) findModel(ctx context.Context, g handoff.Grant, name string) (handoff.Target, *fault) {
	for _, s := range a.cfg.Directory.Servers(ctx, g) {
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

// previous returns the previous response of a request, which is of the same machine.
func (a *API) previous(ctx context.Context, g handoff.Grant, req *request) (document, *fault) {
	doc, _, f := a.find(ctx, g, *req.Previous)
	switch {
	case f.isMissing():
		return doc, noPrevious("Previous response with id '" + handoff.Clip(*req.Previous, 80) + "' not found.")
	case f == nil && serverOf(req.Model) != doc.Server:
		return doc, bad("model_mismatch", "model",
			"The previous response is of the model '"+doc.Response.Model+"'; its session is on that machine.")
	}
	return doc, f
}

func noPrevious(message string) *fault {
	return bad("previous_response_not_found", "previous_response_id", message)
}

// continuePrevious makes the handoff continue the previous response.
func (a *API) continuePrevious(ctx context.Context, g handoff.Grant, req *request, run *handoff.Request) *fault {
	doc, f := a.previous(ctx, g, req)
	switch {
	case f != nil:
		return f
	case !ended(doc.Response.Status):
		return busy("previous_response_in_progress", "The previous response is still in progress.")
	case doc.Thread == "" || doc.Turn == "":
		return noPrevious("The previous response never ran, so there is no session to go on in.")
	}
	for _, q := range a.openQuestions(g, doc) {
		return bad("approval_required", "input",
			"Approval required for "+approvalID(doc.Response.ID, q.ID)+": answer it with an mcp_approval_response.")
	}
	run.Target.Server, run.Target.Thread, run.After = modelOf(doc.Server, doc.Project), doc.Thread, doc.Turn
	return nil
}

// deaf is a [handoff.Listener] that only keeps the events of a handoff from calls: its response follows the handoff
// itself, and has a reader.
type deaf byte // not empty, because listeners are told apart by their addresses

// Hear implements [handoff.Listener]. Other handoffs are left to other listeners.
func (*deaf) Hear(e handoff.Event) bool {
	_, other := e.Kind.(handoff.EventTaken)
	return !other
}

// Outbox implements [handoff.Listener].
func (*deaf) Outbox([]handoff.Record) bool { return false }

// begin starts the handoff, and follows it with a live response. talk is its conversation, or nil.
func (a *API) begin(
	ctx context.Context, g handoff.Grant, req *request, run handoff.Request, talk *conversation,
) (*liveResponse, *fault) {
	leave := func() {}
	defer func() { leave() }()
	if !req.Background {
		by := new(deaf)
		leave, run.By, run.Within = a.cfg.Attending.Attend(g, by), by, readWithin
	}
	id, err := a.cfg.Handoffs.Start(ctx, g, run)
	if err != nil {
		return nil, faultOf(err)
	}
	name := responsePrefix + string(id)
	if l := a.live.get(g.Caller, name); l != nil { // an equal request was a little faster
		return l, nil
	}
	doc := req.document(id, time.Now())
	l := a.newLive(g, doc, !run.Unkept)
	l.request = &run
	if talk != nil {
		a.opens(g, talk, l, req.Model)
	}
	l.audience.expected = !req.Background // the request is its first reader
	l.leave, leave = leave, l.leave
	return a.place(ctx, l, doc, req)
}

// document returns the first response of a handoff, which has no output yet.
func (r *request) document(run handoff.ID, at time.Time) document {
	name := responsePrefix + string(run)
	return document{
		Response: fresh(name, r, at), Input: r.input.kept(name), Run: run, Part: 1,
		Streamed: r.Stream, Exact: r.exact(), Server: serverOf(r.Model),
	}
}

// again returns the response that a repeated request has begun, with its handoff.
func (a *API) again(ctx context.Context, g handoff.Grant, req *request, id handoff.ID) (*liveResponse, *fault) {
	if l, f := a.existing(ctx, g, responsePrefix+string(id)); l != nil || f != nil {
		return l, f
	}
	rec, err := a.cfg.Work.Handoff(g, string(id))
	if err != nil {
		return nil, faultOf(err)
	}
	doc := req.document(id, rec.CreatedAt)
	l := a.newLive(g, doc, !rec.Unkept)
	if rec.Unkept && rec.State == handoff.StatusDelivered { // only its outcome is known
		l.apply(phaseLeft, func(m *emitter) {
			m.fail("response_not_kept", fmt.Sprintf("This request was sent before, and its work ended: %q. "+
				"With 'store': false its answer is not kept, and it does not run again.", rec.Outcome))
		})
		return l, nil
	}
	var f *fault
	if req.release, f = a.live.reserve(); f != nil {
		return nil, f
	}
	defer req.release()
	return a.place(ctx, l, doc, req)
}

// place stores a response, begins to follow its handoff, and waits until the handoff is in the ledger or has failed to
// begin. If another request follows it already, its response is returned.
func (a *API) place(ctx context.Context, l *liveResponse, doc document, req *request) (*liveResponse, *fault) {
	if l.kept {
		a.documents.put(l.grant.Caller, doc)
	}
	is := a.live.start(l)
	req.release()
	if is != l {
		l.leave()
		return is, nil
	}
	select {
	case <-l.placed:
	case <-time.After(placedWithin):
	case <-ctx.Done():
	}
	startFault := l.refused()
	if startFault == nil {
		return l, nil
	}
	a.live.drop(l.grant.Caller, l.id)
	if l.kept {
		a.documents.drop(l.grant.Caller, l.id)
	}
	f := faultOf(startFault)
	f.replied = l.wasRefused
	return nil, f
}
