package realtime

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/realtime/models"
	"switchboard/realtime/outbound"
	"switchboard/realtime/rtc"
)

// A Router does what the voice model asks for in one call. Serve returns after the call has ended and its
// Events were read to their end; ctx ends some time after that at the latest. Nobody changes the grant: it is given so
// that the stack of the call need not hold it.
type Router interface {
	Serve(ctx context.Context, g *handoff.Grant, v handoff.Voice) error
}

// Config is what a [Front] needs.
type Config struct {
	// ModelURL is the ws:// or wss:// address of a Realtime server, with query parameters that it needs.
	ModelURL string
	// Model is asked for when a client names none. Empty leaves the choice to the server.
	Model string
	// Aliases maps names that clients ask for to the model's own; "*" is any other. What is not here is passed on.
	Aliases map[string]string
	// Key is sent to the model as a bearer token, or as api-key where the URL is Azure's; empty sends none. It never
	// reaches a client or a log.
	Key string
	// Router serves every call. Required.
	Router Router
	// Tools returns what the voice model gets in the calls of a grant beside the client's own tools, and the guide to
	// it. Nil: nothing.
	Tools func(handoff.Grant) ([]handoff.Tool, handoff.Guide)
	// Effort is how hard the model is to think where a client does not say it itself: "low"; "" leaves it to the model.
	Effort string
	// Backchannel reports whether words only show that somebody listens. Nil: no words do.
	Backchannel func(words string) bool
	// Dial reaches the model's server. Nil: over the network.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Ticks takes the tick log of a call that has ended, as package ticks writes it. Nil: none is kept.
	Ticks func(call string, log []byte)
	// Media says where WebRTC clients are served.
	Media rtc.Config
	// Direct lets clients that ask for it, and need no masking, exchange their sound with the model's server itself,
	// where that has calls of WebRTC as OpenAI's has.
	Direct bool
	// Spending keeps how long each caller was in calls and what they cost, where that has a limit. Nil: it has none.
	Spending Spending
	// OpenCalls counts the calls of keys over all instances. Nil: this is the only one.
	OpenCalls OpenCalls
	// Tariff is what the models at ModelURL cost.
	Tariff models.Tariff
	// Billed keeps the bill of a call that has ended, if its responses used anything. It may wait. Nil: nobody does.
	Billed func(context.Context, Bill) error
	// Partings returns what is said before a call ends, in the language that its grant names. Nil: nothing.
	Partings func(language string) Partings
	// Hold is how long a call waits for a client that vanished, if that said it comes back. Zero: not at all.
	Hold time.Duration
	// Broken remembers calls that ended without their caller's will. Nil: the next call knows nothing of them.
	Broken Broken
	// Carried keeps which calls the model's server carries for us. Nil: those that a killed process leaves there go on.
	Carried Carried
	// Attached keeps, of several instances, which one is in which call of the model's server. Nil: there is one.
	Attached Attached
	// Again returns what a grant of this caller lets its holder do now, by its By: what began a call that another
	// instance was in. Its errors are those of the edge. Required with Attached.
	Again func(ctx context.Context, by string, c handoff.Caller) (handoff.Grant, error)
	// Instance is the id of this instance where there are several: it stands in the ids of calls, so that whoever has
	// no other name is led there. "": there is one.
	Instance string
	// Log may be nil.
	Log *zap.Logger
}

// A Front carries calls between clients and the voice model. Its methods may be used from any goroutine;
// calls live while Run runs.
type Front struct {
	config   Config                     // Set once
	log      *zap.Logger                // Set once
	media    *rtc.Engine                // Set once
	quota    *quota                     // Set once; safe by itself
	counts   *frontCounts               // Set once; safe by itself
	provider *provider                  // Set once; safe by itself
	carried  *carried                   // Set once; safe by itself
	live     *registry                  // Set once; safe by itself
	starts   chan func(context.Context) // taken by Run
	stopped  chan struct{}              // closed by Run when no call may start any more
	bound    int64                      // Set once: bytes that may wait for a client; tests need fewer
	patient  time.Duration              // Set once: bounds one write to a client; tests need less

	buffers sync.Pool // keeps the library from making write buffers, for sockets make their frames themselves
}

