package rtc

import (
	"cmp"
	"encoding/base64"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"switchboard/handoff"
	"switchboard/realtime/events"
)

// Sound of a WebRTC leg takes 8 bytes a millisecond, see [line].
const (
	bytesPerMS = 8
	frameBytes = 20 * bytesPerMS
	silentByte = 0xff // the zero of µ-law
	// tailFrames is how many frames of silence follow speech, three seconds: without them a browser would stretch the
	// last sound, and its jitter buffer would have to adapt anew at the next word.
	tailFrames = 150
	// leadBytes is how much sound must be there before a response begins, or goes on after a gap: 100 ms. Models send
	// more than that at once, and faster than it plays; with a model that does not, there is one gap instead of many.
	leadBytes = 100 * bytesPerMS
	// maxPlayback bounds the sound that waits to be played, in bytes: ten minutes. When it is full the newest sound is
	// dropped and counted; the transcript still comes whole.
	maxPlayback = 10 * 60 * 1000 * bytesPerMS
	// maxResponses bounds the responses that are being made, and those that are to be played; maxClips bounds the items
	// of each. A response beyond the first bound cannot be cut off, the sound of one beyond the second is dropped and
	// counted, and the sound of an item beyond the third counts as part of the item before.
	maxResponses = 256
	maxClips     = 256
)

// A player decides what a WebRTC client hears, and what the client and the model are told of that. The client gets the
// events of the provider's own WebRTC: output_audio_buffer.started, stopped and cleared. The player is pure: run asks
// it for a frame when one is due.
type player struct {
	ids       *events.Names        // ids of our events
	cuts      *events.Names        // ids of our truncations
	queue     []*sound             // still to be played, oldest first
	queued    int                  // bytes in queue
	playing   string               // the response of the last frame; "": silence
	live      map[string]bool      // responses that the model is making
	muted     map[string]bool      // responses that were cut while being made: the rest is dropped
	responses map[string]*response // until they are made, and reported to the call
	newest    string               // the response that sounded last
	tails     int                  // Set once: frames of silence that follow speech
	tail      int                  // frames of silence still to send
	patient   bool                 // the caller's speech does not interrupt; the call sends handoff.cut instead
	formats   formats              // of the model's sound
	dropped   int                  // bytes dropped as the queue was full
	frame     [frameBytes]byte
}

// A sound is the queued sound of one response.
type sound struct {
	response string
	clips    []clip // one for each item, oldest first; at least one
	started  bool   // its first frame was sent
	flowing  bool   // there was enough sound for the last frame that was due
	ended    bool   // nothing more comes
}

// A clip is the sound of one item.
type clip struct {
	item    string
	content int64
	audio   []byte // not played yet
	heard   int    // bytes played
}

func newPlayer(l line) player {
	all := events.NewNames()
	// Truncations have ids of their own: if the item is gone, the model refuses one, and that error is dropped.
	ids, cuts := all.Of(events.LegKind), all.Of(events.LegKind+"cut_")
	return player{formats: formats{line: l}, ids: ids, cuts: cuts, tails: tailFrames, live: map[string]bool{},
		muted: map[string]bool{}, responses: map[string]*response{}}
}

// A response is how much of one the caller has heard, and whether that was reported to the call.
type response struct {
	sounds   bool   // some sound of it came
	heard    int    // bytes played
	reported bool   // to the call
	oddByte  []byte // the first byte of a sample whose second byte has not come
}

// effects are what follows from an event.
type effects struct {
	up   [][]byte       // to the call
	down [][]byte       // to the client
	end  *handoff.Error // if the call cannot go on
}

func (t *effects) add(o effects) {
	t.up = append(t.up, o.up...)
	t.down = append(t.down, o.down...)
	t.end = cmp.Or(t.end, o.end)
}

// idle reports whether no frame is due before the next event.
func (p *player) idle() bool { return len(p.queue) == 0 && p.tail == 0 }

