package rtc

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pion/rtp"
	"github.com/pion/webrtc/v4"
	"github.com/tidwall/gjson"

	"switchboard/handoff"
	"switchboard/realtime/events"
	"switchboard/realtime/outbound"
	"switchboard/realtime/rtc/rtctest"
)

func TestLegCarriesEvents(t *testing.T) {
	l := newLone(t, unhurried, channelLabel, false)
	first := gjson.ParseBytes(rtctest.Take(t, l.up, "the first event"))
	if first.Get("type").String() != events.TypeFormats || !strings.HasPrefix(first.Get("event_id").String(), "sb_rtc_") ||
		first.Get("session.audio.input.format.type").String() != events.PCMU ||
		first.Get("session.audio.output.format.type").String() != events.PCMU {
		t.Errorf("first event %s", first)
	}
	if !l.leg.Send([]byte(freshSession)) { // before the channel is open
		t.Fatal("not sent")
	}
	if got := rtctest.Take(t, l.Messages, "session.created"); string(got) != freshSession {
		t.Errorf("got %s", got)
	}
	rtctest.Event(t, l.up, events.TypeOpened)
	said := `{"type":"conversation.item.create","item":{"type":"message","role":"user","content":[{"type":"input_text",` +
		`"text":"hällo"}]}}`
	l.Send(said)
	if got := rtctest.Take(t, l.up, "the sentence"); string(got) != said {
		t.Errorf("got %s", got)
	}
	l.Send(`{"type":"input_audio_buffer.append","event_id":"mine","audio":"AAAA"}`)
	if e := rtctest.Event(t, l.Messages, events.TypeError); e.Get("error.event_id").String() != "mine" {
		t.Errorf("got %s", e)
	}
}

func TestLegHears(t *testing.T) {
	l := newOpen(t, rtctest.New)
	const packets = 50
	l.Speak(1, packets)
	var heard []byte
	for len(heard) < packets*frameBytes {
		e := rtctest.Event(t, l.up, events.TypeAppend)
		audio, err := base64.StdEncoding.DecodeString(e.Get("audio").String())
		if err != nil || len(audio)%frameBytes != 0 {
			t.Fatalf("got %s", e)
		}
		heard = append(heard, audio...)
	}
	for i := range packets {
		if want := bytes.Repeat([]byte{byte(i + 1)}, frameBytes); !bytes.Equal(heard[i*frameBytes:(i+1)*frameBytes], want) {
			t.Fatalf("packet %d is %v...", i, heard[i*frameBytes])
		}
	}
}

// TestLegHearsOnAfterWhatItDoesNotKnow: a packet of what was not agreed on, here comfort noise, is left out; what comes
// after it is heard.
func TestLegHearsOnAfterWhatItDoesNotKnow(t *testing.T) {
	packets, _ := opusPackets(t)
	speak := func(l lone, n int) { l.Speak(0, n) }
	for name, kind := range map[string]struct {
		open  func(testing.TB, string) *rtctest.Browser
		speak func(l lone, packets int)
	}{"narrow": {rtctest.New, speak}, "wide": {rtctest.NewWide, speak}, "opus": {rtctest.NewOpus,
		func(l lone, n int) { l.SayOpus(packets[:n]) }}} {
		t.Run(name, func(t *testing.T) {
			l := newOpen(t, kind.open)
			kind.speak(l, 2)
			rtctest.Event(t, l.up, events.TypeAppend)
			l.SayStray(2, 13)
			kind.speak(l, 6)
			rtctest.Event(t, l.up, events.TypeAppend)
		})
	}
}

// TestLegKeepsOrder: sound before an event is passed on before it, however short it is.
func TestLegKeepsOrder(t *testing.T) {
	var up [][]byte
	r := run{Leg: &Leg{}, player: newPlayer(narrow), toCall: func(event []byte) { up = append(up, event) }}
	r.player.formats.known = true
	r.packet(&rtp.Packet{Payload: []byte{1, 2, 3}})
	r.message([]byte(`{"type":"input_audio_buffer.commit"}`))
	r.message([]byte(`{"type":"response.create"}`))
	if got := string(bytes.Join(up,
		[]byte(" "))); got != `{"type":"input_audio_buffer.append","audio":"AQID"} {"type":"input_audio_buffer.commit"} `+
		`{"type":"response.create"}` {
		t.Errorf("got %s", got)
	}
}

