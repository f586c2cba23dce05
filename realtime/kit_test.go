package realtime

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidwall/gjson"
	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/realtime/events"
	"switchboard/realtime/floor"
	"switchboard/realtime/rtc/rtctest"
)

var someone = handoff.Grant{Caller: handoff.Caller{Principal: "owner"}, Instructions: handoff.InstructAll}

// Our part of a session, as tests give it.
const guide = "You are the voice of a test."

var ourTools = []handoff.Tool{
	{Name: "codex", Description: "Works.", Parameters: json.RawMessage(`{"type":"object"}`), Early: true},
	{Name: "list_servers", ReadOnly: true, Parameters: json.RawMessage(`{"type":"object"}`)},
	{Name: "read_session", ReadOnly: true, Parameters: json.RawMessage(`{"type":"object"}`)},
	{Name: "status", ReadOnly: true, Parameters: json.RawMessage(`{"type":"object"}`)},
	{Name: "remain_silent", Parameters: json.RawMessage(`{"type":"object"}`), Silence: true,
		ReadOnly: true},
	{Name: "run_on_server", Parameters: json.RawMessage(`{"type":"object"}`), Early: true},
}

// allTools names our tools as a part of a JSON list. Set once.
var allTools = func() string {
	var names []string
	for _, tool := range ourTools {
		names = append(names, events.Quote(tool.Name))
	}
	return strings.Join(names, ",")
}()

func toolNames(event, path string) string { return gjson.Get(event, path+".#.name").String() }

func ours(g handoff.Grant) ([]handoff.Tool, handoff.Guide) {
	instructions := handoff.Guide{}
	if g.Instructions == handoff.InstructAll {
		instructions.Whole = guide
	}
	return slices.DeleteFunc(slices.Clone(ourTools), func(t handoff.Tool) bool { return !g.AllowsTool(t.Name) }),
		instructions
}

// wire is a leg without a socket: it keeps what it is sent for the test.
type wire struct {
	out  chan []byte
	gone chan struct{} // closed when its far end goes

	mu     sync.Mutex
	closed bool
	reason *handoff.Error // Guarded by mu
}

func newWire() *wire { return &wire{out: make(chan []byte, 4096), gone: make(chan struct{})} }

func (w *wire) Ending() <-chan struct{} { return w.gone }

func (w *wire) Send(event []byte) bool {
	select {
	case w.out <- event:
		return true
	default:
		return false
	}
}

func (w *wire) Close(reason *handoff.Error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed, w.reason = true, reason
}

// sent returns and forgets what was sent so far.
func (w *wire) sent() []string {
	var all []string
	for {
		select {
		case e := <-w.out:
			all = append(all, string(e))
		default:
			return all
		}
	}
}

// listener is a router that keeps the events that it gets.
type listener struct {
	mu     sync.Mutex
	events []handoff.VoiceEvent                    // Guarded by mu
	voice  handoff.Voice                           // Guarded by mu
	grant  handoff.Grant                           // Guarded by mu
	on     func(handoff.Voice, handoff.VoiceEvent) // Guarded by mu once a call runs
}

func (l *listener) Serve(_ context.Context, g *handoff.Grant, v handoff.Voice) error {
	l.mu.Lock()
	l.voice, l.grant = v, *g
	l.mu.Unlock()
	for e := range v.Events() {
		l.mu.Lock()
		l.events = append(l.events, e)
		on := l.on
		l.mu.Unlock()
		if on != nil {
			on(v, e)
		}
	}
	return nil
}

// speaks waits until the router has a call whose grant names a language.
func (l *listener) speaks(t *testing.T, language string) {
	t.Helper()
	rtctest.Eventually(t, "the language "+language, func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.grant.Language == language
	})
}

func (l *listener) heard() []handoff.VoiceEvent {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.events
	l.events = nil
	return all
}

// stage is a call between two wires in a bubble of fake time.
type stage struct {
	t         *testing.T
	client    *wire
	on        leg // what the client is on
	model     *wire
	successor leg // that the model is on in place of its first leg; nil: on that
	router    *listener
	call      *Call
	ended     chan error
	began     time.Time // when it was open
}

const freshSession = `{"type":"session.created","event_id":"e0","session":{"type":"realtime","id":"sess_1",` +
	`"instructions":"be nice","tools":[],"tool_choice":"auto",` +
	`"audio":{"input":{"transcription":null,"turn_detection":{"type":"server_vad","create_response":true}},` +
	`"output":{"format":{"type":"audio/pcm","rate":24000}}}}}`

