package realtime

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"switchboard/handoff"
	"switchboard/realtime/events"
	"switchboard/realtime/rtc/rtctest"
)

// numbers are what a front shows, by name and label.
func (h *house) numbers() map[string]float64 {
	all := map[string]float64{}
	for m := range h.front.Metrics() {
		var name strings.Builder
		name.WriteString(strings.TrimPrefix(m.Name, "switchboard_"))
		for _, l := range m.Labels {
			name.WriteString(" " + l.Value)
		}
		all[name.String()] = m.Value
	}
	return all
}

func (h *house) wantNumbers(t *testing.T, want map[string]float64) {
	t.Helper()
	got := h.numbers()
	for name, n := range want {
		if v, ok := got[name]; !ok || v != n {
			t.Errorf("%s is %v, want %v", name, v, n)
		}
	}
}

// TestFrontMetrics holds that a call is counted while it is open, and what it counted once it has ended.
func TestFrontMetrics(t *testing.T) {
	h := newHouse(t)
	client, model := h.call("")
	ended := h.endOf()
	rtctest.Eventually(t, "the call to be counted", func() bool { return h.numbers()["calls_open websocket"] == 1 })
	h.wantNumbers(t, map[string]float64{"calls_open websocket": 1, "calls_total websocket": 1, "calls_open webrtc": 0,
		"model_dials_total": 1, "model_dials_failed_total": 0})
	send(t, model, `{"type":"response.created","response":{"id":"`+strings.Repeat("r", events.MaxID+1)+`"}}`)
	send(t, model, `{"type":"rate_limits.updated"}`)
	expect(t, client, "rate_limits.updated")
	update := `{"type":"session.update","session":{"type":"realtime"}}`
	for refused := false; !refused; { // where a busy machine took its time, each was answered in the model's place
		const most = 64 // that may wait
		for range most + 1 {
			send(t, client, update)
		}
		for answered := 0; answered <= most && !refused; answered++ {
			_ = client.SetReadDeadline(time.Now().Add(patience))
			_, event, err := client.ReadMessage()
			if err != nil {
				t.Fatal(err)
			}
			refused = events.PeekType(event) == "error"
		}
	}
	h.model.gone.Store(http.StatusUnauthorized)
	_ = model.Close()
	expectClose(t, client, handoff.Vocabulary[handoff.CodeVoiceKey].Close)
	take(t, ended, "end")
	rtctest.Eventually(t, "the end to be counted", func() bool { return h.numbers()["calls_open websocket"] == 0 })
	h.wantNumbers(t, map[string]float64{"calls_total websocket": 1, "model_events_unreadable_total": 1,
		"call_events_refused_total": 1, "call_renewals_total": 0,
		"calls_ended_early_total " + string(handoff.CodeVoiceKey): 1})
	h.model.server.Close()
	if _, _, err := websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(h.edge.URL, "http"), nil); err == nil {
		t.Error("a call without a model")
	}
	h.wantNumbers(t, map[string]float64{"model_dials_total": 3, "model_dials_failed_total": 2, "calls_total websocket": 1})
}
