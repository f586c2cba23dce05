package rtc

import (
	"strings"
	"testing"

	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/realtime/rtc/rtctest"
)

func TestOffers(t *testing.T) {
	for _, tc := range rtctest.Offers() {
		offer := Offer{SDP: tc.SDP}
		fault := offer.Check()
		switch {
		case tc.Code == "" && (fault != nil || !offer.channel):
			t.Errorf("%s: %v, channel %t", tc.Name, fault, offer.channel)
		case tc.Code != "" && (fault == nil || fault.Code != tc.Code || !strings.Contains(fault.Subject, tc.Reason)):
			t.Errorf("%s: %v", tc.Name, fault)
		}
	}
}

// FuzzOffer holds that no offer makes the gate or what is behind it panic, and that its errors can be told.
func FuzzOffer(f *testing.F) {
	for _, tc := range rtctest.Offers() {
		f.Add(tc.SDP)
	}
	m, err := Listen(Config{}, zap.NewNop())
	if err != nil {
		f.Fatal(err)
	}
	if err := m.Start(); err != nil {
		f.Fatal(err)
	}
	f.Cleanup(m.Close)
	f.Fuzz(func(t *testing.T, sdp string) {
		offer := Offer{SDP: sdp}
		fault := offer.Check()
		if fault == nil {
			if offer.fits < smallestMessage || offer.fits > largestMessage {
				t.Errorf("messages of %d bytes", offer.fits)
			}
			var l *Leg
			if l, fault = m.NewLeg(offer, zap.NewNop()); fault == nil {
				_, fault = l.Answer(t.Context())
				l.Abandon()
			}
		}
		if fault != nil && fault.Code != handoff.CodeMalformed && fault.Code != handoff.CodeTooLarge {
			t.Errorf("%v", fault)
		}
	})
}
