package rtc

import (
	"bytes"
	"encoding/base64"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pion/rtp"
	"github.com/tidwall/gjson"
	"go.uber.org/zap"

	"switchboard/realtime/events"
	"switchboard/realtime/outbound"
)

// A stillRun is the loop of a leg without a peer, in a bubble: only packets reach it.
type stillRun struct {
	run
	mu    sync.Mutex
	heard []byte // Guarded by mu: what the model was sent since it was looked at last
}

// playRun lets do send packets to a loop of a line; settled: the formats are.
func playRun(t *testing.T, l line, settled bool, do func(s *stillRun)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		leg := &Leg{Queue: outbound.New(nil), log: zap.NewNop(), packets: make(chan *rtp.Packet)}
		s := &stillRun{run: run{Leg: leg, player: newPlayer(l), reorder: reorderBuffer{line: l}}}
		s.player.formats.known = settled
		s.toCall = func(event []byte) {
			if events.PeekType(event) == events.TypeAppend {
				sound, err := base64.StdEncoding.DecodeString(gjson.GetBytes(event, "audio").String())
				if err != nil {
					t.Error(err)
				}
				s.mu.Lock()
				defer s.mu.Unlock()
				s.heard = append(s.heard, sound...)
			}
		}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			s.loop()
		}()
		defer func() {
			leg.End(nil)
			<-ended
		}()
		do(s)
	})
}

// say sends frames of a value, 20 ms apart, from a place in the client's count of both packets and time.
func (s *stillRun) say(sequence uint16, timestamp uint32, frames int, value byte) {
	for i := range frames {
		s.packets <- &rtp.Packet{
			Header:  rtp.Header{SequenceNumber: sequence + uint16(i), Timestamp: timestamp + uint32(i)*frameBytes},
			Payload: bytes.Repeat([]byte{value}, frameBytes),
		}
		time.Sleep(frameTime)
	}
	synctest.Wait()
}

// sent returns what the model was sent within a time.
func (s *stillRun) sent(within time.Duration) []byte {
	time.Sleep(within)
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	sound := s.heard
	s.heard = nil
	return sound
}

// A microphone that sends nothing between two sentences: the model needs silence to detect the end of the first, so
// silence is inserted in real time, for some seconds.
func TestMicrophoneThatRests(t *testing.T) {
	for name, l := range map[string]line{"narrow": narrow, "wide": wide} {
		t.Run(name, func(t *testing.T) {
			playRun(t, l, true, func(s *stillRun) {
				s.say(1, 0, 4, 7)
				if got := s.sent(pauseTime - 2*frameTime); !bytes.Equal(got, bytes.Repeat([]byte{7}, 4*frameBytes)) {
					t.Fatalf("%d bytes before the pause", len(got))
				}
				var frame [frameBytes]byte
				l.silence(frame[:])
				quiet := bytes.Repeat(frame[:], int(pauseTime/frameTime))
				for i := range maxPauses {
					if got := s.sent(pauseTime); !bytes.Equal(got, quiet) {
						t.Fatalf("%d bytes in pause %d, want %d of silence", len(got), i, len(quiet))
					}
				}
				if got := s.sent(time.Hour); len(got) != 0 {
					t.Errorf("%d bytes after the last", len(got))
				}
				s.say(5, 4*frameBytes+30_000*bytesPerMS, 3, 9) // the next sentence, 30 s later by its own clock
				got := s.sent(0)
				if !bytes.HasSuffix(got, bytes.Repeat([]byte{9}, 3*frameBytes)) || len(got) > maxGap+3*frameBytes {
					t.Errorf("%d bytes of the next sentence", len(got))
				}
				if got := s.sent(3 * pauseTime); len(got) != 3*len(quiet) {
					t.Errorf("%d bytes after the next sentence, want %d of silence", len(got), 3*len(quiet))
				}
			})
		})
	}
}

// A pause is inserted once: later packets add only the silence that is still missing, and none if they were only late.
func TestMicrophoneGoesOnAfterAPause(t *testing.T) {
	for name, c := range map[string]struct {
		rested time.Duration // by the client's clock
		more   int           // ms of silence that are still missing: they go with the first frame, and frames in pairs
		frames int
	}{"rested": {700 * time.Millisecond, 100, 3}, "held up": {0, 0, 2}} {
		t.Run(name, func(t *testing.T) {
			playRun(t, narrow, true, func(s *stillRun) {
				s.say(1, 0, 2, 7)
				s.sent(700*time.Millisecond - frameTime) // and the time after the last frame
				s.say(3, uint32(2*frameBytes+c.rested.Milliseconds()*bytesPerMS), c.frames, 9)
				want := append(bytes.Repeat([]byte{silentByte}, c.more*bytesPerMS), bytes.Repeat([]byte{9}, c.frames*frameBytes)...)
				if got := s.sent(0); !bytes.Equal(got, want) {
					t.Errorf("%d bytes, want %d", len(got), len(want))
				}
			})
		})
	}
}

// Comfort noise that comes every 400 ms is no pause: nothing is put between.
func TestMicrophoneWithDTX(t *testing.T) {
	playRun(t, narrow, true, func(s *stillRun) {
		for i := range uint16(10) {
			s.say(i, uint32(i)*400*bytesPerMS, 1, 7)
			time.Sleep(400*time.Millisecond - frameTime)
		}
		if got, want := s.sent(0), 9*400*bytesPerMS+frameBytes; len(got) > want {
			t.Errorf("%d bytes in the time of %d", len(got), want)
		}
	})
}

// While the formats are not known, silence does not push out the caller's sound.
func TestMicrophoneThatRestsEarly(t *testing.T) {
	playRun(t, narrow, false, func(s *stillRun) {
		s.say(1, 0, 2, 7)
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := s.reorder.audio; !bytes.Equal(got, bytes.Repeat([]byte{7}, 2*frameBytes)) {
			t.Errorf("%d bytes wait", len(got))
		}
	})
}

// The silence for a client that may send Opus has the same length, as PCM.
func TestMicrophoneWithOpusThatRests(t *testing.T) {
	h := reorderBuffer{line: wide, decoder: newDecoder()}
	h.pause()
	if got := h.take(1); !bytes.Equal(got, make([]byte, maxGap*tickBytes)) {
		t.Errorf("%d bytes, want %d of silence", len(got), maxGap*tickBytes)
	}
}