// play runs a test on a fresh stage, past the session's beginning, and ends the call.
func play(t *testing.T, fn func(*stage)) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.open(freshSession)
		fn(s)
		s.close()
	})
}

// playFresh runs a test on a stage whose session has not begun, and ends the call.
func playFresh(t *testing.T, fn func(*stage)) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		fn(s)
		s.close()
	})
}

// playBrowser runs a test on a stage whose client plays the voice itself, past the session's beginning, and ends the
// call.
func playBrowser(t *testing.T, fn func(*stage)) {
	synctest.Test(t, func(t *testing.T) {
		client := newWire()
		s := newStageFor(t, client, performing{client})
		s.open(freshSession)
		fn(s)
		s.close()
	})
}

func newStage(t *testing.T) *stage {
	client := newWire()
	return newStageFor(t, client, client)
}

// newStageFor is a stage whose client is on a leg made of a wire.
func newStageFor(t *testing.T, client *wire, on leg) *stage {
	return newStageBy(t, someone, client, on)
}

// newStageOf returns a stage with a call of this grant.
func newStageOf(t *testing.T, grant handoff.Grant) *stage {
	client := newWire()
	return newStageBy(t, grant, client, client)
}

// newStageBy returns a stage with a call of this grant, whose client's leg is made of a wire, and which is prepared
// before it begins.
func newStageBy(t *testing.T, grant handoff.Grant, client *wire, on leg, prepare ...func(*Call)) *stage {
	s := &stage{t: t, client: client, on: on, model: newWire(), router: &listener{}, ended: make(chan error, 1)}
	s.call = newCall(grant, ours, "rtc_test", on, s.model, nopLog())
	for _, f := range prepare {
		f(s.call)
	}
	s.call.begin()
	go func() { s.ended <- s.call.run(t.Context(), s.router) }()
	return s
}

// open begins the session, acknowledges our updates and lets the client be ready.
func (s *stage) open(created string) {
	s.fromModel(created)
	if s.call.legs.performs {
		s.fromClient(opened)
	}
	for range s.model.sent() {
		s.fromModel(`{"type":"session.updated","session":{"type":"realtime"}}`)
	}
	time.Sleep(floor.Delay[floor.TimerOpen])
	synctest.Wait()
	s.client.sent()
	s.router.heard()
	s.began = time.Now()
}

// close hangs up unless the call has ended.
func (s *stage) close() {
	s.call.hangUp()
	<-s.ended
}

func (s *stage) fromModel(events ...string) {
	s.t.Helper()
	from := leg(s.model)
	if s.successor != nil {
		from = s.successor
	}
	s.feed(s.call.takeFrom(from), events)
}

func (s *stage) fromClient(events ...string) {
	s.t.Helper()
	s.feed(s.call.takeFrom(s.call.legs.client), events)
}

func (s *stage) feed(take func([]byte), events []string) {
	s.t.Helper()
	for _, e := range events {
		take([]byte(e))
		synctest.Wait()
	}
}

func (s *stage) say(u handoff.Utterance) {
	s.call.Say(u)
	synctest.Wait()
}

