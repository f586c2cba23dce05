package realtime

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/tidwall/gjson"

	"switchboard/handoff"
	"switchboard/realtime/rtc/rtctest"
)

// answered reads the error that a request to the front gets.
func answered(t *testing.T, response *http.Response, err error) (int, handoff.Problem) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	var e struct{ Error handoff.Problem }
	if err != nil || json.Unmarshal(body, &e) != nil || strings.Contains(string(body), "sk-") {
		t.Fatalf("%d %s, %v", response.StatusCode, body, err)
	}
	return response.StatusCode, e.Error
}

// upgrade asks for a WebSocket without becoming one.
func upgrade(t *testing.T, url string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	for name, value := range map[string]string{"Connection": "Upgrade", "Upgrade": "websocket",
		"Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="} {
		r.Header.Set(name, value)
	}
	return http.DefaultClient.Do(r)
}

// Refusals of the model's server keep their meaning, for both kinds of clients: a wrong key, an unknown model, when to
// try again.
func TestModelRefuses(t *testing.T) {
	h := newHouse(t)
	calls := h.desk()
	for _, row := range []struct {
		refuse     int
		after      string // Retry-After
		status     int
		code       handoff.Code
		kind       string
		param      string
		retry      string
		words      string
		authHeader string
	}{
		{refuse: 401, status: 401, code: handoff.CodeVoiceKey, kind: "invalid_request_error", words: "Switchboard's own key"},
		{refuse: 403, status: 401, code: handoff.CodeVoiceKey, kind: "invalid_request_error", words: "Switchboard's own key"},
		{refuse: 404, status: 404, code: handoff.CodeVoiceModel, kind: "invalid_request_error", param: "model",
			words: "gpt-9 at 127.0.0.1"},
		{refuse: 429, status: 429, code: handoff.CodeVoiceLimit, kind: "rate_limit_error", after: "17", retry: "17"},
		{refuse: 429, status: 429, code: handoff.CodeVoiceLimit, kind: "rate_limit_error"},
		{refuse: 500, status: 502, code: handoff.CodeVoiceUnreachable, kind: "server_error"},
		{refuse: 400, status: 502, code: handoff.CodeVoiceUnreachable, kind: "server_error"},
	} {
		h.model.refuse, h.model.after = row.refuse, row.after
		for door, ask := range map[string]func() (*http.Response, error){
			"socket": func() (*http.Response, error) { return upgrade(t, h.edge.URL+"/v1/realtime?model=gpt-9") },
			"calls": func() (*http.Response, error) {
				return http.Post(calls+"?model=gpt-9", "application/sdp", strings.NewReader(rtctest.New(t, rtctest.Label).Offer()))
			},
		} {
			response, err := ask()
			status, p := answered(t, response, err)
			param := ""
			if p.Param != nil {
				param = *p.Param
			}
			if status != row.status || p.Code != row.code || p.Type != row.kind || param != row.param ||
				!strings.Contains(p.Message, row.words) {
				t.Errorf("%s, %d: %d %+v", door, row.refuse, status, p)
			}
			if got := response.Header.Get("Retry-After"); got != row.retry {
				t.Errorf("%s, %d: Retry-After %q for %q", door, row.refuse, got, row.after)
			}
			if got := response.Header.Get("WWW-Authenticate"); got != "" {
				t.Errorf("%s, %d: the client is asked for %q", door, row.refuse, got)
			}
		}
	}
}