// TestLegPassesWhatItHeldBack: sound that came before the formats were known goes to the model once they are, without
// waiting for more.
func TestLegPassesWhatItHeldBack(t *testing.T) {
	var up [][]byte
	r := run{Leg: &Leg{}, player: newPlayer(narrow), toCall: func(event []byte) { up = append(up, event) }}
	for i := range uint16(2) {
		r.packet(&rtp.Packet{Header: rtp.Header{SequenceNumber: i, Timestamp: uint32(i) * frameBytes},
			Payload: make([]byte, frameBytes)})
	}
	if r.passOpening(); len(up) != 0 {
		t.Fatalf("passed %s", up)
	}
	r.session = []byte(`{"type":"session.update","session":{}}`)
	r.player.formats.known = true
	r.passOpening()
	r.passOpening()
	if len(up) != 2 || events.PeekType(up[0]) != events.TypeOpening || events.PeekType(up[1]) != events.TypeAppend {
		t.Errorf("passed %s", up)
	}
}

// TestClientHasItsTimeWhenItIsListenedTo: a client whose channel opens before the formats are known is reported as
// reachable only after that, since until then none of its events are read, such as its session.update.
func TestClientHasItsTimeWhenItIsListenedTo(t *testing.T) {
	var up [][]byte
	r := run{Leg: &Leg{}, player: newPlayer(narrow), toCall: func(event []byte) { up = append(up, event) }}
	r.open(&webrtc.DataChannel{})
	if r.passOpening(); len(up) != 0 {
		t.Fatalf("passed %s", up)
	}
	r.player.formats.known = true
	r.passOpening()
	if len(up) != 1 || events.PeekType(up[0]) != events.TypeOpened {
		t.Errorf("passed %s", up)
	}
}

// TestLegWaitsForTheSession: a model whose session begins late gets no sound before the formats are known.
func TestLegWaitsForTheSession(t *testing.T) {
	l := newEarlyOf(t, rtctest.New, unhurried, channelLabel, false)
	rtctest.Take(t, l.up, "the formats")
	<-l.Open
	l.Speak(1, 4)
	rtctest.Eventually(t, "sign of the sound", func() bool { return l.leg.seen.Load() > 0 })
	l.leg.Send([]byte(madeOfPCM))
	e := rtctest.Event(t, l.up, events.TypeAppend)
	if sound, err := base64.StdEncoding.DecodeString(e.Get("audio").String()); err != nil ||
		len(sound)%(6*frameBytes) != 0 {
		t.Errorf("the model gets %d bytes, %v", len(sound), err)
	}
}

// A client without a data channel can be reached once it is connected.
func TestLegWithoutChannelIsReached(t *testing.T) {
	l := newLone(t, unhurried, "", false)
	rtctest.Event(t, l.up, events.TypeOpened)
}

func TestLegSpeaks(t *testing.T) {
	l := newLone(t, unhurried, channelLabel, false)
	rtctest.Take(t, l.up, "the formats")
	const frames = 25
	for i := range frames / 5 { // before it is connected: nothing may be lost
		l.leg.Send([]byte(sounds("r", "i", 100, byte(i+1))))
	}
	l.leg.Send([]byte(made("r")))
	late := uint32(0) // by how much: a machine that stood still goes on later, with a marked frame
	for i := range frames + tailFrames {
		p := rtctest.Take(t, l.Packets, fmt.Sprintf("frame %d", i))
		want := byte(silentByte)
		if i < frames {
			want = byte(i/5 + 1)
		}
		if !bytes.Equal(p.Payload, bytes.Repeat([]byte{want}, frameBytes)) {
			t.Fatalf("frame %d holds %d bytes of %d", i, len(p.Payload), p.Payload[0])
		}
		if i > 0 && p.Marker {
			late = p.Timestamp - uint32(i*frameBytes)
		}
		if p.SequenceNumber != uint16(i) || p.Timestamp != late+uint32(i*frameBytes) || i == 0 && !p.Marker ||
			p.PayloadType != 0 {
			t.Fatalf("frame %d has %+v", i, p.Header)
		}
	}
	for _, want := range []string{events.TypeDone, events.TypeOutputStarted, events.TypeOutputStopped} {
		if e := gjson.ParseBytes(rtctest.Take(t, l.Messages, want)); e.Get("type").String() != want {
			t.Errorf("got %s, want %s", e, want)
		}
	}
}

