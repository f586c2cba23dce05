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
	"switchboard/realtime/rtc"
)

// A Router does what the voice model asks for in one call. Serve returns after the call has ended and its Events were
// read to their end. ctx ends some time after the call if Serve has not returned by then. Serve must not change the
// grant, which is a pointer only to keep the stack small.
type Router interface {
	Serve(ctx context.Context, g *handoff.Grant, v handoff.Voice) error
}

// Config is what a [Front] needs.
type Config struct {
	// ModelURL is the ws:// or wss:// address of a Realtime server, with the query parameters that it needs.
	ModelURL string
	// Model is asked for when a client names none. Empty leaves the choice to the server.
	Model string
	// Aliases maps the names of models that clients ask for to those of the server; "*" stands for any other name. A
	// name without an alias is passed on.
	Aliases map[string]string
	// Key is sent to the model as a bearer token, or as api-key where the URL is Azure's; empty sends none. It never
	// reaches a client or a log.
	Key string
	// Router serves every call. Required.
	Router Router
	// Tools returns the tools that the voice model gets in the calls of a grant, beside the client's own, and the guide
	// to them. Nil: none.
	Tools func(handoff.Grant) ([]handoff.Tool, handoff.Guide)
	// Effort is the model's reasoning effort, such as "low", if a client does not set it; "" leaves it to the model.
	Effort string
	// Backchannel reports whether words only show that somebody listens. Nil: no words do.
	Backchannel func(words string) bool
	// Echo reports whether words repeat a part of what the voice said. Nil: no words do.
	Echo func(words, said string) bool
	// Dial connects to the model's server. Nil: over the network.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Ticks receives the tick log of a call that has ended (package ticks). Nil: calls keep none.
	Ticks func(call string, log []byte)
	// Media says where WebRTC clients are served.
	Media rtc.Config
	// Direct lets clients that ask for it, and need no masking, exchange their sound with the model's server directly,
	// if that server has WebRTC calls as OpenAI's has.
	Direct bool
	// Spending stores how long each caller was in calls and what these cost, if there are limits of that. Nil: there
	// are none.
	Spending Spending
	// OpenCalls counts the calls of keys over all instances. Nil: there is one instance.
	OpenCalls OpenCalls
	// Tariff is what the models at ModelURL cost.
	Tariff models.Tariff
	// Billed stores the bill of a call that has ended, if its responses used tokens. It may wait. Nil: bills are
	// dropped.
	Billed func(context.Context, Bill) error
	// Partings returns the sentences said before a call ends, in a language as the grant names it. Nil: the model finds
	// its own words.
	Partings func(language string) Partings
	// Hold is how long a call waits for a vanished client, if the client said that it would come back. Zero: not at
	// all.
	Hold time.Duration
	// Broken remembers calls that ended against their caller's will. Nil: the next call knows nothing of them.
	Broken Broken
	// Carried stores which calls the model's server carries for us. Nil: calls that a killed process leaves there are
	// not hung up.
	Carried Carried
	// Attached stores which instance is in which call of the model's server. Nil: there is one instance.
	Attached Attached
	// Again returns the present grant of this caller for the key or login named by, which began a call that another
	// instance was in. Its errors are those of the HTTP edge. Required with Attached.
	Again func(ctx context.Context, by string, c handoff.Caller) (handoff.Grant, error)
	// Instance is the id of this instance if there are several. It is a part of the ids of its calls, so that requests
	// about a call reach its instance, also those of a caller without a name. "": there is one instance.
	Instance string
	// Log may be nil.
	Log *zap.Logger
}

// A Front carries calls between clients and the voice model. It is safe for concurrent use. Calls run while Run runs.
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
	patient  time.Duration              // Set once: bounds one write to a client; tests lower it
	asks     time.Duration              // Set once: the step of guard; tests lower it

	buffers sync.Pool // spares a write buffer for each socket: sockets make their frames themselves
}

// NewFront checks the configuration and binds the UDP port, which Run and Close release.
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
		patient: writeLimit, asks: guardStep, live: newRegistry(),
	}
	f.provider = newProvider(c, u, f.counts, &f.buffers)
	f.carried = newCarried(c, f.provider)
	return f, nil
}

// Close releases the port of a front that never ran. Run has done it otherwise, and Close does nothing then.
func (f *Front) Close() { f.media.Close() }

