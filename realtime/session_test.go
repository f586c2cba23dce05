package realtime

import (
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"
	"github.com/tidwall/gjson"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"switchboard/handoff"
	"switchboard/realtime/events"
	"switchboard/realtime/floor"
	"switchboard/realtime/rtc/rtctest"
)

const offered = `{"type":"` + events.TypeOpening +
	`","event_id":"sb_rtc_2","session":{"type":"realtime","instructions":"Be brief."}}`

// briefly is the model's answer to the update above.
const briefly = `{"type":"session.updated","event_id":"e1","session":{"type":"realtime","id":"sess_1",` +
	`"instructions":"Be brief.","tools":[]}}`

// playOpening runs a test on a stage whose client began with a session. The model has answered all updates but that.
func playOpening(t *testing.T, fn func(*stage)) {
	synctest.Test(t, func(t *testing.T) {
		client := newWire()
		s := newStageBy(t, someone, client, performing{client}, func(c *Call) { c.filter.AwaitOpening() })
		s.fromClient(formats)
		s.fromModel(freshSession)
		s.fromClient(offered, opened)
		s.wantSent(s.model, "session.update session.update session.update session.update")
		for range 3 { // formats, tools, transcription
			s.fromModel(updated)
		}
		s.wantSent(s.client, "switchboard.session.created switchboard.session.updated") // for its leg alone
		fn(s)
		s.close()
	})
}

// The session that a client began with is in force before the client sees session.created, which shows it. No answer to
// an update that the client never sent is seen.
func TestSessionBeginsAsOffered(t *testing.T) {
	playOpening(t, func(s *stage) {
		s.fromModel(briefly)
		got := s.wantSent(s.client, "switchboard.session.updated session.created")[1]
		if gjson.Get(got, "session.instructions").String() != "Be brief." || gjson.Get(got, "event_id").String() != "e0" {
			t.Errorf("it begins with %s", got)
		}
		s.say(handoff.Utterance{ID: "n", Text: "done", Floor: handoff.FloorAsk})
		s.wantSent(s.model, "") // it has its time to set more
		s.wait(floor.Delay[floor.TimerOpen])
		s.wantSent(s.model, "conversation.item.create:message response.create")
	})
}

// A model that does not answer keeps no client from its call; an answer that comes late is still not the client's.
func TestOpeningWithoutAnAnswer(t *testing.T) {
	playOpening(t, func(s *stage) {
		s.wait(openingLimit)
		got := s.wantSent(s.client, "session.created")[0]
		if gjson.Get(got, "session.instructions").String() != "be nice" {
			t.Errorf("it begins with %s", got)
		}
		s.fromModel(briefly)
		s.wantSent(s.client, "switchboard.session.updated")
	})
}

// If the model refuses it, the session begins without it, and the client then gets the error.
func TestOpeningThatIsRefused(t *testing.T) {
	playOpening(t, func(s *stage) {
		s.fromModel(`{"type":"error","error":{"type":"invalid_request_error","code":"invalid_value",` +
			`"param":"session.audio","message":"no","event_id":"sb_rtc_2"}}`)
		s.wantSent(s.client, "session.created error")
	})
}

// An error without an event id is about the oldest update: if that is ours, the client does not see it.
func TestRefusalWithoutAnEvent(t *testing.T) {
	const nameless = `{"type":"error","error":{"type":"invalid_request_error","code":"invalid_value",` +
		`"param":"session.audio.input.transcription","message":"no","event_id":null}}`
	play(t, func(s *stage) {
		s.fromClient(`{"type":"session.update","event_id":"mine","session":{"audio":{"input":{"turn_detection":null}}}}`)
		s.fromModel(nameless)
		s.wantSent(s.client, "error")
		if !s.call.filter.Confirmed() {
			t.Error("the update still waits")
		}
	})
	playFresh(t, func(s *stage) {
		s.fromModel(freshSession)
		s.wantSent(s.model, "session.update session.update")
		s.fromModel(updated, nameless)
		s.wantSent(s.client, "session.created")
		if !s.call.filter.Confirmed() {
			t.Error("the update still waits")
		}
	})
}

// A socket by a client secret sees the session that the secret is bound to from the first event on.
func TestSocketBeginsAsBound(t *testing.T) {
	h := newHouse(t)
	h.grant.Session = []byte(`{"type":"realtime","instructions":"Be brief."}`)
	client := connects(t, h.edge.URL)
	model := h.takeModel()
	expect(t, model, events.TypeSessionUpdate)
	send(t, model, briefly)
	if e := expect(t, client, events.TypeSessionCreated); gjson.Get(e, "session.instructions").String() != "Be brief." {
		t.Errorf("it begins with %s", e)
	}
	send(t, model, `{"type":"the.end"}`)
	expect(t, client, "the.end")
}

// If the model refuses a form's session, that is the answer to the offer: there is no call.
func TestFormThatTheModelRefuses(t *testing.T) {
	h := newHouse(t)
	refuse := make(chan struct{})
	go func() {
		defer close(refuse)
		model := h.takeModel()
		for {
			_, e, err := model.ReadMessage()
			if err != nil {
				return
			}
			answer := updated
			if gjson.GetBytes(e, "session.audio.output.voice").Exists() {
				answer = `{"type":"error","error":{"type":"invalid_request_error","code":"invalid_value",` +
					`"param":"session.audio.output.voice","message":"There is no voice nobody.","event_id":` +
					gjson.GetBytes(e, "event_id").Raw + `}}`
			}
			if model.WriteMessage(websocket.TextMessage, []byte(answer)) != nil {
				return
			}
		}
	}()
	kind, body := form(t, "session", `{"audio":{"output":{"voice":"nobody"}}}`, "sdp",
		rtctest.New(t, rtctest.Label).Offer())
	response, answer := post(t, h.desk(), kind, body)
	if e := gjson.Get(answer, "error"); response.StatusCode != 400 ||
		e.Get("param").String() != "session.audio.output.voice" ||
		!strings.Contains(e.Get("message").String(), "no voice nobody") {
		t.Errorf("%d %s", response.StatusCode, answer)
	}
	rtctest.Gone(t, refuse, "the model's call")
}