// Some servers refuse on the socket, after the upgrade. This keeps its meaning, too: it is the answer to an offer,
// rather than a silent call, and the server's message, which may repeat a part of the key, is shown to nobody.
func TestModelRefusesOnTheSocket(t *testing.T) {
	h := newHouse(t)
	calls := h.desk()
	for _, row := range []struct {
		fault  string
		status int
		code   handoff.Code
		param  string
	}{
		{`"code":"model_not_found"`, 404, handoff.CodeVoiceModel, "model"},
		{`"code":"invalid_api_key"`, 401, handoff.CodeVoiceKey, ""},
		{`"code":"insufficient_quota"`, 429, handoff.CodeVoiceLimit, ""},
		{`"code":"rate_limit_exceeded"`, 429, handoff.CodeVoiceLimit, ""},
		{`"code":null`, 502, handoff.CodeVoiceGone, ""},
	} {
		h.model.deny = `{"type":"error","error":{"type":"invalid_request_error","message":"your key sk-secret",` + row.fault +
			`}}`
		response, err := http.Post(calls+"?model=gpt-9", "application/sdp",
			strings.NewReader(rtctest.New(t, rtctest.Label).Offer()))
		status, p := answered(t, response, err)
		if status != row.status || p.Code != row.code || (p.Param != nil) != (row.param != "") || p.Param != nil &&
			*p.Param != row.param {
			t.Errorf("%s: %d %+v", row.fault, status, p)
		}
		client := connects(t, h.edge.URL+"/v1/realtime")
		event := expect(t, client, "error")
		if gjson.Get(event, "error.code").String() != string(row.code) || strings.Contains(event, "sk-") {
			t.Errorf("%s: the socket says %s", row.fault, event)
		}
		_ = client.Close()
	}
}

// A session that only transcribes does not become a conversation with our tools.
func TestTranscriptionIsRefused(t *testing.T) {
	h := newHouse(t)
	response, err := upgrade(t, h.edge.URL+"/v1/realtime?intent=transcription")
	status, p := answered(t, response, err)
	if status != 400 || p.Code != handoff.CodeMalformed || p.Type != "invalid_request_error" || p.Param == nil ||
		*p.Param != "intent" {
		t.Errorf("%d %+v", status, p)
	}
	h.call("?intent=quicksilver") // what codex asks for is a conversation
}

// A client that asks for the beta of the protocol is told that it has ended, in a way that it can read, and no model is
// dialled.
func TestBetaIsRefused(t *testing.T) {
	h := newHouse(t)
	for _, ask := range []struct {
		protocols []string
		header    http.Header
	}{
		{protocols: []string{"realtime", "openai-insecure-api-key.k", "openai-beta.realtime-v1"}},
		{protocols: []string{"realtime"}, header: http.Header{"OpenAI-Beta": {"realtime=v1"}}},
	} {
		client, _, err := (&websocket.Dialer{Subprotocols: ask.protocols}).Dial("ws"+strings.TrimPrefix(h.edge.URL,
			"http")+"/v1/realtime", ask.header)
		if err != nil {
			t.Fatal(err)
		}
		send(t, client, `{"type":"session.update","session":{"modalities":["audio"]}}`)
		got := expect(t, client, "error")
		if gjson.Get(got, "error.code").String() != codeBeta || gjson.Get(got, "error.message").String() != betaHint {
			t.Errorf("refused with %s", got)
		}
		expectClose(t, client, 4400)
		_ = client.Close()
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, h.desk(),
		strings.NewReader(rtctest.New(t, rtctest.Label).Offer()))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = http.Header{"OpenAI-Beta": {"assistants=v2, realtime=v1"}, "Content-Type": {"application/sdp"}}
	response, err := http.DefaultClient.Do(r)
	if status, p := answered(t, response, err); status != 400 || p.Param == nil || *p.Param != "OpenAI-Beta" ||
		!strings.Contains(p.Message, betaHint[:20]) {
		t.Errorf("%d %+v", status, p)
	}
	if len(h.model.conns) > 0 {
		t.Error("a model was asked")
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Duration{
		"": 0, "0": 0, "1": time.Second, "-1": 0, "1.5": 0, "90000": maxRetry, "18446744073709551615": 0,
		"999999999999999999":            maxRetry,
		"Sun, 22 Nov 2026 12:00:30 GMT": 30 * time.Second, "Sun, 22 Nov 2026 11:00:30 GMT": 0,
		"Sun, 22 Nov 2099 11:00:30 GMT": maxRetry,
	} {
		if got := retryAfter(text, now); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}
