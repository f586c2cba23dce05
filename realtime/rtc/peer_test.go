package rtc

import (
	"testing"
	"time"

	"github.com/tidwall/gjson"
	"go.uber.org/zap"

	"switchboard/realtime/events"
	"switchboard/realtime/outbound"
	"switchboard/realtime/rtc/rtctest"
)

// TestPeerSaysWhyItEnds: the last event of a server that makes the voice says why the session ends. It arrives also
// where the network loses it at first: a page that does not know why its line is over does not go on in another call.
func TestPeerSaysWhyItEnds(t *testing.T) {
	t.Parallel()
	rtctest.NoLeaks(t)
	m, err := Listen(unhurried, zap.NewNop())
	if err == nil {
		err = m.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	b := rtctest.New(t, channelLabel)
	answer, p, fault := m.NewPeer(t.Context(), b.Offer())
	if fault != nil {
		t.Fatal(fault)
	}
	go p.Run(func([]byte) {})
	t.Cleanup(p.Close)
	b.Accept(answer)
	p.Send([]byte(freshSession))
	if kind := events.PeekType(rtctest.Take(t, b.Messages, "the session")); kind != events.TypeSessionCreated {
		t.Fatalf("the first event is %s", kind)
	}
	b.Loses(true)
	p.Send([]byte(`{"type":"error","error":{"code":"session_expired"}}`))
	go p.Close()
	time.Sleep(outbound.CloseGrace + 100*time.Millisecond) // others end by then
	b.Loses(false)
	e := gjson.ParseBytes(rtctest.Take(t, b.Messages, "why it ends"))
	if e.Get("error.code").String() != "session_expired" {
		t.Errorf("the last event is %s", e)
	}
	rtctest.Gone(t, b.Over, "the channel")
}