func (s *stage) wait(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// types names the types of events, for comparison at a glance.
func types(events []string) string {
	var all []string
	for _, e := range events {
		kind := gjson.Get(e, "type").String()
		if it := gjson.Get(e, "item.type").String(); it != "" {
			kind += ":" + it
		}
		all = append(all, kind)
	}
	return strings.Join(all, " ")
}

// wantSent checks the types of what a wire was sent since the last look, and returns it.
func (s *stage) wantSent(w *wire, want string) []string {
	s.t.Helper()
	got := w.sent()
	if types(got) != want {
		s.t.Fatalf("sent %q\nwant %q\n%s", types(got), want, strings.Join(got, "\n"))
	}
	return got
}

// wantHeard checks the events that the router got since the last check: requests, words and confirmations. Times are
// only compared if they are given.
func (s *stage) wantHeard(want ...handoff.VoiceEvent) {
	s.t.Helper()
	var got []handoff.VoiceEvent
	for _, e := range s.router.heard() {
		switch e.(type) {
		case handoff.Quiet, handoff.Spoke, handoff.Hint:
		default:
			got = append(got, e)
		}
	}
	for i := range min(len(got), len(want)) {
		got[i] = timeless(got[i], want[i])
	}
	if fmt.Sprintf("%#v", got) != fmt.Sprintf("%#v", want) && len(got)+len(want) > 0 {
		s.t.Fatalf("router heard %#v\nwant %#v", got, want)
	}
}

// timeless removes the time from an event if the wanted one has none.
func timeless(got, want handoff.VoiceEvent) handoff.VoiceEvent {
	switch w := want.(type) {
	case handoff.Said:
		if g, ok := got.(handoff.Said); ok && w.At.IsZero() {
			g.At = time.Time{}
			return g
		}
	case handoff.FunctionCall:
		if g, ok := got.(handoff.FunctionCall); ok && w.Asked.IsZero() {
			g.Asked = time.Time{}
			return g
		}
	case handoff.Heard:
		if g, ok := got.(handoff.Heard); ok && w.Began.IsZero() {
			g.Began = time.Time{}
			return g
		}
	}
	return got
}

// story returns the events that the router got since the last check in short form: quiet, invited and loud, spoke,
// heard, said and cut, hint, and requests, with the milliseconds since the stage was open.
func (s *stage) story() string {
	var all []string
	ms := func(at time.Time) string {
		if at.IsZero() {
			return "?"
		}
		return fmt.Sprint(at.Sub(s.began).Milliseconds())
	}
	for _, e := range s.router.heard() {
		switch e := e.(type) {
		case handoff.Quiet:
			all = append(all, map[handoff.Quiet]string{{On: true}: "quiet", {}: "loud", {On: true, Invited: true}: "invited"}[e])
		case handoff.Spoke:
			all = append(all, "spoke@"+ms(e.At))
		case handoff.Heard:
			all = append(all, "heard "+e.Text+"@"+ms(e.Began))
		case handoff.Said:
			how := map[bool]string{false: "said ", true: "cut "}[e.Cut]
			if e.Unsaid {
				how = "unsaid "
			}
			all = append(all, how+e.ID+"@"+ms(e.At))
		case handoff.Hint:
			all = append(all, "hint "+e.CallID+" "+e.Partial)
		case handoff.FunctionCall:
			all = append(all, "request "+e.CallID)
		}
	}
	return strings.Join(all, "; ")
}

func (s *stage) wantStory(want string) {
	s.t.Helper()
	if got := s.story(); got != want {
		s.t.Fatalf("router heard %s\nwant         %s", got, want)
	}
}

// take waits for something that must come.
func take[T any](t *testing.T, from <-chan T, what string) T {
	t.Helper()
	return rtctest.Take(t, from, what)
}

// Lines of the model.

func began(id, tag string) string {
	return fmt.Sprintf(`{"type":"response.created","response":{"id":%q,"status":"in_progress","output":[],"metadata":%s}}`,
		id, metadata(tag))
}

func done(id, tag, status string, items ...string) string {
	return fmt.Sprintf(`{"type":"response.done","response":{"id":%q,"status":%q,"output":[%s],"metadata":%s}}`, id, status,
		strings.Join(items, ","), metadata(tag))
}

func metadata(tag string) string {
	if tag == "" {
		return "null"
	}
	return fmt.Sprintf(`{"sb":%q}`, tag)
}

func callItem(id, call, name, status string) string {
	return fmt.Sprintf(`{"id":%q,"type":"function_call","call_id":%q,"name":%q,"status":%q,`+
		`"arguments":"{\"server\":\"bigpc\"}"}`, id, call, name, status)
}

func itemDone(response, item string) string {
	return fmt.Sprintf(`{"type":"response.output_item.done","response_id":%q,"output_index":0,"item":%s}`, response, item)
}

func itemAdded(item string) string {
	return fmt.Sprintf(`{"type":"conversation.item.added","previous_item_id":null,"item":%s}`, item)
}

func spoken(response string) string {
	return fmt.Sprintf(`{"type":"response.output_audio_transcript.delta","response_id":%q,"item_id":"i","delta":"hm"}`,
		response)
}

// audio is a delta of so much sound.
func audio(response string, d time.Duration) string {
	n := int(d.Milliseconds()) * pcmRate / 3 * 4
	return fmt.Sprintf(`{"type":"response.output_audio.delta","response_id":%q,"item_id":"i","delta":"%s"}`, response,
		strings.Repeat("A", n))
}

func tagIn(event string) string { return gjson.Get(event, "response.metadata.sb").String() }

// holds our request in a response and ends it.
func (s *stage) requests(response string, calls ...string) {
	s.t.Helper()
	s.fromModel(began(response, ""))
	var items []string
	for _, call := range calls {
		it := callItem("item_"+call, call, "codex", events.StatusCompleted)
		items = append(items, it)
		s.fromModel(itemDone(response, it))
	}
	s.fromModel(done(response, "", events.StatusCompleted, items...))
}

func nopLog() *zap.Logger { return zap.NewNop() }
