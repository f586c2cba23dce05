package realtime

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"switchboard/handoff"
)

// Attached stores, if there are several instances, which one is in which call of the provider, and what the next
// instance of the call's caller needs to continue in it. It must be safe for concurrent use.
type Attached interface {
	// Keep notes that this instance is in a call, and what the next one needs; a nil body: no other one may continue in
	// it. False: another instance is in the call.
	Keep(ctx context.Context, c handoff.Caller, call string, body []byte) (mine bool, err error)
	// Drop notes that this instance has left a call. over: no other one may continue in it.
	Drop(ctx context.Context, c handoff.Caller, call string, over bool) error
	// Left returns the bodies kept for a caller's calls, by call.
	Left(ctx context.Context, c handoff.Caller) (map[string]string, error)
}

// claimStoreLimit bounds one use of the store.
const claimStoreLimit = 2 * time.Second

// resumedNote tells the model that this instance has taken the call over from another.
const resumedNote = "The connection to Switchboard was lost for a moment and is back. What was begun goes on, and " +
	"what comes of it will be told: do not call a tool again for it, also where a function call has no output; " +
	"status tells what became of it. Say nothing of this unless asked."

// A claimedCall is what another instance needs to continue in a call of the provider. It is stored as JSON.
type claimedCall struct {
	By       string `json:"by"` // the By of its grant
	Language string `json:"language,omitempty"`
	Safety   string `json:"safety,omitempty"` // the client's safetyHeader
	Ours     bool   `json:"ours,omitempty"`   // we began it there, and hang it up
	Lowers   bool   `json:"lowers,omitempty"`
}

// A claim is the right of this instance to be in a call of the provider: no other instance is in it meanwhile. A nil
// claim is valid: there is only one instance.
type claim struct {
	store Attached      // Set once
	log   *zap.Logger   // Set once
	grant handoff.Grant // Set once
	id    string        // Set once
	moved atomic.Bool   // another instance takes the call over
}

// newClaim returns the claim of a call, which is not stored yet; nil: there is only one instance.
func (f *Front) newClaim(g handoff.Grant, id string) *claim {
	if f.config.Attached == nil {
		return nil
	}
	return &claim{store: f.config.Attached, log: f.log, grant: g, id: id}
}

// keep stores that this instance is in the call, and what the next one needs. Errors have code [handoff.CodeAttached]
// if another instance is in it, or [handoff.CodeStoreDown]. After the latter it undoes a store that may have succeeded,
// but leaves what an earlier instance of the call had stored.
func (l *claim) keep(ctx context.Context, call claimedCall) *handoff.Error {
	if l == nil {
		return nil
	}
	var body []byte
	fresh := call.By == ""
	if l.isKept() {
		call.By, call.Language = l.grant.By, l.grant.Language
		body = []byte(handoff.Encode(call))
	}
	limited, cancel := context.WithTimeout(ctx, claimStoreLimit)
	defer cancel()
	switch mine, err := l.store.Keep(limited, l.grant.Caller, l.id, body); {
	case err != nil:
		l.drop(ctx, fresh) // the store may have done it, and only its answer is lost
		return handoff.StoreDown(err)
	case !mine:
		return &handoff.Error{Code: handoff.CodeAttached, Param: "call_id"}
	}
	return nil
}

// end stores that this instance has left the call. It is called once the socket is closed.
func (l *claim) end(ctx context.Context) {
	if l != nil {
		l.drop(ctx, !l.moved.Load())
	}
}

func (l *claim) drop(ctx context.Context, over bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), claimStoreLimit)
	defer cancel()
	if err := l.store.Drop(ctx, l.grant.Caller, l.id, over && l.isKept()); err != nil {
		l.log.Warn("not kept that a call of the voice model's server was left",
			zap.String("call", l.id), zap.Error(err))
	}
}

// isKept reports whether another instance could continue in the call.
func (l *claim) isKept() bool { return l != nil && l.grant.By != "" && !l.grant.Caller.Nameless() }

// move lets another instance take the call over, if one can.
func (l *claim) move() {
	if l.isKept() {
		l.moved.Store(true)
	}
}

func (l *claim) hasMoved() bool { return l != nil && l.moved.Load() }