// TestLegIsInterrupted holds that sound is paced: of ten seconds only a part was sent when the caller speaks.
func TestLegIsInterrupted(t *testing.T) {
	l := newLone(t, unhurried, channelLabel, false)
	rtctest.Take(t, l.up, "the formats")
	l.leg.Send([]byte(making("r")))
	l.leg.Send([]byte(sounds("r", "i", 10_000, 7)))
	const before = 5
	for range before {
		rtctest.Take(t, l.Packets, "a frame")
	}
	l.leg.Send([]byte(spokenTo))
	cut := rtctest.Event(t, l.up, events.TypeItemTruncate)
	if cut.Get("item_id").String() != "i" || cut.Get("content_index").Int() != 0 {
		t.Errorf("got %s", cut)
	}
	rtctest.Event(t, l.Messages, events.TypeSpeechStarted)
	if e := rtctest.Event(t, l.Messages, events.TypeOutputCleared); e.Get("response_id").String() != "r" {
		t.Errorf("got %s", e)
	}
	heard := before
	for p := rtctest.Take(t, l.Packets, "silence"); p.Payload[0] != silentByte; p = rtctest.Take(t, l.Packets, "silence") {
		heard++
	}
	if end := cut.Get("audio_end_ms").Int(); end != int64(heard*20) || heard > 400 {
		t.Errorf("truncated at %d ms, %d frames came", end, heard)
	}
}

func TestLegEndsWithItsClient(t *testing.T) {
	t.Run("hung up", func(t *testing.T) {
		l := newLone(t, unhurried, channelLabel, false)
		<-l.Open
		l.HangUp()
		rtctest.Gone(t, l.up, "the leg")
	})
	t.Run("channel closed", func(t *testing.T) {
		l := newLone(t, unhurried, channelLabel, false)
		<-l.Open
		l.CloseChannel()
		rtctest.Gone(t, l.up, "the leg")
	})
	t.Run("vanished", func(t *testing.T) {
		l := newLone(t, impatient, channelLabel, false)
		<-l.Open
		l.leg.Send([]byte(sounds("r", "i", 60_000, 7)))
		rtctest.Take(t, l.Packets, "a frame")
		l.Unplug()
		rtctest.Gone(t, l.up, "the leg")
	})
	t.Run("never came", func(t *testing.T) {
		config := Config{Connect: 100 * time.Millisecond, Disconnected: time.Hour, Failed: time.Hour}
		l := newLone(t, config, channelLabel, true)
		rtctest.Gone(t, l.up, "the leg")
	})
}

// TestLegFlushes holds that what was sent before Close arrives.
func TestLegFlushes(t *testing.T) {
	l := newOpen(t, rtctest.New)
	const events = 500
	for i := range events {
		if !l.leg.Send(fmt.Appendf(nil, `{"type":"response.output_text.delta","n":%d,"delta":%q}`, i,
			strings.Repeat("x", 400))) {
			t.Fatal("not sent")
		}
	}
	l.leg.Close(handoff.Fault(handoff.CodeShutdown, "", ""))
	for i := range events {
		if e := gjson.ParseBytes(rtctest.Take(t, l.Messages, "event")); e.Get("n").Int() != int64(i) {
			t.Fatalf("event %d is %s", i, e)
		}
	}
	rtctest.Gone(t, l.Over, "the channel")
	if l.leg.Send([]byte(`{}`)) {
		t.Error("sent after the end")
	}
}

func TestLegEndsWhenItsClientIsSlow(t *testing.T) {
	l := newEarlyOf(t, rtctest.New, unhurried, channelLabel, true)
	sent := 0
	for until := time.Now().Add(rtctest.Patience); l.leg.Send([]byte(`{"type":"x"}`)); sent++ {
		if time.Now().After(until) {
			t.Fatal("it takes all")
		}
	}
	rtctest.Gone(t, l.up, "the leg")
	l.leg.Close(nil)
	if why := l.leg.Ended(); why == nil || why.Code != handoff.CodeSlowClient || sent < outbound.MaxEvents {
		t.Errorf("ended with %v after %d events", why, sent)
	}
	noisy := newLone(t, unhurried, channelLabel, true)
	if noisy.leg.Send(make([]byte, outbound.MaxBytes+1)) {
		t.Error("it takes any size")
	}
}

