package simulator

import (
	"encoding/base64"
	"time"
)

// minCommit is the shortest sound that can be committed.
const minCommit = 100 * time.Millisecond

// An input is the input audio buffer. The sound itself is not kept, since nothing here understands it.
type input struct {
	total    ticks  // length of all sound so far; the clock of audio_start_ms
	buffered ticks  // length of the sound since the last commit or clear
	oddByte  []byte // the first byte of a sample whose second byte has not come
	detector detector
	itemID   string    // of the speech that goes on; "": none
	injected *injected // speech of a script that goes on; or nil
	words    string    // words of a script for the next commit
}

// injected is speech from a script.
type injected struct {
	words string
	began time.Time
}

func (in *input) clear() {
	in.buffered, in.words = 0, ""
	in.forgetSpeech()
}

// forgetSpeech resets the detector; no end of its speech will be reported.
func (in *input) forgetSpeech() {
	in.detector, in.itemID, in.oddByte, in.injected = detector{}, "", nil, nil
}

func (s *session) appendAudio(frame []byte) *fault {
	in, f := decode[struct {
		Audio *string `json:"audio"`
	}](frame, "")
	if f != nil {
		return f
	}
	if in.Audio == nil {
		return missing("audio")
	}
	data, err := base64.StdEncoding.DecodeString(*in.Audio)
	if err != nil {
		return refusal("invalid_value", "audio",
			"Invalid 'audio'. Expected base64-encoded audio bytes but got an invalid value.")
	}
	f2 := s.settings.Audio.Input.Format
	samples, rest := f2.decodeSamples(append(s.input.oddByte, data...))
	s.input.oddByte = append([]byte(nil), rest...)
	for len(samples) > 0 {
		samples = samples[s.listen(samples, f2):]
	}
	return nil
}

// listen feeds the detector until it reports a change, and returns how many samples that took.
func (s *session) listen(samples []int16, f format) int {
	in, set := &s.input, s.settings.Audio.Input.TurnDetection
	n, change := len(samples), vadNothing
	if set != nil && in.injected == nil && s.manner == nil { // otherwise a script decides what is speech
		n, change = in.detector.samples(samples, f.rate(), set.vad())
	}
	in.total += f.ticks(n)
	in.buffered += f.ticks(n)
	switch change {
	case vadStarted:
		s.speechStarted(vadSpeech)
	case vadStopped:
		s.speechStopped(s.transcribe())
	}
	return n
}

// speechStarted reports that the caller has been speaking for ago, and interrupts the response if the session wants
// that.
func (s *session) speechStarted(ago time.Duration) {
	set := s.settings.Audio.Input.TurnDetection
	s.input.itemID = s.ids.next("item")
	began := max(0, s.input.total.duration()-ago-time.Duration(set.Prefix)*time.Millisecond)
	s.emit("input_audio_buffer.speech_started",
		fields{"item_id": s.input.itemID, "audio_start_ms": began.Milliseconds()})
	if r := s.active(); r != nil && set.Interrupt {
		s.cancel(r, "turn_detected")
	}
}

// transcribe returns the words of speech that has ended: the next of a script, or else none.
func (s *session) transcribe() string {
	select {
	case words := <-s.words:
		return words
	default:
		return ""
	}
}

// speechStopped commits the speech and answers it if the session wants that.
func (s *session) speechStopped(words string) {
	set := s.settings.Audio.Input.TurnDetection
	s.emit("input_audio_buffer.speech_stopped", fields{"item_id": s.input.itemID,
		"audio_end_ms": s.input.total.duration().Milliseconds()})
	s.commit(s.input.itemID, words)
	if set == nil || !set.Create {
		return
	}
	if s.active() != nil {
		// "may fail to create a response if the model is already responding" (API reference)
		s.answerDue = set.Interrupt
		return
	}
	s.respond(request{})
}

func (s *session) commitAudio() *fault {
	if s.input.buffered.duration() < minCommit {
		return refusal("input_audio_buffer_commit_empty", "",
			"Error committing input audio buffer: buffer too small. Expected at least 100ms of audio, "+
				"but buffer only has %.2fms of audio.", float64(s.input.buffered.duration().Microseconds())/1000)
	}
	words := s.input.words
	if words == "" {
		words = s.transcribe()
	}
	id := s.input.itemID
	if id == "" {
		id = s.ids.next("item")
	}
	s.commit(id, words)
	return nil
}

// commit makes the buffer an item of the caller. words are what the model understood of it; clients see them if they
// asked for transcription.
func (s *session) commit(id, words string) {
	s.input.clear()
	at := len(s.items.items)
	it := &item{ID: id, Object: "realtime.item", Type: message, Status: "completed", Role: "user", heard: words,
		Content: []part{{Type: "input_audio"}}}
	s.emit("input_audio_buffer.committed", fields{"item_id": id, "previous_item_id": s.items.before(at)})
	s.add(at, it)
	if s.settings.Audio.Input.Transcription == nil {
		return
	}
	it.Content[0].Transcript = &words
	transcribed := func() {
		if words != "" {
			s.emit("conversation.item.input_audio_transcription.delta", fields{
				"item_id": id, "content_index": 0, "delta": words,
			})
		}
		s.emit("conversation.item.input_audio_transcription.completed", fields{
			"item_id": id, "content_index": 0, "transcript": words,
			"usage": fields{
				"type": "tokens", "total_tokens": tokens(words), "input_tokens": 0, "output_tokens": tokens(words),
			},
		})
	}
	if s.manner == nil {
		transcribed()
		return
	}
	s.schedule(nil, s.now.Add(s.manner.Words()), transcribed)
}

// hear begins speech from a script.
func (s *session) hear(h Hear) {
	if h.For <= 0 {
		h.For = time.Second
	}
	if s.settings.Audio.Input.TurnDetection == nil {
		s.input.total += ticksOf(h.For)
		s.input.buffered += ticksOf(max(h.For, minCommit))
		s.input.words = h.Text
		return
	}
	s.injectedEnd(s.input.injected)
	began, onset, silence := s.now, time.Duration(0), time.Duration(0)
	if s.manner != nil { // the beginning is noticed late, and the end after the silence that the session sets
		onset, silence = s.manner.Onset(), s.settings.Audio.Input.TurnDetection.vad().silence
	}
	if h.For <= onset {
		return
	}
	s.schedule(nil, began.Add(onset), func() {
		if s.settings.Audio.Input.TurnDetection == nil {
			return
		}
		speech := &injected{words: h.Text, began: s.now}
		if s.input.injected = speech; s.input.itemID == "" {
			s.speechStarted(onset)
		}
		s.schedule(nil, began.Add(h.For+silence), func() { s.injectedEnd(speech) })
	})
}

// injectedEnd ends speech from a script, unless that was forgotten or has ended before.
func (s *session) injectedEnd(i *injected) {
	if i == nil || s.input.injected != i {
		return
	}
	s.input.injected = nil
	if s.settings.Audio.Input.TurnDetection != nil {
		if s.manner == nil { // otherwise sound comes beside the script, and is counted
			s.input.total += ticksOf(s.now.Sub(i.began))
		}
		s.speechStopped(i.words)
	}
}