// Resume joins the calls of the provider that the caller's instance before this one was in. This instance is the
// caller's home until ctx ends. Resume waits for [Front.Run], which runs the calls.
func (f *Front) Resume(ctx context.Context, c handoff.Caller) {
	if f.config.Attached == nil || c.Nameless() {
		return
	}
	var left map[string]string
	err := again(ctx, func(ctx context.Context) (err error) {
		left, err = f.config.Attached.Left(ctx, c)
		return err
	})
	if err != nil {
		f.log.Warn("not known which calls the caller is in", zap.Error(err))
	}
	for id, body := range left {
		var was claimedCall
		if json.Unmarshal([]byte(body), &was) != nil || !callIDs.MatchString(id) {
			f.log.Warn("unreadable call of the voice model's server left out", zap.String("call", id))
			continue
		}
		select {
		case f.starts <- func(running context.Context) { f.resume(running, ctx, c, id, was) }:
		case <-f.stopped:
			return
		case <-ctx.Done():
			return
		}
	}
}

// again calls try until it succeeds, with redialPauses between, or until ctx ends.
func again(ctx context.Context, try func(context.Context) error) (err error) {
	for range tries(ctx, append([]time.Duration{0}, redialPauses...)) {
		limited, cancel := context.WithTimeout(ctx, claimStoreLimit)
		err = try(limited)
		if cancel(); err == nil {
			break
		}
	}
	return err
}

// resume continues in a call that another instance was in, until the call or the home of its caller ends. A call that
// its caller may not be in any more is left, and hung up if it is ours.
func (f *Front) resume(ctx, home context.Context, c handoff.Caller, id string, was claimedCall) {
	staying, leave := whileBoth(ctx, home)
	defer leave()
	var a attachment
	err := again(staying, func(ctx context.Context) (err error) {
		a, err = f.takeUp(ctx, c, id, was, leave)
		if err != nil && slices.Contains(refusals, handoff.AsError(err).Code) {
			f.log.Info("a call of the voice model's server is not joined again", zap.String("call", id), zap.Error(err))
			return nil
		}
		return err
	})
	// Over the limit of calls, also after the retries: this instance claims the call in order to end it.
	if handoff.CodeOf(err) == handoff.CodeLimited && staying.Err() == nil && a.claim.keep(staying, was) == nil {
		f.log.Info("a call of the voice model's server is not joined again", zap.String("call", id), zap.Error(err))
		err = nil
	}
	if err != nil { // another instance is in it, or nobody knows: the next home of the caller tries again
		f.log.Warn("call of the voice model's server not joined again", zap.String("call", id), zap.Error(err))
		return
	}
	defer func() {
		if home.Err() != nil && ctx.Err() == nil {
			a.claim.move()
		}
		if was.Ours {
			f.carried.end(ctx, id, a.claim)
		}
		a.claim.end(ctx)
	}()
	if a.pass == nil {
		return
	}
	defer a.pass.leave()
	defer f.live.detach(id)
	header := http.Header{}
	if was.Safety != "" {
		header.Set(safetyHeader, was.Safety)
	}
	model, fault := f.provider.join(staying, id, header)
	if fault != nil && fault.Code != handoff.CodeNotFound {
		model, _ = f.provider.rejoin(staying, id, header, 0)
	}
	if model != nil {
		f.log.Info("call of the voice model's server joined again", zap.String("call", id))
	}
	f.stay(ctx, staying, a.grant, id, header, model, a.pass,
		&attached{ours: was.Ours, lowers: was.Lowers, claim: a.claim, resumed: true}, nil)
}

// refusals are the codes that say that a caller may not be in a call any more.
var refusals = []handoff.Code{handoff.CodeUnauthorized, handoff.CodeForbidden, handoff.CodeSecretOver}

// takeUp claims a call that another instance was in, for this one. The attachment has a pass only if there is no error.
func (f *Front) takeUp(
	ctx context.Context, c handoff.Caller, id string, was claimedCall, leave context.CancelFunc,
) (a attachment, err error) {
	a = attachment{grant: handoff.Grant{Caller: c, By: was.By}, leave: leave, in: make(chan struct{})}
	if was.Ours {
		a.began = time.Now()
	}
	a.claim = f.newClaim(a.grant, id)
	grant, err := f.config.Again(ctx, was.By, c)
	if err != nil {
		return a, err
	}
	grant.By, grant.Language = was.By, was.Language
	a.grant, a.claim = grant, f.newClaim(grant, id)
	pass, fault := f.quota.enter(ctx, grant)
	if fault != nil {
		return a, fault
	}
	a.pass = pass
	switch {
	case !f.live.attach(id, a): // our own earlier attachment has not ended yet
		fault = &handoff.Error{Code: handoff.CodeAttached, Param: "call_id"}
	default:
		if fault = a.claim.keep(ctx, was); fault != nil {
			f.live.detach(id)
		}
	}
	if fault != nil {
		a.pass = nil
		pass.leave()
		return a, fault
	}
	return a, nil
}