func TestLegWithoutChannel(t *testing.T) {
	l := newLone(t, unhurried, "", false)
	rtctest.Take(t, l.up, "the formats")
	for range 2*outbound.MaxEvents + 1 { // nobody reads them, nobody minds
		for !l.leg.Send([]byte(`{"type":"rate_limits.updated"}`)) {
			t.Fatal("the leg ended")
		}
		if l.leg.Bytes() > 1<<10 {
			time.Sleep(time.Millisecond)
		}
	}
	l.leg.Send([]byte(sounds("r", "i", 100, 7)))
	rtctest.Take(t, l.Packets, "a frame")
}

func TestLegRefusesOtherChannels(t *testing.T) {
	l := newOpen(t, rtctest.New)
	for _, label := range []string{"chat", channelLabel} {
		rtctest.Gone(t, l.Knock(label, `{"type":"response.cancel"}`), "the other channel")
	}
	l.Send(`{"type":"response.create"}`)
	rtctest.Event(t, l.up, events.TypeOpened)
	if e := gjson.ParseBytes(rtctest.Take(t, l.up, "the event")); e.Get("type").String() != events.TypeCreate {
		t.Errorf("heard %s", e)
	}
}

// TestLegFitsWhatABrowserTakes holds that the end of a response reaches a browser whatever is in it.
func TestLegFitsWhatABrowserTakes(t *testing.T) {
	l := newOpen(t, rtctest.New)
	l.leg.Send([]byte(`{"type":"response.done","response":{"id":"r1","status":"completed","output":[{"type":"message",` +
		`"content":[{"type":"output_text","text":"` + strings.Repeat("x", 300<<10) + `"}]}]}}`))
	l.leg.Send([]byte(`{"type":"small"}`))
	if e := gjson.ParseBytes(rtctest.Take(t, l.Messages, "an event")); e.Get("response.id").String() != "r1" ||
		e.Get("response.status").String() != events.StatusCompleted {
		t.Errorf("got %.80s", e)
	}
	if e := gjson.ParseBytes(rtctest.Take(t, l.Messages, "an event")); e.Get("type").String() != "small" {
		t.Errorf("got %.80s", e)
	}
}

// A client without a microphone shows a sign of life by acknowledging events.
func TestLegSeesASilentClient(t *testing.T) {
	l := newLone(t, Config{}, channelLabel, false)
	rtctest.Gone(t, l.Open, "the wait for the channel")
	before := time.Now()
	l.leg.Send([]byte(`{"type":"anything"}`))
	rtctest.Event(t, l.Messages, "anything")
	rtctest.Eventually(t, "sign of the client", func() bool { return l.leg.seen.Load() > 0 && l.leg.Seen().After(before) })
}

// TestLegMetrics holds that what WebRTC legs counted is shown once they have ended.
func TestLegMetrics(t *testing.T) {
	l := newLone(t, unhurried, channelLabel, false)
	rtctest.Gone(t, l.Open, "the channel")
	l.leg.Send([]byte(`{"type":"x","a":"` + strings.Repeat("a", 1<<20) + `"}`))
	rtctest.Take(t, l.Messages, "event")
	l.leg.Close(nil)
	if n := l.leg.counts.sum; n.shortened != 1 || n.undelivered != 0 {
		t.Errorf("%d shortened, %d undelivered", n.shortened, n.undelivered)
	}
}

// TestLegReports: a browser learns what of its sound was lost, without which it turns no error correction on.
func TestLegReports(t *testing.T) {
	packets, _ := opusPackets(t)
	l := newOpen(t, rtctest.NewOpus)
	clear(packets[5:10])
	l.SayOpus(packets[:20])
	for lost := l.Report(); lost != 5; lost = l.Report() { // one may come in between
		if lost != 0 {
			t.Fatalf("%d packets lost", lost)
		}
	}
}