// sudden is a leg whose far end has sent something before the leg runs.
type sudden struct {
	*wire
	event string
	taken chan struct{} // closed when that was taken
}

func (h sudden) Run(take func([]byte)) {
	defer close(h.taken)
	if h.event != "" {
		take([]byte(h.event))
	}
}

func (h sudden) Abandon() {}

// The session of a client secret goes to the model before the client's first update, which overrides it.
func TestOpeningComesFirst(t *testing.T) {
	client := sudden{newWire(), `{"type":"session.update","session":{"type":"realtime","instructions":"mine"}}`,
		make(chan struct{})}
	model := sudden{newWire(), "", make(chan struct{})}
	log := zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()), zapcore.AddSync(io.Discard),
		zap.DebugLevel),
		zap.Hooks(func(e zapcore.Entry) error {
			if e.Message == "call began" {
				<-client.taken // the slowest of loops
			}
			return nil
		}))
	f := &Front{config: Config{Router: &listener{}}, counts: newFrontCounts(), live: newRegistry(),
		quota: newQuota(Config{Log: log})}
	pass, fault := f.quota.enter(t.Context(), someone)
	if fault != nil {
		t.Fatal(fault)
	}
	c := newCall(someone, ours, "rtc_test", client, model, log)
	c.session.opening = []byte(`{"type":"session.update","session":{"type":"realtime","instructions":"the secret's"}}`)
	c.filter.AwaitOpening()
	ended := make(chan error, 1)
	go func() { ended <- f.serve(t.Context(), c, client, model, pass) }()
	<-client.taken
	c.hangUp()
	_ = take(t, ended, "end")
	var got []string
	for _, e := range model.sent() {
		got = append(got, gjson.Get(e, "session.instructions").String())
	}
	if len(got) < 2 || got[0] != "the secret's" || got[1] != "mine" {
		t.Errorf("the model was sent %q", got)
	}
}

const (
	formats = `{"type":"` + events.TypeFormats +
		`","event_id":"sb_rtc_1","session":{"type":"realtime","audio":{"input":{"format":{"type":"audio/pcmu"}},` +
		`"output":{"format":{"type":"audio/pcmu"}}}}}`
	opened  = `{"type":"` + events.TypeOpened + `"}`
	updated = `{"type":"session.updated","session":{"type":"realtime"}}`
)

// Nothing is said to a browser before its data channel is open and it had time to set up its session: a voice that was
// heard cannot be changed. The leg's own update does not count as the client's.
func TestBrowserIsReadyWhenItsChannelIsOpen(t *testing.T) {
	begin := func(t *testing.T) *stage {
		client := newWire()
		s := newStageFor(t, client, performing{client})
		s.fromClient(formats)
		s.fromModel(freshSession)
		for _, e := range s.wantSent(s.model, "session.update session.update session.update") {
			_ = e
			s.fromModel(updated)
		}
		// of them the client sees one
		s.wantSent(s.client, "switchboard.session.created session.created switchboard.session.updated")
		s.say(handoff.Utterance{ID: "n", Text: "done", Floor: handoff.FloorAsk})
		s.wait(time.Minute)
		s.wantSent(s.model, "")
		return s
	}
	t.Run("it sets its session up", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := begin(t)
			s.fromClient(opened)
			s.wait(floor.Delay[floor.TimerOpen] / 2)
			s.fromClient(`{"type":"session.update","event_id":"mine","session":{"type":"realtime","instructions":"mine"}}`)
			s.wantSent(s.model, "session.update")
			s.fromModel(updated)
			s.wantSent(s.client, "switchboard.session.updated session.updated")
			s.wantSent(s.model, "conversation.item.create:message response.create")
			s.close()
		})
	})
	t.Run("it does not", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := begin(t)
			s.fromClient(opened)
			s.wantSent(s.model, "")
			s.wait(floor.Delay[floor.TimerOpen])
			s.wantSent(s.model, "conversation.item.create:message response.create")
			s.close()
		})
	})
}

// Before the channel is open the session of the offer is in force, but the browser is not ready.
func TestSessionOfTheOfferIsNotReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := newWire()
		s := newStageFor(t, client, performing{client})
		s.fromModel(freshSession)
		s.fromClient(offered)
		for range s.wantSent(s.model, "session.update session.update session.update") {
			s.fromModel(updated)
		}
		s.say(handoff.Utterance{ID: "n", Text: "done", Floor: handoff.FloorAsk})
		s.wait(time.Minute)
		s.wantSent(s.model, "")
		s.close()
	})
}

// TestGrantedTools: the voice model gets the tools that the grant has, and our instructions only where it
// says so.
func TestGrantedTools(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStageOf(t, handoff.Grant{Caller: someone.Caller, Tools: []string{"status", "codex"}})
		s.fromModel(freshSession)
		up := s.wantSent(s.model, "session.update session.update")
		if got := gjson.Get(up[0], "session.tools.#.name").String(); got != `["codex","status"]` {
			t.Errorf("tools %s", got)
		}
		if gjson.Get(up[0], "session.instructions").Exists() {
			t.Error("our instructions were given")
		}
		s.close()
	})
}
