package realtime

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/gorilla/websocket"
	"github.com/tidwall/gjson"

	"switchboard/handoff"
	"switchboard/realtime/rtc"
	"switchboard/realtime/rtc/rtctest"
	"switchboard/realtime/simulator"
)

// A carrier is the simulator as a provider that carries calls of browsers itself, with a front that joins them.
type carrier struct {
	t     *testing.T
	front *Front
	desk  string // where browsers post their offers
	model string // where the provider's calls are
}

// carry begins both.
func carry(t *testing.T, voice simulator.Config, router *listener) *carrier {
	rtctest.NoLeaks(t)
	media, err := rtc.Listen(rtc.Config{}, nopLog())
	if err == nil {
		err = media.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(media.Close)
	voice.Hurry = 20
	voice.Answer = func(ctx context.Context, offer string) (string, simulator.Browser, *handoff.Error) {
		answer, peer, fault := media.NewPeer(ctx, offer)
		return answer, peer, fault
	}
	host := simulates(t, voice)
	front := runs(t, Config{ModelURL: "ws://" + host + "/v1/realtime", Model: "simulator", Router: router, Tools: ours,
		Direct: true, Broken: &notebook{}})
	return &carrier{t: t, model: "http://" + host + callPath, front: front,
		desk: serves(t, front.ServeCalls) + "/v1/realtime/calls"}
}

// call begins a call whose sound goes straight to the provider, and waits until its browser is connected and the front
// has joined.
func (p *carrier) call(b *rtctest.Browser) (id string) { return p.callBy(b, "rejoin=1") }

func (p *carrier) callBy(b *rtctest.Browser, query string) (id string) {
	p.t.Helper()
	response, answer := post(p.t, p.desk+"?media=direct&"+query, "application/sdp", b.Offer())
	if response.StatusCode != http.StatusCreated || response.Header.Get(MediaHeader) != mediaDirect {
		p.t.Fatalf("%d %v %s", response.StatusCode, response.Header, answer)
	}
	id = strings.TrimPrefix(response.Header.Get("Location"), callPath)
	if all := p.front.Calls(someone); len(all) != 1 || all[0].ID != id {
		p.t.Errorf("calls %+v", all)
	}
	b.Accept(answer)
	created := rtctest.Event(p.t, b.Messages, "session.created")
	if names := toolNames(created.Raw, "session.tools"); !strings.Contains(names, `"codex"`) ||
		created.Get("session.instructions").
			String() !=
			guide || !created.Get("session.audio.input.transcription").IsObject() {
		p.t.Errorf("the session begins with %s", created)
	}
	return id
}

// said reads the browser's events up to the end of a response with this text.
func (p *carrier) said(b *rtctest.Browser, text string) {
	p.t.Helper()
	for {
		if e := rtctest.Event(p.t, b.Messages, "response.done"); strings.Contains(e.Get("response.output").Raw, text) {
			return
		}
	}
}

// TestDirect: the browser talks with the provider itself, and the work is ours as in any call.
func TestDirect(t *testing.T) {
	router := &listener{on: works}
	p := carry(t, testsRun(), router)
	b := rtctest.NewWide(t, rtctest.Label)
	id := p.callBy(b, "rejoin=1&language=de")
	router.speaks(t, "de")
	for range 2 { // a page whose answer was lost says it again
		if err := p.front.Say(t.Context(), someone, id, "item_1", "run the tests on bigpc"); err != nil {
			t.Fatal(err)
		}
	}
	rtctest.Event(t, b.Messages, "output_audio_buffer.started")
	rtctest.Take(t, b.Packets, "the voice")
	p.said(b, "They pass.")
	var words []handoff.Heard
	var requests []string
	rtctest.Eventually(t, "what was heard and asked", func() bool {
		told := false
		for _, e := range router.heard() {
			switch e := e.(type) {
			case handoff.Heard:
				words = append(words, e)
			case handoff.FunctionCall:
				requests = append(requests, e.Tool)
			case handoff.Said:
				told = told || strings.HasPrefix(e.ID, "late-")
			}
		}
		return told
	})
	if len(words) != 1 || words[0].Text != "run the tests on bigpc" || !words[0].Typed || words[0].Loose {
		t.Errorf("heard %+v", words)
	}
	if !slices.Equal(requests, []string{"codex"}) {
		t.Errorf("asked for %q", requests)
	}
	// What comes on the data channel may be of any program.
	b.Send(
		`{"type":"conversation.item.create","item":{"type":"message","role":"user","content":[{"type":"input_text","text":"yes"}]}}`,
	)
	rtctest.Eventually(t, "what was written", func() bool {
		return slices.ContainsFunc(
			router.heard(),
			func(e handoff.VoiceEvent) bool { w, ok := e.(handoff.Heard); return ok && w.Text == "yes" && w.Loose },
		)
	})
	// The end of the call here is its end there.
	if err := p.front.Hangup(someone, id); err != nil {
		t.Fatal(err)
	}
	<-b.Over
	rtctest.Eventually(t, "the end", func() bool { return len(p.front.Calls(someone)) == 0 })
	rtctest.Eventually(t, "its end at the provider", func() bool {
		response, _ := post(t, p.model+id+"/hangup", "application/json", "{}")
		return response.StatusCode == http.StatusNotFound
	})
}

// TestDirectBrowserGoes: a browser that hangs up ends the call at the provider, and here with it.
func TestDirectBrowserGoes(t *testing.T) {
	p := carry(t, testsRun(), &listener{})
	b := rtctest.NewWide(t, rtctest.Label)
	id := p.call(b)
	rtctest.Eventually(t, "the call to be joined", func() bool {
		p.front.live.mu.Lock()
		defer p.front.live.mu.Unlock()
		return p.front.live.calls[id] != nil
	})
	b.CloseChannel()
	rtctest.Eventually(t, "the end", func() bool { return len(p.front.Calls(someone)) == 0 })
}

// TestDirectEndsThere: a call that ended here is hung up at the provider, however its socket ended, since it may go on
// there and cost; if the provider does not take that at once, it is tried again.
func TestDirectEndsThere(t *testing.T) {
	t.Parallel()
	hungUp := make(chan string, 10)
	callDirect(t, answersOffers(t, "rtc_1", func(conn *websocket.Conn) {
		_ = conn.WriteMessage(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseServiceRestart, ""))
	}, func(w http.ResponseWriter, r *http.Request) {
		hungUp <- r.PathValue("id")
		if len(hungUp) == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	rtctest.Eventually(t, "the second try to hang up", func() bool { return len(hungUp) == 2 })
}

// answersOffers is a provider that takes every offer as that of one call. Each socket that joins it is told of its
// session.
func answersOffers(t *testing.T, id string, joined func(*websocket.Conn), hungUp http.HandlerFunc) (url string) {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/realtime/calls", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", callPath+id)
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write([]byte("v=0\r\n"))
	})
	mux.HandleFunc("POST /v1/realtime/calls/{id}/hangup", hungUp)
	mux.HandleFunc("GET /v1/realtime", func(w http.ResponseWriter, r *http.Request) {
		conn, err := new(websocket.Upgrader).Upgrade(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_ = conn.WriteMessage(websocket.TextMessage,
			[]byte(`{"type":"session.created","event_id":"e1","session":{"type":"realtime"}}`))
		joined(conn)
	})
	provider := httptest.NewServer(mux)
	t.Cleanup(provider.Close)
	return provider.URL
}

// callDirect begins a call at a provider, and returns the front beside that.
func callDirect(t *testing.T, provider string) *Front {
	front := runs(t, Config{ModelURL: "ws" + strings.TrimPrefix(provider, "http") + "/v1/realtime", Model: "m",
		Router: &listener{}, Tools: ours, Direct: true, Broken: &notebook{}})
	response, answer := post(t, serves(t, front.ServeCalls)+"?media=direct", "application/sdp", rtctest.NewWide(t, rtctest.Label).Offer())
	if response.StatusCode != http.StatusCreated {
		t.Fatalf("%d %s", response.StatusCode, answer)
	}
	return front
}

// TestTypedAsTheSocketIsLost: words that the provider has not confirmed when its socket is lost count as not said. A
// client that sends them again over the next socket has said them once.
func TestTypedAsTheSocketIsLost(t *testing.T) {
	t.Parallel()
	given := make(chan string, 10)
	front := callDirect(t, answersOffers(t, "rtc_1", func(conn *websocket.Conn) {
		for {
			_, event, err := conn.ReadMessage()
			if err != nil {
				return
			}
			item := gjson.GetBytes(event, "item")
			if item.Get("role").String() != "user" {
				continue
			}
			if given <- item.Get("content.0.text").String(); len(given) == 1 {
				return
			}
			_ = conn.WriteMessage(websocket.TextMessage, []byte(`{"type":"conversation.item.added","item":`+item.Raw+`}`))
		}
	}, func(http.ResponseWriter, *http.Request) {}))
	says := func() error { return front.Say(t.Context(), someone, "rtc_1", "item_1", "fix it") }
	if err := says(); handoff.CodeOf(err) != handoff.CodeNotFound {
		t.Fatalf("words that were lost: %v", err)
	}
	rtctest.Eventually(t, "the words to be taken", func() bool { return says() == nil })
	if err := says(); err != nil {
		t.Errorf("once more: %v", err)
	}
	if len(given) != 2 {
		t.Errorf("the provider got the words %d times", len(given))
	}
	if err := front.Hangup(someone, "rtc_1"); err != nil {
		t.Error(err)
	}
}

// TestDirectComesBack: a browser that lost its connection, and with it its call, gets another call, which knows what
// was said.
func TestDirectComesBack(t *testing.T) {
	p := carry(t, testsRun(), &listener{on: works})
	b := rtctest.NewWide(t, rtctest.Label)
	id := p.call(b)
	if err := p.front.Say(t.Context(), someone, id, "item_1", "run the tests on bigpc"); err != nil {
		t.Fatal(err)
	}
	p.said(b, "They pass.")
	rtctest.Eventually(t, "the words to be known here, too", func() bool {
		p.front.live.mu.Lock()
		c := p.front.live.calls[id]
		p.front.live.mu.Unlock()
		var lines []handoff.SaidLine
		c.do(func() { lines = c.lastLines() })
		return slices.ContainsFunc(lines, func(l handoff.SaidLine) bool { return strings.Contains(l.Text, "They pass.") })
	})
	response, _ := post(
		t,
		p.desk+"?media=direct&call_id=rtc_0",
		"application/sdp",
		rtctest.NewWide(t, rtctest.Label).Offer(),
	)
	if response.StatusCode != http.StatusNotFound {
		t.Errorf("a call that is not there: %d", response.StatusCode)
	}
	again := rtctest.NewWide(t, rtctest.Label)
	if now := p.callBy(again, "call_id="+id); now == id {
		t.Error("the provider has the same call twice")
	}
	<-b.Over
	for told := false; !told; {
		e := rtctest.Event(t, again.Messages, "conversation.item.added")
		text := e.Get("item.content.0.text").String()
		told = strings.Contains(text, "run the tests on bigpc") && strings.Contains(text, "They pass.")
	}
}

// TestDirectSpoken: the provider hears the caller, and says what was cut off as they spoke.
func TestDirectSpoken(t *testing.T) {
	words := make(chan string, 1)
	words <- "what is on bigpc?"
	p := carry(t, simulator.Config{Words: words, Script: func(h simulator.Heard) []simulator.Move {
		return []simulator.Move{simulator.Say{Text: strings.Join(h.Texts, "")}}
	}}, &listener{})
	b := rtctest.New(t, rtctest.Label)
	p.call(b)
	b.Say(
		append(bytes.Repeat([]byte{0x00, 0x80}, 4000), bytes.Repeat([]byte{0xff}, 8000)...),
	) // loud for a second, then quiet
	rtctest.Event(t, b.Messages, "input_audio_buffer.speech_started")
	p.said(b, "what is on bigpc?")
}

// TestSayIsForDirectCalls: [Front.Say] is only for calls whose sound does not come through here, and only for those who
// may join them.
func TestSayIsForDirectCalls(t *testing.T) {
	p := carry(t, testsRun(), &listener{})
	id := p.call(rtctest.NewWide(t, rtctest.Label))
	for what, try := range map[string]struct {
		grant          handoff.Grant
		id, item, text string
		want           handoff.Code
	}{
		"another caller":  {handoff.Grant{Caller: handoff.Caller{Principal: "another"}}, id, "item_1", "yes", handoff.CodeNotFound},
		"another key":     {handoff.Grant{Caller: someone.Caller, Key: "other"}, id, "item_1", "yes", handoff.CodeNotFound},
		"another call":    {someone, "rtc_0", "item_1", "yes", handoff.CodeNotFound},
		"no words":        {someone, id, "item_1", "", handoff.CodeMalformed},
		"a strange id":    {someone, id, "item 1", "yes", handoff.CodeMalformed},
		"an id too long":  {someone, id, strings.Repeat("i", 33), "yes", handoff.CodeMalformed},
		"who may, at all": {someone, id, "item_1", "hello", ""},
	} {
		code := handoff.CodeOf(p.front.Say(t.Context(), try.grant, try.id, try.item, try.text))
		if code != try.want {
			t.Errorf("%s: %q, want %q", what, code, try.want)
		}
	}
	h := newHouse(t)
	h.call("")
	err := h.front.Say(t.Context(), someone, h.front.Calls(someone)[0].ID, "item_1", "yes")
	if handoff.CodeOf(err) != handoff.CodeNotFound {
		t.Errorf("a call through here: %v", err)
	}
}

// TestDirectRefused: the provider's answers to an offer keep their meaning; if it has no calls, they go through here.
// It gets our key and the end user's name, and no redirect is followed.
func TestDirectRefused(t *testing.T) {
	for status, want := range map[int]string{
		http.StatusUnauthorized: string(handoff.CodeVoiceKey), http.StatusTooManyRequests: string(handoff.CodeVoiceLimit),
		http.StatusBadGateway: string(handoff.CodeVoiceUnreachable), http.StatusFound: string(handoff.CodeVoiceUnreachable),
		http.StatusCreated: string(handoff.CodeVoiceUnreachable), http.StatusNotFound: "dialled",
	} {
		asked := make(chan string, 2)
		far := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet {
				asked <- "dialled"
				w.WriteHeader(http.StatusBadGateway)
				return
			}
			session := ""
			if err := r.ParseMultipartForm(1 << 20); err == nil {
				session = r.FormValue("session")
			}
			asked <- strings.Join([]string{r.URL.String(), r.Header.Get("Authorization"), r.Header.Get(safetyHeader),
				gjson.Get(session, "model").String(), gjson.Get(session, "voice").String(), r.FormValue("sdp")[:3]}, " ")
			w.Header().Set("Location", "http://127.0.0.1:1/elsewhere")
			w.WriteHeader(status)
		}))
		front := runs(t, Config{ModelURL: "ws" + strings.TrimPrefix(far.URL, "http") + "/v1/realtime?api-version=1",
			Model: "m", Key: "sk", Router: &listener{}, Direct: true})
		r := httptest.NewRequest(http.MethodPost, callPath+"?media=direct", strings.NewReader(rtctest.GoodOffer))
		r.Header.Set(safetyHeader, "alice")
		w := httptest.NewRecorder()
		front.ServeCalls(w, r, someone)
		got := gjson.Get(w.Body.String(), "error.code").String()
		if first := <-asked; first != "/v1/realtime/calls?api-version=1 Bearer sk alice m  v=0" {
			t.Errorf("%d: asked %s", status, first)
		}
		if want == "dialled" {
			got = <-asked
		}
		if got != want {
			t.Errorf("%d: %q, want %q: %d %s", status, got, want, w.Code, w.Body)
		}
		far.Close()
	}
}

// TestThroughUnlessAsked: unless both the client and the configuration ask for it, the sound goes through here.
func TestThroughUnlessAsked(t *testing.T) {
	for _, direct := range []bool{true, false} {
		h := newHouseWith(t, func(c *Config) { c.Direct = direct })
		query := ""
		if !direct {
			query = "?media=direct"
		}
		b := rtctest.New(t, rtctest.Label)
		response, answer := post(t, h.desk()+query, "application/sdp", b.Offer())
		if response.StatusCode != http.StatusCreated || response.Header.Get(MediaHeader) != "" {
			t.Errorf("%d %v %s", response.StatusCode, response.Header, answer)
		}
		model := rtctest.Take(t, h.model.conns, "model")
		_ = model.Close()
	}
}
