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

// Attached keeps, where there are several instances, which one is in which call of the provider, and what the instance
// that has its caller next needs to go on there. It may be used from any goroutine.
type Attached interface {
	// Keep notes that this instance is in a call, and what the next one needs; nil: none is to go on in it. False:
	// another instance is in it.
	Keep(ctx context.Context, c handoff.Caller, call string, body []byte) (mine bool, err error)
	// Drop notes that this instance is in it no more. over: nor is another one to be.
	Drop(ctx context.Context, c handoff.Caller, call string, over bool) error
	// Left returns what was kept of a caller's calls, by call.
	Left(ctx context.Context, c handoff.Caller) (map[string]string, error)
}

// lastingWithin bounds one use of the store.
const lastingWithin = 2 * time.Second

// resumedNote tells the model of a call that another instance was in before.
const resumedNote = "The connection to Switchboard was lost for a moment and is back. What was begun goes on, and " +
	"what comes of it will be told: do not call a tool again for it, also where a function call has no output; " +
	"status tells what became of it. Say nothing of this unless asked."

// A lastingCall is what another instance needs to go on in a call of the provider. It is kept as JSON.
type lastingCall struct {
	By       string `json:"by"` // of its grant
	Language string `json:"language,omitempty"`
	Safety   string `json:"safety,omitempty"` // whom its client named to the provider
	Ours     bool   `json:"ours,omitempty"`   // we began it there, and hang it up
	Lowers   bool   `json:"lowers,omitempty"`
}

// A lasting call is one of the provider, for as long as this instance is in it: no other one is meanwhile. Nil: this is
// the only instance.
type lasting struct {
	store Attached      // Set once
	log   *zap.Logger   // Set once
	grant handoff.Grant // Set once
	id    string        // Set once
	moved atomic.Bool   // another instance is to go on in it
}

// lasting returns what keeps a call for other instances; nil: there are none.
func (f *Front) lasting(g handoff.Grant, id string) *lasting {
	if f.config.Attached == nil {
		return nil
	}
	return &lasting{store: f.config.Attached, log: f.log, grant: g, id: id}
}

// keep notes that this instance is in the call, and what the next one needs to be. Errors have code
// [handoff.CodeAttached] where another one is in it, or [handoff.CodeStoreDown]: then nothing of it stays, as far as
// the store is reached, but for what was kept of a call that another instance was in.
func (l *lasting) keep(ctx context.Context, call lastingCall) *handoff.Error {
	if l == nil {
		return nil
	}
	var body []byte
	fresh := call.By == ""
	if l.isKept() {
		call.By, call.Language = l.grant.By, l.grant.Language
		body = []byte(handoff.Encode(call))
	}
	limited, cancel := context.WithTimeout(ctx, lastingWithin)
	defer cancel()
	switch mine, err := l.store.Keep(limited, l.grant.Caller, l.id, body); {
	case err != nil:
		l.drop(ctx, fresh) // the answer may be lost, not what was asked
		return handoff.Because(handoff.CodeStoreDown, "", err)
	case !mine:
		return &handoff.Error{Code: handoff.CodeAttached, Param: "call_id"}
	}
	return nil
}

// end notes that this instance is in the call no more, once its socket is closed.
func (l *lasting) end(ctx context.Context) {
	if l != nil {
		l.drop(ctx, !l.moved.Load())
	}
}

func (l *lasting) drop(ctx context.Context, over bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastingWithin)
	defer cancel()
	if err := l.store.Drop(ctx, l.grant.Caller, l.id, over && l.isKept()); err != nil {
		l.log.Warn("not kept that a call of the voice model's server was left",
			zap.String("call", l.id), zap.Error(err))
	}
}

// isKept reports whether another instance can go on in the call.
func (l *lasting) isKept() bool { return l != nil && l.grant.By != "" && !l.grant.Caller.Nameless() }

// move has another instance go on in the call, if it can.
func (l *lasting) move() {
	if l.isKept() {
		l.moved.Store(true)
	}
}

func (l *lasting) hasMoved() bool { return l != nil && l.moved.Load() }

// Resume joins again the calls of the provider which another instance was in that had the caller before. The home
// that this instance has of the caller ends with ctx. It waits for [Front.Run]; the calls are joined there.
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
		var was lastingCall
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

// again tries something until it is done, for as long as a lost sideband is dialled again, or ctx ends.
func again(ctx context.Context, try func(context.Context) error) (err error) {
	for range tries(ctx, append([]time.Duration{0}, redials...)) {
		limited, cancel := context.WithTimeout(ctx, lastingWithin)
		err = try(limited)
		if cancel(); err == nil {
			break
		}
	}
	return err
}

// resume goes on in a call that another instance was in, until that ends or the caller's home does. One that its caller
// may not be in any more is left, and hung up where it is ours.
func (f *Front) resume(ctx, home context.Context, c handoff.Caller, id string, was lastingCall) {
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
	// One too many, also after a while: whoever is in the call ends it, and no other one.
	if handoff.CodeOf(err) == handoff.CodeLimited && staying.Err() == nil && a.lasts.keep(staying, was) == nil {
		f.log.Info("a call of the voice model's server is not joined again", zap.String("call", id), zap.Error(err))
		err = nil
	}
	if err != nil { // another instance is in it, or nobody knows: whoever has the caller next looks again
		f.log.Warn("call of the voice model's server not joined again", zap.String("call", id), zap.Error(err))
		return
	}
	defer func() {
		if home.Err() != nil && ctx.Err() == nil {
			a.lasts.move()
		}
		if was.Ours {
			f.carried.part(ctx, id, a.lasts)
		}
		a.lasts.end(ctx)
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
		&attached{ours: was.Ours, lowers: was.Lowers, lasts: a.lasts, resumed: true}, nil)
}

// refusals are why a caller may be in a call no more.
var refusals = []handoff.Code{handoff.CodeUnauthorized, handoff.CodeForbidden, handoff.CodeSecretOver}

// takeUp lets this instance be in a call that another one was in. Without a pass its caller may not be.
func (f *Front) takeUp(
	ctx context.Context, c handoff.Caller, id string, was lastingCall, leave context.CancelFunc,
) (a attachment, err error) {
	a = attachment{grant: handoff.Grant{Caller: c, By: was.By}, leave: leave, in: make(chan struct{})}
	if was.Ours {
		a.began = time.Now()
	}
	a.lasts = f.lasting(a.grant, id)
	grant, err := f.config.Again(ctx, was.By, c)
	if err != nil {
		return a, err
	}
	grant.By, grant.Language = was.By, was.Language
	a.grant, a.lasts = grant, f.lasting(grant, id)
	pass, fault := f.quota.enter(ctx, grant)
	if fault != nil {
		return a, fault
	}
	a.pass = pass
	switch {
	case !f.live.attach(id, a): // the one before is not over yet
		fault = &handoff.Error{Code: handoff.CodeAttached, Param: "call_id"}
	default:
		if fault = a.lasts.keep(ctx, was); fault != nil {
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
