package realtime

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"sync"

	"github.com/tidwall/gjson"
	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/realtime/rtc"
)

// maxOfferSession bounds the session in a multipart offer, in bytes; maxOfferParts its parts.
const (
	maxOfferSession = 128 << 10
	maxOfferParts   = 8
)

// lowers is the query parameter of a client that lowers the sound itself while its person speaks into it.
const lowers = "lowers"

// chosen returns the grant of a request with the language that its client chose for the call, if it did.
func chosen(r *http.Request, grant handoff.Grant) handoff.Grant {
	grant.Language = cmp.Or(r.URL.Query().Get("language"), grant.Language)
	return grant
}

// An rtcOffer is what a client posts to begin a call.
type rtcOffer struct {
	rtc.Offer
	form  []byte // the session of its form, checked; or nil
	model string // that it asks for, or ""

	lowers bool // its client lowers the sound while its person speaks into it
}

// ServeCalls serves POST /v1/realtime/calls to a client that was let in with this grant: an SDP offer,
// raw or in a form with a session, is answered with 201 and an SDP answer, and the call lives on in Run.
// Host and Origin were checked before. The model's session begins before the answer. So an HTTP error tells
// that the model failed, or that it refused the form's session; otherwise the caller would be in a silent call.
func (f *Front) ServeCalls(w http.ResponseWriter, r *http.Request, grant handoff.Grant) {
	if asksBeta(r) {
		f.refuseBeta(w, r)
		return
	}
	grant = chosen(r, grant)
	offer, fault := readOffer(w, r, grant)
	if fault != nil {
		fault.Reply(w, true)
		return
	}
	serve := f.serveOffer
	switch {
	case r.URL.Query().Has("call_id") && f.live.ofProvider(r.URL.Query().Get("call_id")):
		serve = f.serveInstead
	case r.URL.Query().Has("call_id"):
		serve = f.serveReoffer
	case f.direct(r):
		serve = f.serveDirect
	}
	f.launch(w, r, func(ctx context.Context, w http.ResponseWriter, r *http.Request, answered func()) *handoff.Error {
		return serve(ctx, w, r, grant, offer, answered)
	})
}

// serveOffer is a [door], for an offer.
func (f *Front) serveOffer(
	ctx context.Context, w http.ResponseWriter, r *http.Request, grant handoff.Grant, offer rtcOffer, answered func(),
) *handoff.Error {
	f.yield(r.Context(), grant)
	pass, fault := f.quota.enter(r.Context(), grant)
	if fault != nil {
		return fault
	}
	defer pass.leave()
	client, fault := f.media.NewLeg(offer.Offer, f.log)
	if fault != nil {
		return fault
	}
	dialing, cancel := whileBoth(r.Context(), ctx)
	defer cancel()
	model, fault := f.provider.dialModel(dialing, offer.model, r.Header)
	if fault != nil {
		client.Abandon()
		f.log.Warn("voice model unreachable", zap.String("code", string(fault.Code)), zap.String("detail", fault.Detail))
		return fault
	}
	answer, fault := client.Answer(dialing)
	if fault != nil {
		client.Abandon()
		model.Abandon()
		return fault
	}
	id := newCallID(f.config.Instance)
	begun := make(chan *handoff.Error, 1)
	// Before the answer: a client that has the id may hang up at once.
	call := f.admit(grant, id, f.holdOf(r, grant), client, model, func(c *Call) {
		c.renewal.enable(f.provider.another(offer.model, r.Header))
		c.session.begins = func(fault *handoff.Error) { begun <- fault }
		c.legs.tells, c.hearing.yielding.lowers = tellsOurs(r.URL.Query()), offer.lowers
		if offer.Session != nil {
			c.mask.Await()
		}
	})
	var replying sync.WaitGroup // the call waits for nobody
	defer replying.Wait()
	replying.Go(func() {
		defer answered()
		if fault := <-begun; fault != nil {
			fault.Reply(w, true)
			return
		}
		replyAnswer(w, id, answer)
		client.Answered()
	})
	// How the call ended was logged by the call.
	_ = f.serve(ctx, call, client, model, pass)
	return nil
}

// readOffer reads and checks the body. Errors have code [handoff.CodeMalformed] or [handoff.CodeTooLarge].
func readOffer(w http.ResponseWriter, r *http.Request, grant handoff.Grant) (rtcOffer, *handoff.Error) {
	var offer rtcOffer
	kind, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	var fault *handoff.Error
	switch {
	case r.Header.Get("Content-Type") == "" || (err == nil && kind == "application/sdp"):
		var sdp []byte
		sdp, fault = readPart(http.MaxBytesReader(w, r.Body, rtc.MaxSDP+1), rtc.MaxSDP, "the offer")
		offer.SDP = string(sdp)
	case err == nil && kind == "multipart/form-data":
		fault = offer.readForm(multipart.NewReader(http.MaxBytesReader(w, r.Body, rtc.MaxSDP+maxOfferSession+rtc.MaxSDP),
			params["boundary"]))
	default:
		fault = handoff.Fault(handoff.CodeMalformed, "an offer is application/sdp or multipart/form-data", "")
	}
	if fault == nil {
		fault = offer.Check()
	}
	offer.lowers = r.URL.Query().Get(lowers) == "1"
	offer.configure(grant.Session, r.URL.Query().Get("model"))
	return offer, fault
}

// readForm reads the parts sdp and session, in any order. Others are not ours.
func (o *rtcOffer) readForm(form *multipart.Reader) *handoff.Error {
	for range maxOfferParts {
		part, err := form.NextPart()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return tooLargeOr(err, "the form cannot be read")
		}
		switch part.FormName() {
		case "sdp":
			sdp, fault := readPart(part, rtc.MaxSDP, "the offer")
			if fault != nil {
				return fault
			}
			o.SDP = string(sdp)
		case "session":
			session, fault := readPart(part, maxOfferSession, "the session")
			if fault != nil {
				return fault
			}
			if fault := CheckSession(session); fault != nil {
				return fault
			}
			o.form = session
		}
	}
	return handoff.Fault(handoff.CodeTooLarge, "the form", fmt.Sprintf("at most %d parts", maxOfferParts-1))
}

// configure joins what the call begins with: the form's session over the one that a client secret is bound to. The
// model is for the connection: that of the secret, or else the address's, or else the form's.
func (o *rtcOffer) configure(bound []byte, named string) {
	session := o.form
	if len(bound) > 0 {
		session = overlay(bound, o.form)
	}
	var asked string
	o.Session, asked = opening(session)
	o.model = cmp.Or(gjson.GetBytes(bound, "model").String(), named, asked)
}

func readPart(from io.Reader, limit int64, what string) ([]byte, *handoff.Error) {
	b, err := io.ReadAll(io.LimitReader(from, limit+1))
	if err != nil {
		return nil, tooLargeOr(err, what+" cannot be read")
	}
	if int64(len(b)) > limit {
		return nil, handoff.Fault(handoff.CodeTooLarge, what, fmt.Sprintf("at most %d bytes", limit))
	}
	return b, nil
}

func tooLargeOr(err error, what string) *handoff.Error {
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return handoff.Fault(handoff.CodeTooLarge, "the offer", err.Error())
	}
	return handoff.Fault(handoff.CodeMalformed, what, err.Error())
}
