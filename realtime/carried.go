package realtime

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tidwall/gjson"
	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/realtime/events"
	"switchboard/realtime/filter"
	"switchboard/realtime/rtc"
)

// Carried stores which calls the provider carries for us, so that the next process hangs up those that this one could
// not: a call costs until it is hung up there. Only [Front.Run] uses it.
type Carried interface {
	// Left returns the ids that were kept last, by this process or the one before.
	Left(ctx context.Context) (ids []string, err error)
	// Keep replaces these ids.
	Keep(ctx context.Context, ids []string) error
}

const (
	// carriedStoreLimit bounds one use of the store.
	carriedStoreLimit = 2 * time.Second
	// carriedAgain is the pause after a failed use of the store.
	carriedAgain = time.Second
	// hangupLimit bounds one try to hang up a call at the provider. Each pause after one that failed is twice as long
	// as the one before, from hangupAgain to hangupSeldom: the provider may refuse one for good.
	hangupLimit  = 2 * time.Second
	hangupAgain  = 250 * time.Millisecond
	hangupSeldom = 10 * time.Minute
)

// carried begins and hangs up the calls that the provider carries for us, and knows which these are. It is safe for
// concurrent use.
type carried struct {
	provider *provider                                           // Set once
	store    Carried                                             // Set once; nil: nothing is stored
	tools    func(handoff.Grant) ([]handoff.Tool, handoff.Guide) // Set once
	effort   string                                              // Set once
	log      *zap.Logger                                         // Set once
	changed  chan struct{}                                       // capacity 1; holds a token when ids have changed
	hangups  sync.WaitGroup                                      // the hang-ups that go on; waited for by Front.Run

	mu  sync.Mutex
	ids map[string]bool // Guarded by mu
}

func newCarried(c Config, p *provider) *carried {
	return &carried{
		provider: p, store: c.Carried, tools: c.Tools, effort: c.Effort, log: c.Log,
		changed: make(chan struct{}, 1), ids: map[string]bool{},
	}
}

// set notes that the provider carries a call (on), or does not any more.
func (c *carried) set(id string, on bool) {
	c.mu.Lock()
	if c.ids[id] = on; !on {
		delete(c.ids, id)
	}
	c.mu.Unlock()
	select {
	case c.changed <- struct{}{}:
	default: // a token is there
	}
}

func (c *carried) all() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Sorted(maps.Keys(c.ids))
}

// codeNoCalls is an internal code: the provider has no WebRTC calls, or none with this session.
const codeNoCalls handoff.Code = "no_calls"

// noCalls are the HTTP statuses that such a provider answers.
var noCalls = []int{
	http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusUnsupportedMediaType,
	http.StatusUnprocessableEntity, http.StatusNotImplemented,
}

