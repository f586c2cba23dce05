package realtime

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidwall/gjson"
)

// interjects performs what a caller does into a voice that goes on, each at its time. "u1 on" and "u1 off": voice
// detection notices speech and its end; "u1 lost": it gets no transcript; "u1 answer": the model begins to answer it;
// anything else is its transcript.
func (s *stage) interjects(script string) {
	s.t.Helper()
	for step := range strings.SplitSeq(script, "; ") {
		var ms int
		var item string
		if _, err := fmt.Sscanf(step, "%d %s", &ms, &item); err != nil {
			s.t.Fatalf("%q: %v", step, err)
		}
		_, does, _ := strings.Cut(step, item+" ")
		s.wait(time.Until(s.began.Add(time.Duration(ms) * time.Millisecond)))
		if item == "_" { // the model names it later
			item = ""
		}
		switch does {
		case "commits":
			s.fromModel(`{"type":"input_audio_buffer.committed","item_id":"` + item + `"}`)
		case "on":
			s.fromModel(speechStarted(item))
		case "off":
			s.fromModel(speechStopped(item))
		case "lost":
			s.fromModel(`{"type":"conversation.item.input_audio_transcription.failed","item_id":"` + item + `"}`)
		case "answer":
			s.fromModel(began("answer_"+item, ""))
		default:
			s.fromModel(strings.Replace(worded(does), "u1", item, 1))
		}
	}
}

// againCases are what a caller does while an outcome sounds, from 0 to 20 s, and when it is cut, in milliseconds; 0: it
// is heard to its end.
var againCases = []struct {
	name, script string
	cut          int
}{
	{"speech after a murmur", "1000 u1 on; 1650 u1 off; 1900 u1 mm-hmm; 3000 u2 on; 4500 u2 off", 3900},
	{"speech after a murmur of which no word is found", "1000 u1 on; 1650 u1 off; 1650 u1 ; 3000 u2 on; 4500 u2 off", 3900},
	{"speech before the words of a murmur", "1000 u1 on; 1650 u1 off; 1800 u2 on; 2000 u1 mm-hmm; 4500 u2 off", 2700},
	{"speech after two murmurs in a row", "1000 u1 on; 1650 u1 off; 1800 u2 on; 2000 u1 mm-hmm; 2450 u2 off; 2500 u2 mm-hmm; " +
		"2600 u3 on; 4500 u3 off", 3500},
	{"speech after six murmurs", "1000 u1 on; 1600 u1 off; 1700 u1 yeah; 2000 u2 on; 2600 u2 off; 2700 u2 yeah; 3000 u3 on; " +
		"3600 u3 off; 3700 u3 yeah; 4000 u4 on; 4600 u4 off; 4700 u4 yeah; 5000 u5 on; 5600 u5 off; 5700 u5 yeah; 6000 u6 on; " +
		"6600 u6 off; 6700 u6 yeah; 7000 u7 on; 9000 u7 off", 7900},
	{"murmurs alone", "1000 u1 on; 1650 u1 off; 1800 u2 on; 2000 u1 mm-hmm; 2450 u2 off; 2500 u2 mm-hmm", 0},
	{"a murmur whose words are lost while another goes on", "1000 u1 on; 1650 u1 off; 1800 u2 on; 2000 u1 lost", 2000},
	{"a stop whose words come while something else is said", "1000 u1 on; 1600 u1 off; 1700 u2 on; 1900 u1 stop; 2300 u2 off", 1900},
	{"a stop whose words come after those of a murmur", "1000 u1 on; 1600 u1 off; 1700 u2 on; 2300 u2 off; 2400 u2 mm-hmm; " +
		"2500 u1 stop", 2500},
	{"a stop after a murmur whose words come after it", "1000 u1 on; 1600 u1 off; 1700 u2 on; 2300 u2 off; 2400 u2 stop; " +
		"2500 u1 mm-hmm", 2400},
	{"a murmur that ends at the bound", "1000 u1 on; 1899 u1 off; 2000 u1 mm-hmm", 0},
	{"a stop that ends at the bound", "1000 u1 on; 1899 u1 off; 2000 u1 stop", 2000},
	{"words that never come", "1000 u1 on; 1600 u1 off", 4100},
	{"words that never come of a murmur before speech", "1000 u1 on; 1600 u1 off; 3000 u2 on; 4500 u2 off", 3900},
	{"a stop that has its name once it is over", "1000 _ on; 1600 _ off; 1700 u1 commits; 1800 u1 stop", 1800},
	{"a murmur that has its name once it is over", "1000 _ on; 1600 _ off; 1700 u1 commits; 1800 u1 mm-hmm", 0},
	{"an end that is never told", "1000 u1 on; 1500 u2 on; 1800 u2 off; 1900 u2 mm-hmm", 4000},
}

