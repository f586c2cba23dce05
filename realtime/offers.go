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

	"switchboard/handoff"
	"switchboard/realtime/rtc"
)

// maxOfferSession bounds the session in a multipart offer, in bytes; maxOfferParts bounds the parts.
const (
	maxOfferSession = 128 << 10
	maxOfferParts   = 8
)

// paramLowers is the query parameter of a client that lowers the sound itself while its person speaks into it.
const paramLowers = "lowers"

// withLanguage returns the grant of a request with the language that the request chooses for the call, if it does.
func withLanguage(r *http.Request, grant handoff.Grant) handoff.Grant {
	grant.Language = cmp.Or(r.URL.Query().Get("language"), grant.Language)
	return grant
}

// An rtcOffer is what a client posts to begin a call.
type rtcOffer struct {
	rtc.Offer
	form  []byte // the session in its form, checked; or nil
	model string // the model that it asks for, or ""

	lowers bool // see [paramLowers]
}

// ServeCalls serves POST /v1/realtime/calls to a client that was let in with this grant: an SDP offer, raw or in a form
// with a session, is answered with 201 and an SDP answer, and the call lives on in Run. Host and Origin were checked
// before. The model's session begins before the answer. So a failure of the model, or its refusal of the form's
// session, is an HTTP error, and does not leave the caller in a silent call.
func (f *Front) ServeCalls(w http.ResponseWriter, r *http.Request, grant handoff.Grant) {
	if asksBeta(r) {
		f.refuseBeta(w, r)
		return
	}
	grant = withLanguage(r, grant)
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

// serveOffer is the [callHandler] of an offer whose sound goes through here.
func (f *Front) serveOffer(
	ctx context.Context, w http.ResponseWriter, r *http.Request, grant handoff.Grant, offer rtcOffer, answered func(),
) *handoff.Error {
	pass, fault := f.enter(r.Context(), grant)
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
		f.logUnreachable(fault)
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
		c.renewal.enable(f.provider.sessionOpener(offer.model, r.Header))
		c.session.onBegun = func(fault *handoff.Error) { begun <- fault }
		c.legs.takesOurs, c.hearing.yielding.lowers = tellsOurs(r.URL.Query()), offer.lowers
		if offer.Session != nil {
			c.filter.AwaitOpening()
		}
	})
	var replying sync.WaitGroup // in a goroutine: the call does not wait for a slow client
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
		body := http.MaxBytesReader(w, r.Body, rtc.MaxSDP+maxOfferSession+rtc.MaxSDP)
		fault = offer.readForm(multipart.NewReader(body, params["boundary"]))
	default:
		fault = handoff.Fault(handoff.CodeMalformed, "an offer is application/sdp or multipart/form-data", "")
	}
	if fault == nil {
		fault = offer.Check()
	}
	offer.lowers = r.URL.Query().Get(paramLowers) == "1"
	offer.configure(grant.Session, r.URL.Query().Get("model"))
	return offer, fault
}

// readForm reads the parts sdp and session, in any order, and ignores others.
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

// configure sets the session that the call begins with, which is the form's over the one that a client secret is bound
// to, and the model of the connection, which is that of the secret, or else named, or else the form's.
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