// begin has the provider answer an offer. The session begins with our tools, so that the model has them before we have
// joined the call. A call that was begun has to be ended, also if ctx has ended meanwhile. Errors are those of
// [provider.dialModel], and codeNoCalls.
func (c *carried) begin(
	ctx context.Context, grant handoff.Grant, offer rtcOffer, header http.Header,
) (id, answer string, fault *handoff.Error) {
	tools, guide := c.tools(grant)
	model := c.provider.modelNamed(offer.model)
	session := filter.Begin([]byte(gjson.GetBytes(offer.Session, "session").Raw), tools, guide, c.effort)
	if model != "" {
		session = events.Set(session, "model", events.Quote(model))
	}
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	for _, part := range []struct{ name, kind, text string }{
		{"sdp", "application/sdp", offer.SDP}, {"session", "application/json", string(session)},
	} {
		to, err := form.CreatePart(textproto.MIMEHeader{
			"Content-Disposition": {`form-data; name="` + part.name + `"`}, "Content-Type": {part.kind},
		})
		if err == nil {
			_, err = io.WriteString(to, part.text)
		}
		if err != nil {
			return "", "", handoff.AsError(err) // cannot be: a buffer takes everything
		}
	}
	_ = form.Close() // likewise
	ctx, cancel := context.WithTimeout(ctx, c.provider.dialTimeout)
	defer cancel()
	response, err := c.provider.post(ctx, "", form.FormDataContentType(), &body, header)
	c.provider.counts.dialled(err == nil && response.StatusCode == http.StatusCreated)
	if err != nil {
		return "", "", handoff.Fault(handoff.CodeVoiceUnreachable, c.provider.address.Host, err.Error())
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode/100 != 2 {
		fault = c.provider.declined(response, model)
		if slices.Contains(noCalls, response.StatusCode) {
			fault.Code = codeNoCalls
		}
		return "", "", fault
	}
	id = path.Base(response.Header.Get("Location"))
	sdp, err := io.ReadAll(io.LimitReader(response.Body, rtc.MaxSDP))
	if err != nil || !callIDs.MatchString(id) || !bytes.HasPrefix(sdp, []byte("v=0")) {
		return "", "", handoff.Fault(handoff.CodeVoiceUnreachable, c.provider.address.Host,
			"its answer to the offer has no SDP, or no id of the call")
	}
	c.set(id, true)
	return id, string(sdp), nil
}

// release hangs a call up at the provider, also if it may be over there: a socket that ended does not tell. It tries
// again until ctx ends, since the call costs as long as it goes on. It returns at once.
func (c *carried) release(ctx context.Context, id string) {
	c.hangups.Go(func() {
		for pause := hangupAgain; ; pause = min(2*pause, hangupSeldom) {
			why := c.hangUp(id)
			if why == nil {
				c.set(id, false)
				return
			}
			c.log.Warn("call not hung up at the voice model's server", zap.String("call", id), zap.Error(why))
			select {
			case <-time.After(pause):
			case <-ctx.Done():
				return // the next process hangs it up
			}
		}
	})
}

// hangUp asks the provider once to end a call. A call that has ended already is no error.
func (c *carried) hangUp(id string) error {
	ctx, cancel := context.WithTimeout(context.Background(), hangupLimit)
	defer cancel()
	response, err := c.provider.post(ctx, "/"+id+"/hangup", "application/json", strings.NewReader("{}"), nil)
	if err != nil {
		return err
	}
	_ = response.Body.Close()
	over := response.StatusCode == http.StatusNotFound || response.StatusCode == http.StatusGone
	if response.StatusCode/100 != 2 && !over {
		return errors.New("it answered " + response.Status)
	}
	return nil
}

// end hangs up a call that we began, unless another instance takes it over.
func (c *carried) end(ctx context.Context, id string, l *claim) {
	if l.hasMoved() {
		c.set(id, false)
		return
	}
	c.release(ctx, id)
}

// keep hangs up the calls that the process before left at the provider, and stores those of this process, until ctx
// ends. It replaces what is stored only after it has read it. A client that is still in a call of the process before
// has to begin another.
func (c *carried) keep(ctx context.Context) {
	write := func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, carriedStoreLimit)
		defer cancel()
		return c.store.Keep(ctx, c.all())
	}
	for read := false; ; {
		var err error
		if !read {
			var left []string
			if left, err = c.readLeft(ctx); err == nil {
				read = true
			}
			for _, id := range left {
				c.set(id, true)
				c.release(ctx, id)
			}
		}
		if err == nil {
			err = write(ctx)
		}
		again := (<-chan time.Time)(nil)
		if err != nil && ctx.Err() == nil {
			c.log.Warn("not kept which calls the voice model's server carries", zap.Error(err))
			again = time.After(carriedAgain)
		}
		select {
		case <-c.changed:
		case <-again:
		case <-ctx.Done():
			c.hangups.Wait()
			if read {
				// If it fails, the next process hangs up calls that have ended, which does no harm.
				_ = write(context.WithoutCancel(ctx))
			}
			return
		}
	}
}

// readLeft returns the calls that the process before left at the provider.
func (c *carried) readLeft(ctx context.Context) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, carriedStoreLimit)
	defer cancel()
	return c.store.Left(ctx)
}