// TestYieldsAgain: each interjection is judged by itself, whatever was said before it and however late its transcript
// comes: an interruption after murmurs is still one.
func TestYieldsAgain(t *testing.T) {
	for _, c := range againCases {
		for _, far := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, at a provider %t", c.name, far), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s, tag := yieldStage(t, far)
					s.interjects(c.script)
					s.wait(time.Until(s.began.Add(10 * time.Second)))
					if got := s.cutAt(far, tag); got != c.cut {
						t.Errorf("cut after %d ms, want %d", got, c.cut)
					}
					s.close()
				})
			})
		}
	}
}

// yieldStage is a call, over a WebSocket or at a provider, in which an outcome begins to sound that is being made.
func yieldStage(t *testing.T, far bool) (s *stage, tag string) {
	if far {
		s = newAttached(t)
		s.fromModel(`{"type":"session.updated","session":{"type":"realtime","audio":{"input":{"turn_detection":` +
			`{"type":"server_vad","interrupt_response":false}}}}}`)
	} else {
		s = newStage(t)
		s.call.legs.takesOurs = true
		s.open(patient)
	}
	s.call.hearing.backchannel = func(words string) bool { return words == "mm-hmm" || words == "yeah" }
	s.call.hearing.yielding.lowers = true
	tag = s.asks("n")
	s.began = time.Now()
	s.fromModel(began("r1", tag))
	if far {
		s.fromModel(spoken("r1"), `{"type":"output_audio_buffer.started","response_id":"r1"}`)
	} else {
		s.fromModel(audio("r1", 20*time.Second))
	}
	s.model.sent()
	s.client.sent()
	return s, tag
}

// cutAt returns after how many milliseconds the outcome was cut, as the router is told it, or the provider.
func (s *stage) cutAt(far bool, tag string) (ms int) {
	s.t.Helper()
	sent, told := s.model.sent(), types(s.client.sent())
	cancelled := strings.Contains(types(sent), "response.cancel")
	if !far && strings.Contains(told, "handoff.cut") != cancelled {
		s.t.Errorf("the page is told %q, and the model sent %q", told, types(sent))
	}
	for _, event := range sent {
		ms = max(ms, int(gjson.Get(event, "audio_end_ms").Int()))
	}
	if far || !cancelled {
		return ms
	}
	s.fromModel(done("r1", tag, "cancelled"))
	_, at, _ := strings.Cut(s.story(), "cut n@")
	_, _ = fmt.Sscanf(at, "%d", &ms)
	return ms
}