// fromModel handles an event from the call and returns what follows: the event itself for the client, unless it is
// sound or for the leg alone, and other events.
func (p *player) fromModel(event []byte) effects {
	pass := effects{down: [][]byte{event}}
	switch events.PeekType(event) {
	case events.TypeAudioDelta:
		p.enqueue(event)
		return effects{}
	case events.TypeMade:
		p.learn(gjson.GetBytes(event, "session"))
		p.formats.begin(gjson.GetBytes(event, "session"))
		return effects{}
	case events.TypeChanged: // our own update was the first: the client's wait until it is answered
		session := gjson.GetBytes(event, "session")
		p.learn(session)
		return p.formatted(p.formats.update(session))
	case events.TypeCreated:
		// An out-of-band response has no conversation; speech does not cancel it.
		if r := gjson.GetBytes(event, "response"); r.Get("conversation_id").Raw != "null" {
			for id := range p.live { // their ends were not reported
				pass.add(p.soundComplete(id))
			}
			if id := r.Get("id").String(); len(id) <= events.MaxID && len(p.live) < maxResponses {
				p.live[id] = true
			}
		}
	case events.TypeDone:
		pass.add(p.finish(gjson.GetBytes(event, "response.id").String()))
	case events.TypeSpeechStarted:
		if !p.patient {
			pass.add(p.cut(all))
		}
	case events.TypeCut:
		which := map[string]bool{}
		for _, id := range gjson.GetBytes(event, "response_ids").Array() {
			which[id.String()] = true
		}
		return p.cut(func(response string) bool { return which[response] })
	case events.TypeOutputClear: // from a socket beside the client
		return p.clear()
	case events.TypeError:
		if p.formats.isRefusal(gjson.GetBytes(event, "error")) {
			return p.formatted(p.formats.refuse())
		}
		if p.cuts.Own(gjson.GetBytes(event, "error.event_id").String()) {
			return effects{}
		}
	}
	return pass
}

// learn reads from a session whether the caller's speech interrupts.
func (p *player) learn(session gjson.Result) {
	if d := session.Get("audio.input.turn_detection"); d.Exists() {
		interrupt := d.Get("interrupt_response")
		p.patient = interrupt.Exists() && !interrupt.Bool()
	}
}

// enqueue adds an audio delta to the queue.
func (p *player) enqueue(event []byte) {
	fields := gjson.GetManyBytes(event, "response_id", "item_id", "content_index", "delta")
	response, item := fields[0].String(), fields[1].String()
	full := p.responses[response] == nil && len(p.responses) >= maxResponses
	if full || len(response) > events.MaxID || len(item) > events.MaxID {
		p.dropped += len(fields[3].String())
		return
	}
	r := p.response(response)
	r.sounds = true
	audio, err := base64.StdEncoding.DecodeString(fields[3].String())
	if err != nil || p.muted[response] {
		return
	}
	if audio, r.oddByte = p.formats.forClient(r.oddByte, audio); len(audio) == 0 {
		return
	}
	if room := maxPlayback - p.queued; len(audio) > room {
		p.dropped += len(audio) - room
		audio = audio[:room]
	}
	p.queued += len(audio)
	s := p.sound(response)
	last := len(s.clips) - 1
	if last < 0 || last+1 < maxClips && (s.clips[last].item != item || s.clips[last].content != fields[2].Int()) {
		s.clips = append(s.clips, clip{item: strings.Clone(item), content: fields[2].Int()})
		last++
	}
	s.clips[last].audio = append(s.clips[last].audio, audio...)
}

// sound returns the queued sound of a response, or begins one. A response is played to its end before the next one.
func (p *player) sound(response string) *sound {
	for _, s := range slices.Backward(p.queue) {
		if s.response == response {
			return s
		}
	}
	for _, s := range p.queue {
		s.ended = true
	}
	s := &sound{response: response}
	p.queue = append(p.queue, s)
	return s
}

func (p *player) response(id string) *response {
	r := p.responses[id]
	if r == nil {
		r = &response{}
		p.responses[id] = r
	}
	return r
}

// finish notes that the model has made all of a response.
func (p *player) finish(response string) effects {
	t := p.soundComplete(response)
	delete(p.live, response)
	delete(p.muted, response)
	if s := p.responses[response]; s != nil && (s.reported || !s.sounds) {
		delete(p.responses, response)
	}
	return t
}

// soundComplete notes that no more sound of a response comes.
func (p *player) soundComplete(response string) effects {
	waits := false
	for _, s := range p.queue {
		if s.response == response {
			s.ended, waits = true, true
		}
	}
	if s := p.responses[response]; waits || s == nil || !s.sounds {
		return effects{}
	}
	return p.report(response, false)
}

