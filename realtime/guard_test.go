package realtime

import (
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"

	"switchboard/handoff"
	"switchboard/realtime/events"
	"switchboard/realtime/rtc/rtctest"
	"switchboard/realtime/simulator"
)

// A door is what let a client in, until it is closed.
type door struct{ closed atomic.Bool }

func (d *door) grant(g handoff.Grant) handoff.Grant {
	g.Revoked = func() error {
		if d.closed.Load() {
			return handoff.Fault(handoff.CodeUnauthorized, "", "")
		}
		return nil
	}
	return g
}

// TestGuard: what a credential opened ends within 15 s after it, with the reason, and once.
func TestGuard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d door
		ended := make(chan *handoff.Error)
		stop := guard(guardStep, d.grant(handoff.Grant{}).Revoked, func(why *handoff.Error) { ended <- why })
		time.Sleep(time.Hour)
		d.closed.Store(true)
		began := time.Now()
		if why := <-ended; why.Code != handoff.CodeUnauthorized || time.Since(began) >= 15*time.Second {
			t.Errorf("it ended with %v after %v", why, time.Since(began))
		}
		stop()
		guard(guardStep, d.grant(handoff.Grant{}).Revoked, func(*handoff.Error) { t.Error("it was stopped before") })()
		time.Sleep(time.Hour)
	})
}

// TestWhatACredentialOpened: a call, a socket beside one and a client that came back end when what let them in ends. A
// call goes on without a socket beside it.
func TestWhatACredentialOpened(t *testing.T) {
	const clear = `{"type":"input_audio_buffer.clear"}`
	begin := func(t *testing.T) (*house, *door) {
		h, d := heldHouse(t), &door{}
		h.front.asks = time.Millisecond
		return h, d
	}
	t.Run("a call", func(t *testing.T) {
		h, d := begin(t)
		h.grant = d.grant(h.grant)
		client, model := h.call("")
		d.closed.Store(true)
		expectClose(t, client, 4401)
		expectClose(t, model, websocket.CloseNormalClosure)
	})
	t.Run("a socket beside a call", func(t *testing.T) {
		h, d := begin(t)
		client, model := h.call("")
		h.grant = d.grant(h.grant)
		other := h.besideIt(h.front.Calls(someone)[0].ID)
		expect(t, other, events.TypeSessionCreated)
		d.closed.Store(true)
		expectClose(t, other, 4401)
		send(t, client, clear)
		expect(t, model, "input_audio_buffer.clear")
	})
	t.Run("a client that came back", func(t *testing.T) {
		h, d := begin(t)
		client, model := h.call(comesBack)
		_ = client.NetConn().Close()
		id := h.awaitHeld(true)
		h.grant = d.grant(h.grant)
		again, _ := h.dial("?rejoin=1&call_id=" + id)
		expect(t, again, events.TypeSessionCreated)
		expect(t, model, "conversation.item.create")
		d.closed.Store(true)
		expectClose(t, again, 4401)
		expectClose(t, model, websocket.CloseNormalClosure)
	})
	t.Run("a browser that came back", func(t *testing.T) {
		h, d := begin(t)
		desk := h.desk()
		b, id := h.browse(desk + comesBack)
		settle(t, h.takeModel())
		rtctest.Event(t, b.Messages, events.TypeSessionCreated)
		h.grant = d.grant(h.grant)
		again, _ := h.browse(desk + "?call_id=" + id)
		rtctest.Event(t, again.Messages, events.TypeSessionCreated)
		ended := h.endOf()
		d.closed.Store(true)
		if why := take(t, ended, "end"); handoff.CodeOf(why) != handoff.CodeUnauthorized {
			t.Errorf("it ended with %v", why)
		}
	})
	t.Run("a call of the provider", func(t *testing.T) {
		p, d := provide(t, simulator.Config{}, &listener{}), &door{}
		p.front.asks, p.grant = time.Millisecond, d.grant(p.grant)
		if status, body := p.attach(p.id); status != http.StatusCreated {
			t.Fatalf("%d %s", status, body)
		}
		d.closed.Store(true)
		rtctest.Eventually(t, "the call to be left", func() bool { return len(p.front.Calls(someone)) == 0 })
	})
}
