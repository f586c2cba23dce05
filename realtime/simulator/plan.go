package simulator

import (
	"strings"
	"time"
	"unicode/utf8"
)

// How the model speaks and calls.
const (
	wordsPerSecond = 2.7
	lead           = 300 * time.Millisecond // how much earlier than it plays sound is sent
	writePace      = 15 * time.Millisecond  // between words of text output
	callPace       = 20 * time.Millisecond  // between argument deltas
	callPieces     = 4
	maxSay         = 16 << 10 // bytes; a longer speech is cut
)

// A planner turns the moves of a response into actions with times.
type planner struct {
	s      *session
	r      *response
	pace   float64       // how many times faster than it plays sound is sent
	at     time.Duration // when the next event can be sent, since the beginning of the response
	played time.Duration // when the sound sent so far will have been played
	last   time.Duration // when the last action is done
}

// play plans the moves of a response, which is complete after the last.
func (s *session) play(r *response, moves []Move) {
	p := planner{s: s, r: r, pace: 1}
	if s.manner != nil {
		p.at, p.pace = s.manner.Answer(), s.manner.Pace
	}
	for _, m := range moves {
		switch m := m.(type) {
		case Say:
			p.say(m.Text)
		case Call:
			p.call(m)
		}
	}
	s.schedule(r, r.began.Add(p.last), func() { s.finish(r, "completed", nil) })
}

func (p *planner) do(f func()) { p.doAt(p.at, f) }

func (p *planner) doAt(at time.Duration, f func()) {
	at = max(at, p.at)
	p.last = max(p.last, at)
	p.s.schedule(p.r, p.r.began.Add(at), f)
}

// sendTime returns when sound is sent that plays at t, both since the beginning.
func (p *planner) sendTime(t time.Duration) time.Duration { return time.Duration(float64(t) / p.pace) }

func (p *planner) say(text string) {
	if len(text) > maxSay {
		text = strings.ToValidUTF8(text[:maxSay], "")
	}
	words := strings.SplitAfter(strings.Join(strings.Fields(text), " "), " ")
	if words[0] == "" {
		return
	}
	if p.r.Modalities[0] == "text" {
		p.write(words)
		return
	}
	s, r := p.s, p.r
	p.do(func() {
		s.openItem(r, &item{Type: message, Role: "assistant",
			Content: []part{{Type: "output_audio", Transcript: new("")}}})
	})
	total := max(frameLength, time.Duration(float64(len(words))/wordsPerSecond/p.r.speed*float64(time.Second)))
	total = (total + frameLength - 1) / frameLength * frameLength
	start := max(p.at, p.played)
	for i, word := range words {
		p.doAt(start+p.sendTime(total*time.Duration(i)/time.Duration(len(words)))-lead, func() {
			*r.open.Content[0].Transcript += word
			s.emit("response.output_audio_transcript.delta", r.at(fields{"delta": word}))
		})
	}
	sound := p.r.Audio.Output.Format.murmur()
	for t := time.Duration(0); t < total; t += frameLength {
		p.doAt(start+p.sendTime(t)-lead, func() {
			r.open.sent += frameLength
			s.audioSent = true
			s.emit("response.output_audio.delta", r.at(fields{"delta": sound}))
		})
	}
	p.played = start + total
	p.at = max(p.at, start+p.sendTime(total)-lead)
	p.do(func() { s.closeItem(r, "completed") })
}

// write is say for text output.
func (p *planner) write(words []string) {
	s, r := p.s, p.r
	p.do(func() {
		s.openItem(r, &item{Type: message, Role: "assistant", Content: []part{{Type: "output_text", Text: new("")}}})
	})
	for _, word := range words {
		p.do(func() {
			*r.open.Content[0].Text += word
			s.emit("response.output_text.delta", r.at(fields{"delta": word}))
		})
		p.at += writePace
	}
	p.do(func() { s.closeItem(r, "completed") })
}

// call plans a function call.
func (p *planner) call(c Call) {
	s, r := p.s, p.r
	p.do(func() {
		it := &item{Type: callKind, CallID: c.ID, Name: c.Tool, Arguments: new(""), then: c.then}
		if it.CallID == "" {
			it.CallID = s.ids.next("call")
		}
		s.openItem(r, it)
	})
	for _, delta := range pieces(c.Arguments, callPieces) {
		p.do(func() {
			*r.open.Arguments += delta
			s.emit("response.function_call_arguments.delta", r.at(fields{"delta": delta}))
		})
		p.at += callPace
	}
	p.do(func() {
		if c.Twice {
			r.open.Status = "completed"
			s.itemDone(r)
		}
		s.closeItem(r, "completed")
	})
}

// pieces cuts text into at most n parts at rune boundaries.
func pieces(text string, n int) []string {
	size := max(1, (len(text)+n-1)/n)
	var parts []string
	for len(text) > 0 {
		end := min(size, len(text))
		for end < len(text) && !utf8.RuneStart(text[end]) {
			end++
		}
		parts = append(parts, text[:end])
		text = text[end:]
	}
	return parts
}