// report reports to the call, once, how much of a response was heard.
func (p *player) report(response string, cut bool) (t effects) {
	s := p.response(response)
	if s.reported {
		return t
	}
	s.reported = true
	t.up = append(t.up, playedEvent(response, (s.heard+bytesPerMS-1)/bytesPerMS, cut))
	return t
}

// next returns the frame that is due, valid until the next call, or nil if there is none now.
func (p *player) next() (frame []byte, follows effects) {
	for len(p.queue) > 0 {
		s := p.queue[0]
		if n := s.take(p.frame[:]); n > 0 {
			p.queued -= n
			p.playing = s.response
			p.response(s.response).heard += n
			if !s.started {
				s.started, p.newest = true, s.response
				follows.down = append(follows.down, p.bufferEvent(events.TypeOutputStarted, s.response))
			}
			p.formats.silence(p.frame[n:])
			return p.frame[:], follows
		}
		if !s.ended {
			return nil, follows // the model is slower than the sound
		}
		p.queue = slices.Delete(p.queue, 0, 1)
		follows.add(p.report(s.response, false))
		if !p.live[s.response] { // its end was reported, or never will be
			delete(p.responses, s.response)
		}
		if s.started {
			p.tail = p.tails
			follows.down = append(follows.down, p.bufferEvent(events.TypeOutputStopped, s.response))
		}
	}
	if p.playing = ""; p.tail > 0 {
		p.tail--
		p.formats.silence(p.frame[:])
		return p.frame[:], follows
	}
	return nil, follows
}

// left returns how many bytes are not played yet.
func (s *sound) left() (n int) {
	for _, c := range s.clips {
		n += len(c.audio)
	}
	return n
}

// take puts sound into a frame and returns the number of bytes. Only the last frame of a sound may be filled in part;
// before that, a part of a frame waits for the rest.
func (s *sound) take(frame []byte) (n int) {
	need := len(frame)
	switch {
	case s.ended:
		need = 1
	case !s.flowing:
		need = leadBytes
	}
	if s.flowing = s.left() >= need; !s.flowing {
		return 0
	}
	for {
		c := &s.clips[0]
		k := copy(frame[n:], c.audio)
		c.audio, c.heard, n = c.audio[k:], c.heard+k, n+k
		if n == len(frame) || len(s.clips) == 1 {
			break
		}
		s.clips = slices.Delete(s.clips, 0, 1) // heard to its end
	}
	return n
}

// clear handles an output_audio_buffer.clear of a client. It is always confirmed.
func (p *player) clear() effects {
	t := p.cut(all)
	if len(t.down) == 0 {
		t.down = append(t.down, p.bufferEvent(events.TypeOutputCleared, p.newest))
	}
	return t
}

// all picks every response for cut.
func all(string) bool { return true }

// cut drops the queued sound of the responses that which picks. It returns events that tell the model how much of each
// item was heard, and the client that the sound has stopped, if the client was told that it had begun.
func (p *player) cut(which func(response string) bool) (t effects) {
	var reports effects
	for response := range p.live {
		if which(response) {
			p.muted[response] = true
			reports.add(p.report(response, true))
		}
	}
	var kept []*sound
	for _, s := range p.queue {
		if !which(s.response) {
			kept = append(kept, s)
			continue
		}
		p.queued -= s.left()
		reports.add(p.report(s.response, s.left() > 0 || !s.ended))
		if s.ended && !p.live[s.response] {
			delete(p.responses, s.response)
		}
		if !s.ended {
			p.muted[s.response] = true
		}
		for i, c := range s.clips {
			// A clip without sound left may still be longer at the model, if it is the last one.
			if len(c.audio) > 0 || (i == len(s.clips)-1 && !s.ended) {
				t.up = append(t.up, events.Truncate(p.cuts.Next(), c.item, c.content, c.heard/bytesPerMS))
			}
		}
		if s.started {
			p.tail = p.tails
			t.down = append(t.down, p.bufferEvent(events.TypeOutputCleared, s.response))
		}
	}
	p.queue = kept
	t.add(reports)
	return t
}

// bufferEvent returns an event about the client's output audio buffer.
func (p *player) bufferEvent(kind, response string) []byte {
	return events.Encode(events.Object{"type": kind, "event_id": p.ids.Next(), "response_id": response})
}