// TestYieldsAndIsAnswered: a caller who interrupts is answered, also if the model was still making its response when
// they ended, and so gives no answer by itself.
func TestYieldsAndIsAnswered(t *testing.T) {
	for _, far := range []bool{false, true} {
		for _, c := range []struct {
			name, before, after string
			asks                bool
		}{
			{"it was still at it", "1000 u1 on; 1950 u1 off", "2300 u1 and on the laptop?", true},
			{"it answers all the same", "1000 u1 on; 1950 u1 off", "2000 u1 answer; 2300 u1 and on the laptop?", false},
			{"it had stopped", "1000 u1 on", "2000 u1 off; 2300 u1 and on the laptop?", false},
			{"they only murmured for long", "1000 u1 on; 1950 u1 off", "2300 u1 mm-hmm", false},
			{"nobody knows what they said", "1000 u1 on; 1950 u1 off", "6000 u9 mm-hmm", true},
		} {
			t.Run(fmt.Sprintf("%s, at a provider %t", c.name, far), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s, tag := yieldStage(t, far)
					s.interjects(c.before)
					s.wait(time.Until(s.began.Add(1960 * time.Millisecond)))
					if sent := types(s.model.sent()); !strings.HasPrefix(sent, "response.cancel") {
						t.Errorf("the model is sent %q", sent)
					}
					s.fromModel(done("r1", tag, "cancelled"))
					if far {
						s.fromModel(`{"type":"output_audio_buffer.cleared","response_id":"r1"}`)
					}
					s.interjects(c.after)
					if sent := types(s.model.sent()); sent != map[bool]string{true: "response.create"}[c.asks] {
						t.Errorf("the model is sent %q", sent)
					}
					s.close()
				})
			})
		}
	}
}

// TestYieldsWhenItIsLost: what was said into the voice gets no transcript if the model's session ends. It may have been
// a "stop", so the voice stops.
func TestYieldsWhenItIsLost(t *testing.T) {
	for _, c := range []struct{ script, told string }{
		{"1000 u1 on; 1600 u1 off", "handoff.cut"},
		{"1000 u1 on; 1600 u1 off; 1700 u1 mm-hmm", ""},
	} {
		playFresh(t, func(s *stage) {
			h := renewed(s)
			s.call.legs.takesOurs, s.call.hearing.yielding.lowers = true, true
			s.call.hearing.backchannel = func(words string) bool { return words == "mm-hmm" }
			s.open(patient)
			s.began = time.Now()
			s.fromModel(began("r1", ""), audio("r1", 20*time.Second), done("r1", "", "completed"))
			s.interjects(c.script)
			s.client.sent()
			h.lose()
			if told := types(s.client.sent()); told != c.told {
				t.Errorf("%s: the page is told %q, want %q", c.script, told, c.told)
			}
		})
	}
}

// TestYieldsOnAnotherSocket: a caller can interrupt a response that sounded as the socket to the provider was lost,
// over the next socket.
func TestYieldsOnAnotherSocket(t *testing.T) {
	for _, c := range []struct{ making, script, sent string }{
		{"r1", "2000 u1 on; 2600 u1 off; 2700 u1 stop", "response.cancel output_audio_buffer.clear"},
		{"", "2000 u1 on; 2600 u1 off; 2700 u1 stop", "output_audio_buffer.clear"},
		{"", "2000 u1 on; 2900 u1 on", "output_audio_buffer.clear"},
		{"r1", "2000 u1 on; 2600 u1 off; 2700 u1 mm-hmm", ""},
		{"r1", "9000 u1 on; 9600 u1 off; 9700 u1 run the tests", ""}, // it is over by then
	} {
		synctest.Test(t, func(t *testing.T) {
			s, tag := yieldStage(t, true)
			began := s.began
			for range 30 { // it will sound for five seconds
				s.fromModel(spoken("r1"))
			}
			if c.making == "" {
				s.fromModel(done("r1", tag, "completed"))
			}
			var state *attached
			s.call.do(func() { state = s.call.nextAttached() })
			s.close()
			state.lowers = true
			next := newAttachedAs(t, state)
			next.call.hearing.backchannel = s.call.hearing.backchannel
			next.fromModel(`{"type":"session.updated","session":{"type":"realtime","audio":{"input":{"turn_detection":` +
				`{"type":"server_vad","interrupt_response":false}}}}}`)
			next.model.sent()
			next.began = began
			next.interjects(c.script)
			if sent := types(next.model.sent()); sent != c.sent {
				t.Errorf("%s: the provider is sent %q, not %q", c.script, sent, c.sent)
			}
			next.close()
		})
	}
}