// Run runs the calls. When ctx ends, they end with [handoff.CodeShutdown], and Run returns after the last one. It must
// be called once.
func (f *Front) Run(ctx context.Context) error {
	defer f.media.Close()
	if err := f.media.Start(); err != nil {
		close(f.stopped)
		return err
	}
	keeping, kept := context.WithCancel(context.WithoutCancel(ctx))
	var keepers sync.WaitGroup
	defer f.carried.hangups.Wait()
	defer keepers.Wait()
	defer kept() // the calls have ended
	if f.config.Carried != nil {
		keepers.Go(func() { f.carried.keep(keeping) })
	}
	if f.config.OpenCalls != nil {
		keepers.Go(func() { f.quota.publish(keeping) })
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

// A callHandler answers a request for a call and then calls answered: w and r must not be used after that. It may carry
// the call itself, and return when that has ended. An error that it returns before it has called answered is the
// answer.
type callHandler func(ctx context.Context, w http.ResponseWriter, r *http.Request, answered func()) *handoff.Error

// launch runs a handler in a goroutine of Run, with Run's context, and returns when the request was answered. It waits
// for Run to be running, while the request lasts.
func (f *Front) launch(w http.ResponseWriter, r *http.Request, through callHandler) {
	var fault *handoff.Error // what the handler returned; set before done is closed, or never read
	done := make(chan struct{})
	answered := sync.OnceFunc(func() { close(done) })
	start := func(ctx context.Context) {
		defer answered()
		if e := through(ctx, w, r, answered); e != nil {
			fault = e // the goroutine of the request replies
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

// admit makes a call between a client's leg and a leg of the model. prepare is called before the call can be found, and
// so hung up or joined. serve must be called next. hold is how long the call waits for a client that vanished.
func (f *Front) admit(
	grant handoff.Grant, id string, hold time.Duration, client, model leg, prepare func(*Call),
) *Call {
	c := newCall(grant, f.config.Tools, id, client, model, f.log)
	c.legs.model.host, c.legs.hold = f.provider.address.Host, hold
	c.hearing.backchannel, c.hearing.echo = f.config.Backchannel, f.config.Echo
	c.model = f.config.Model
	c.filter.SetEffort(f.config.Effort)
	prepare(c)
	if f.config.Ticks != nil {
		c.keepTicks()
	}
	f.live.add(c)
	return c
}

// serve carries a call until a leg, Hangup or ctx ends it. It runs both legs, closes them, and returns after the router
// has left the call. The error is nil when somebody hung up.
func (f *Front) serve(ctx context.Context, c *Call, client, model connection, p *admission) error {
	var running sync.WaitGroup
	defer running.Wait()
	c.pass = p
	defer guard(f.asks, c.grant.Revoked, c.halt)()
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
	if c.tickLog != nil {
		defer func() { f.config.Ticks(c.id, c.tickLog.log.Text()) }()
	}
	return c.run(ctx, f.config.Router)
}

// ServeBooth carries a call of a client in this process, until a leg or ctx ends it. lowers: the client lowers the
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
		c.renewal.enable(f.provider.sessionOpener("", nil))
		c.hearing.yielding.lowers = lowers
	})
	return f.serve(ctx, call, client, model, pass)
}

// Hangup ends a call of this caller. If there is no such call, or it is somebody else's, the error has code
// [handoff.CodeNotFound].
func (f *Front) Hangup(grant handoff.Grant, id string) error {
	if !f.live.hangUp(grant, id) {
		return handoff.Fault(handoff.CodeNotFound, "such call", "")
	}
	return nil
}

// Leave ends, with [handoff.CodeShutdown], the calls of a caller whom another instance has taken over: their clients
// call again, and reach that instance. Calls that the model's server carries go on, and that instance joins them.
func (f *Front) Leave(c handoff.Caller) { f.live.leave(c) }

// Busy reports whether taking a caller over to another instance now would end a call of theirs, or lose a cost that is
// not written yet.
func (f *Front) Busy(c handoff.Caller) bool {
	costs := f.quota.inCall(c)
	ends, goesOn := f.live.ifLeft(c)
	return ends || costs && !goesOn
}

// Calls lists the open calls of this caller, oldest first. A caller without a name gets an empty list, because another
// caller without a name may be somebody else.
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

// logUnreachable logs why the model's server could not be reached for a new call.
func (f *Front) logUnreachable(fault *handoff.Error) {
	f.log.Warn("voice model unreachable", zap.String("code", string(fault.Code)),
		zap.String("detail", fault.Detail))
}

// callPath is the address of a call, without its id.
const callPath = "/v1/realtime/calls/"

// newCallID returns an id in the form of OpenAI's, with the id of the instance in it, if there is one.
func newCallID(instance string) string {
	var b [12]byte
	_, _ = rand.Read(b[:]) // it never fails
	if instance != "" {
		instance += "_"
	}
	return "rtc_" + instance + hex.EncodeToString(b[:])
}