// NewFront checks the configuration and binds the UDP port, which Run gives back. Errors are [*handoff.Error].
func NewFront(c Config) (*Front, error) {
	u, err := url.Parse(c.ModelURL)
	if err != nil || u.Host == "" || (u.Scheme != "ws" && u.Scheme != "wss") {
		return nil, handoff.Fault(handoff.CodeMalformed, "the model's URL", "want ws:// or wss:// with a host")
	}
	if c.Router == nil {
		return nil, handoff.Fault(handoff.CodeMalformed, "the front", "it has no router")
	}
	if c.Tools == nil {
		c.Tools = func(handoff.Grant) ([]handoff.Tool, handoff.Guide) { return nil, handoff.Guide{} }
	}
	if c.Backchannel == nil {
		c.Backchannel = func(string) bool { return false }
	}
	if c.Partings == nil {
		c.Partings = func(string) Partings { return Partings{} }
	}
	if c.Log == nil {
		c.Log = zap.NewNop()
	}
	media, err := rtc.Listen(c.Media, c.Log)
	if err != nil {
		return nil, err
	}
	f := &Front{
		config: c, log: c.Log, media: media, counts: newFrontCounts(), quota: newQuota(c),
		starts: make(chan func(context.Context)), stopped: make(chan struct{}),
		bound: outbound.MaxBytes, patient: writeLimit, live: newRegistry(),
	}
	f.provider = newProvider(c, u, f.counts, &f.buffers)
	f.carried = newCarried(c, f.provider)
	return f, nil
}

// Run lets calls live. When ctx ends they end with [handoff.CodeShutdown]; Run returns after the last has.
// It must be called once.
func (f *Front) Run(ctx context.Context) error {
	defer f.media.Close()
	if err := f.media.Start(); err != nil {
		close(f.stopped)
		return err
	}
	keeping, kept := context.WithCancel(context.WithoutCancel(ctx))
	var keepers sync.WaitGroup
	defer keepers.Wait()
	defer kept() // the calls have ended
	if f.config.Carried != nil {
		keepers.Go(func() { f.carried.keep(keeping) })
	}
	if f.config.OpenCalls != nil {
		keepers.Go(func() { f.quota.tell(keeping) })
	}
	var calls sync.WaitGroup
	defer calls.Wait()
	defer close(f.stopped)
	for {
		select {
		case call := <-f.starts:
			calls.Go(func() { call(ctx) })
		case <-ctx.Done():
			return nil
		}
	}
}

// A door answers a request for a call, and calls answered then: w and r are not used after that. It may carry the call
// on. An error is the answer, of who has given none.
type door func(ctx context.Context, w http.ResponseWriter, r *http.Request, answered func()) *handoff.Error

// launch lets a request through a door in a goroutine of Run, with Run's context, and returns when it was answered. It
// waits for Run while the request lasts.
func (f *Front) launch(w http.ResponseWriter, r *http.Request, through door) {
	var fault *handoff.Error // of who has not called answered: set before done is closed
	done := make(chan struct{})
	answered := sync.OnceFunc(func() { close(done) })
	start := func(ctx context.Context) {
		defer answered()
		if e := through(ctx, w, r, answered); e != nil {
			fault = e // who waits replies, so that a call that goes on keeps nothing of the request
		}
	}
	select {
	case f.starts <- start:
		if <-done; fault != nil {
			fault.Reply(w, true)
		}
		return
	case <-f.stopped:
	case <-r.Context().Done():
	}
	handoff.Fault(handoff.CodeShutdown, "", "no call may start").Reply(w, true)
}

// whileBoth returns a context that lives while both of these do.
func whileBoth(one, other context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(one)
	stop := context.AfterFunc(other, cancel)
	return ctx, func() {
		stop()
		cancel()
	}
}

// admit makes a call between a client's leg and a model that [provider.dialModel] reached. From here on it can
// be hung up or joined, so prepare comes first; the caller must let serve run. It waits for a client that vanished for
// as long as hold.
func (f *Front) admit(
	grant handoff.Grant, id string, hold time.Duration, client, model leg, prepare func(*Call),
) *Call {
	c := newCall(grant, f.config.Tools, id, client, model, f.log)
	c.legs.model.host, c.legs.hold, c.hearing.backchannel = f.provider.address.Host, hold, f.config.Backchannel
	c.model = f.config.Model
	c.mask.Reasons(f.config.Effort)
	prepare(c)
	if f.config.Ticks != nil {
		c.keepTicks()
	}
	f.live.add(c)
	return c
}

