package rtc

import (
	"context"
	"fmt"
	"testing"
	"time"

	"go.uber.org/zap"

	"switchboard/realtime/events"
	"switchboard/realtime/rtc/rtctest"
)

// unhurried is a configuration with limits so long that a busy machine does not reach them; impatient is one whose
// limits are short, but not for a busy machine.
var (
	unhurried = Config{Connect: rtctest.Patience, Disconnected: rtctest.Patience, Failed: rtctest.Patience}
	impatient = Config{Connect: rtctest.Patience, Disconnected: 2 * time.Second, Failed: time.Second}
)

// lone is a leg without a call, and its browser.
type lone struct {
	*rtctest.Browser
	leg *Leg
	up  chan []byte // what its call would get; closed when the leg has ended
}

// newLone connects a browser to a leg. dark: the browser never gets the answer.
func newLone(t *testing.T, config Config, label string, dark bool) lone {
	t.Helper()
	return newLoneOf(t, rtctest.New, config, label, dark)
}

// newLoneOf does so with a browser that open makes.
func newLoneOf(
	t *testing.T, open func(testing.TB, string) *rtctest.Browser, config Config, label string, dark bool,
) lone {
	t.Helper()
	l := newEarlyOf(t, open, config, label, dark)
	l.leg.Send([]byte(`{"type":"` + events.TypeMade + `","session":{}}`))
	return l
}

// newOpen connects a browser that open makes, and waits until its channel is open.
func newOpen(t *testing.T, open func(testing.TB, string) *rtctest.Browser) lone {
	t.Helper()
	l := newLoneOf(t, open, unhurried, channelLabel, false)
	rtctest.Take(t, l.up, "the formats")
	<-l.Open
	return l
}

// newEarlyOf does so while the model has made no session.
func newEarlyOf(
	t *testing.T, open func(testing.TB, string) *rtctest.Browser, config Config, label string, dark bool,
) lone {
	t.Helper()
	rtctest.NoLeaks(t)
	m, err := Listen(config, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	b := open(t, label)
	offer := Offer{SDP: b.Offer()}
	if fault := offer.Check(); fault != nil || offer.channel != (label != "") {
		t.Fatalf("%v, channel %t", fault, offer.channel)
	}
	leg, fault := m.NewLeg(offer, zap.NewNop())
	if fault != nil {
		t.Fatal(fault)
	}
	leg.formatLimit = 0 // the model says nothing of formats
	answer, fault := leg.Answer(context.Background())
	if fault != nil {
		t.Fatal(fault)
	}
	up := make(chan []byte, 1<<12)
	go func() {
		defer close(up)
		leg.Run(func(event []byte) { up <- event })
	}()
	t.Cleanup(func() { leg.Close(nil) })
	leg.Answered()
	if !dark {
		b.Accept(answer)
	}
	return lone{b, leg, up}
}

const freshSession = `{"type":"session.created","event_id":"e0","session":{"type":"realtime","id":"sess_1",` +
	`"audio":{"output":{"format":{"type":"audio/pcm","rate":24000}}}}}`

func began(id string) string {
	return fmt.Sprintf(`{"type":"response.created","response":{"id":%q,"status":"in_progress","output":[],`+
		`"metadata":null}}`, id)
}