// serve carries a call until one of its ends or Hangup or ctx ends it. It runs both legs, closes them, and
// returns after the router has left the call. The error is nil when somebody hung up.
func (f *Front) serve(ctx context.Context, c *Call, client, model connection, p *admission) error {
	var running sync.WaitGroup
	defer running.Wait()
	c.pass, c.running = p, &running
	during, over := context.WithCancel(ctx)
	c.renewal.spawn = func(work func(context.Context)) { running.Go(func() { work(during) }) }
	if c.hearing.attached == nil {
		over := f.remember(during, c)
		c.atEnd = func() { over(c) }
	}
	c.begin()
	ofClient, ofModel := c.takeFrom(client), c.takeFrom(model)
	running.Go(func() { client.Run(ofClient) })
	running.Go(func() { model.Run(ofModel) })
	running.Go(func() { p.meter(during, c) })
	defer over()
	kind := overSocket
	switch {
	case c.hearing.attached != nil:
		kind = overSideband
	case c.legs.performs:
		kind = overWebRTC
	}
	f.counts.begin(kind)
	defer func() { f.counts.end(kind, c.counts, c.cause) }()
	defer f.live.remove(c)
	if c.ticked != nil {
		defer func() { f.config.Ticks(c.id, c.ticked.log.Text()) }()
	}
	return c.run(ctx, f.config.Router)
}

// ServeBooth carries a call of a client in this process, until either end or ctx ends it. lowers: the client lowers the
// sound while its person speaks into it.
func (f *Front) ServeBooth(ctx context.Context, grant handoff.Grant, client *rtc.Booth, lowers bool) error {
	pass, fault := f.quota.enter(ctx, grant)
	if fault != nil {
		client.Abandon()
		return fault
	}
	defer pass.leave()
	model, fault := f.provider.dialModel(ctx, "", nil)
	if fault != nil {
		client.Abandon()
		return fault
	}
	call := f.admit(grant, newCallID(f.config.Instance), 0, client, model, func(c *Call) {
		c.renewal.enable(f.provider.another("", nil))
		c.hearing.yielding.lowers = lowers
	})
	return f.serve(ctx, call, client, model, pass)
}

// Hangup ends a call of this caller. A call that is not there, or is somebody else's, gives
// [handoff.CodeNotFound].
func (f *Front) Hangup(grant handoff.Grant, id string) error {
	if !f.live.hangUp(grant, id) {
		return handoff.Fault(handoff.CodeNotFound, "such call", "")
	}
	return nil
}

// Leave ends the calls of a caller whom another instance has, with [handoff.CodeShutdown]: their clients call again,
// and are led there. Those that the model's server carries go on, and are joined there.
func (f *Front) Leave(c handoff.Caller) { f.live.leave(c) }

// Busy reports whether a caller is in a call here which ends when another instance has them, or whose cost is not
// written yet.
func (f *Front) Busy(c handoff.Caller) bool {
	costs := f.quota.inCall(c)
	ends, goesOn := f.live.ifLeft(c)
	return ends || costs && !goesOn
}

// Calls lists the calls of this caller that live, oldest first. A caller without a name gets an
// empty list, because the next one without a name is somebody else.
func (f *Front) Calls(grant handoff.Grant) []handoff.CallInfo {
	if grant.Caller.Nameless() {
		return []handoff.CallInfo{}
	}
	list := f.live.list(grant)
	slices.SortFunc(list, func(a, b handoff.CallInfo) int {
		return cmp.Or(a.Began.Compare(b.Began), cmp.Compare(a.ID, b.ID))
	})
	return list
}

// callPath is the address of a call, without its id.
const callPath = "/v1/realtime/calls/"

// newCallID returns an id in the form of OpenAI's, in which the instance stands whose call it is, if it has a name.
func newCallID(instance string) string {
	var b [12]byte
	_, _ = rand.Read(b[:]) // it never fails
	if instance != "" {
		instance += "_"
	}
	return "rtc_" + instance + hex.EncodeToString(b[:])
}
