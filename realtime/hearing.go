package realtime

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"
	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/realtime/events"
	"switchboard/realtime/floor"
	"switchboard/realtime/recall"
)

const (
	// An utterance counts as heard only if the client showed a sign of life from signBefore before its end to signAfter
	// after it: the network may be lost long before a socket reports it. A client that shows itself later has missed
	// the sound, or hears it so late that nobody knows when.
	signBefore = time.Second
	signAfter  = 3 * time.Second
	// signEvery is how often the call looks for a sign while one is missing.
	signEvery = 250 * time.Millisecond
	// typedInto is for how long after the end of the voice typed words count as typed into the voice: a page stops the
	// sound as it sends the words.
	typedInto = time.Second
	// maxUnsure bounds the utterances that wait for a sign. When there are more, the oldest counts as not heard: the
	// router says it again, or keeps it for the next call.
	maxUnsure = 64
	// maxWords bounds the remembered words of a response, in bytes: some minutes of speech.
	maxWords = 16 << 10
	// maxSaid bounds the responses whose words are remembered, which are needed until their sound is over. The oldest
	// is dropped first; then the router does not learn its words, which it can do without.
	maxSaid = 8
)

// hearing is what the caller hears of the model, and what the model hears of the caller.
type hearing struct {
	*core
	legs     *legs
	saying   *saying
	attached *attached // Set once, before begin; nil: we carry the caller's leg, not the provider

	// Set once, before begin: reports whether words only show that somebody listens; nil: no words do
	backchannel func(words string) bool
	// Set once, before begin: reports whether words repeat what the voice said; nil: no words do
	echo func(words, said string) bool

	settings settings // as the client asked for last
	inForce  settings // as the model confirmed last

	// The caller speaks.
	clock        clock        // of the caller's sound
	appended     time.Time    // the first sound since the client's last commit; zero while it detects no turns
	keptSound    recall.Sound // the caller's newest sound, for the next session
	speakingItem string       // the item that the caller is speaking; "": none
	yielding     yielding     // what the caller says into the voice

	// The model speaks.
	playback        playback
	rate            int             // bytes in a millisecond of the running response's sound
	sounding        bool            // the model can be heard, as last told to the floor
	soundingChanged time.Time       // when sounding changed last
	voiced          bool            // the running response reached the caller
	wrote           bool            // the running response reached the caller as text
	unsaid          string          // the response that ends now, if the model chose to say nothing in it
	muted           map[string]bool // responses that we cancelled: their sound is dropped
	undelivered     map[string]bool // responses that the caller cannot hear, as the client has vanished
	responseWords   []saidWords     // the words of the last responses, oldest first
	unsure          []unsure        // utterances that wait for a sign of the client, oldest first
}

// saidWords are the words of a response, as its transcript or text has them.
type saidWords struct {
	response, text string
	whole          bool // the model completed the response
}

// unsure is an utterance that was given to a client which has shown no sign of hearing it.
type unsure struct {
	handoff.Said
	until time.Time // a sign that comes later does not count
}

// soundOfClient passes the caller's sound on, and counts it on the caller's clock.
func (h *hearing) soundOfClient(event []byte) {
	sound := events.Sound(event, events.KeyAppend)
	h.clock.add(time.Now(), events.SoundBytes(sound), h.settings.inRate)
	if h.settings.manual && h.appended.IsZero() {
		h.appended = h.clock.at
	}
	if h.legs.canRenew {
		most := max(h.settings.padding, detectLag+100*time.Millisecond) // a sentence, when its report comes, and a little
		if h.settings.manual || h.saying.floor.Speaking() {
			most = recall.MaxSound
		}
		h.keptSound.Add(h.clock.at, sound, most)
	}
	h.legs.toModel(event)
}

// soundOfModel passes the model's sound on to the caller, and notes it in the playback.
func (h *hearing) soundOfModel(event []byte) {
	now := time.Now()
	if h.legs.model.stirred = now; h.legs.away() {
		return
	}
	response := events.PeekField(event, "response_id")
	if len(h.muted) > 0 && h.muted[string(response)] {
		return
	}
	size := events.SoundBytes(events.Sound(event, events.KeyDelta))
	heard, first := h.playback.add(now, response, events.PeekField(event, "item_id"), size, h.rate)
	id := ""
	if heard && (first || !h.voiced && string(response) == h.saying.filter.Current()) {
		id = string(response)
	}
	h.legs.toClient(event) // the leg owns event from here on
	if !heard {
		return
	}
	if first {
		h.saying.tell(floor.Sounded{Response: id})
	}
	h.reportPlayback(now, nil)
	if !h.voiced && id != "" {
		h.noteReached(id, false)
	}
}

// reportPlayback tells the floor how far responses were heard whose sound has ended, and whether the model can be heard
// now.
func (h *hearing) reportPlayback(now time.Time, ended []floor.Played) {
	for _, p := range ended {
		h.saying.tell(p)
		h.playback.forget(p.Response)
	}
	h.alarms[alarmPlayback].at = h.playback.next(now)
	if on := h.playback.soundsAt(now); on != h.sounding {
		h.sounding, h.soundingChanged = on, now
		h.saying.tell(floor.Sounding{On: on})
	}
}

// performed handles the report of a [performer] of the sound that it played.
func (h *hearing) performed(event []byte) {
	now, r := time.Now(), gjson.ParseBytes(event)
	ended := h.playback.report(now, r.Get("response_id").String(), r.Get("audio_ms").Int(), r.Get("cut").Bool())
	h.reportPlayback(now, ended)
}

// stoppedByClient ends the sound that the client stopped with this event: of one item, of the running response, or all.
func (h *hearing) stoppedByClient(kind string, event []byte) {
	item, response := gjson.GetBytes(event, "item_id").String(), gjson.GetBytes(event, "response_id").String()
	h.cut(func(id string, v *playing) bool {
		switch {
		case kind == events.TypeItemTruncate:
			return slices.Contains(v.items, item)
		case response != "":
			return id == response
		}
		return kind == events.TypeOutputClear || !v.aside
	})
}

func (h *hearing) cut(which func(string, *playing) bool) {
	now := time.Now()
	ended := h.playback.drain(now) // first, as what was heard to its end is not cut
	h.reportPlayback(now, append(ended, h.playback.cut(now, which)...))
}

// callerSpeaks notes that the caller began to speak. This silences the model, unless the session says otherwise.
func (h *hearing) callerSpeaks(event []byte) {
	began := h.clock.began(time.Now(), gjson.GetBytes(event, "audio_start_ms"), h.settings.padding)
	if h.attached != nil {
		began = began.Add(-detectLag)
	}
	h.speakingItem = gjson.GetBytes(event, "item_id").String()
	h.saying.asking.spoken.start(h.speakingItem, began)
	h.report(handoff.Spoke{At: began})
	h.saying.tell(floor.Speech{On: true}) // before the cut: after it, the floor would see silence and let us speak
	if !h.spokenInto(time.Now()) && !h.settings.patient {
		h.cut(func(string, *playing) bool { return true })
	}
}

// transcribed reports the transcript of what the caller said. An empty one is reported, too: it says that no words will
// come.
func (h *hearing) transcribed(text, item string) {
	// It is reported before the function calls that waited for it.
	s := h.saying.asking.spoken.of(item)
	h.report(handoff.Heard{Text: text, Began: s.began})
	h.understand(s, text)
	h.understood(item, text == "" || h.backchannel != nil && h.backchannel(text))
}

// notTranscribed reports that what the caller said gets no transcript. It does not count as a backchannel: it may have
// been a "stop".
func (h *hearing) notTranscribed(item string) {
	s := h.saying.asking.spoken.of(item)
	h.report(handoff.Heard{Lost: true, Began: s.began})
	h.saying.heard(s, wordsSaid)
	h.understood(item, false)
}

// keepMark keeps a commit or clear of the client in its place among the kept sound.
func (h *hearing) keepMark(event []byte) {
	if h.legs.canRenew {
		h.keptSound.Mark(time.Now(), event)
	}
}

// dropSpeech ends what the caller said into a session that is gone: no transcript will come, and no approval may wait
// for one. Speech that had not become an item is heard again by the next session. Speech that was an item is reported
// as lost: it may have been a "don't".
func (h *hearing) dropSpeech() {
	for _, x := range h.yielding.interjections { // any may have been a "stop"
		h.interrupt(time.Now(), x)
	}
	h.clearInterjections()
	again, lost := h.saying.asking.spoken.drop(h.speakingItem, h.settings.manual)
	h.saying.release(time.Now(), false)
	for i, began := range slices.Concat(lost, again) {
		if time.Since(began) < longSpeech { // an older one gets no transcript any more
			h.report(handoff.Heard{Began: began, Lost: i < len(lost)})
		}
	}
	if h.speakingItem != "" {
		h.legs.toClient(events.Encode(events.Object{"type": events.TypeSpeechStopped, "event_id": h.ids.Next(),
			"item_id": h.speakingItem, "audio_end_ms": h.clock.heard.Milliseconds()}))
		h.speakingItem = ""
	}
}

// soundAgain gives a new session the sound that had not become an item in the one before. The session counts its
// milliseconds from there.
func (h *hearing) soundAgain() {
	newest := h.clock.at
	if h.clock = (clock{resentSince: h.keptSound.Since()}); h.keptSound.Bytes() > 0 {
		h.clock.add(newest, h.keptSound.Bytes(), h.settings.inRate)
	}
	for _, event := range h.keptSound.Events() {
		h.legs.toModel(event)
	}
}

// committed notes a commit of the client: it ends a turn of the caller if the client detects turns itself.
func (h *hearing) committed() {
	if began := h.appended; h.settings.manual && !began.IsZero() {
		h.appended = time.Time{}
		h.saying.asking.spoken.start("", began)
		h.sentenceOver("")
		h.report(handoff.Spoke{At: began})
	}
}

// typed reports what the caller wrote instead of saying it.
func (h *hearing) typed(it events.Item) {
	if !it.OfCaller() {
		return
	}
	now := time.Now()
	h.saying.asking.wrote(now)
	if it.Text != "" {
		// In a call that the provider carries, any program with a socket on it can write items.
		loose := h.attached != nil && h.attached.item(it.ID) == nil
		into := h.sounding || now.Sub(h.soundingChanged) < typedInto
		h.report(handoff.Heard{Text: it.Text, Typed: true, Into: into, Began: now, Loose: loose})
	}
}

// began notes the beginning of a response. aside: it is not part of the conversation.
func (h *hearing) began(r gjson.Result, aside bool) {
	id := r.Get("id").String()
	h.playback.begin(id, aside)
	h.alarms[alarmPlayback].at = h.playback.next(time.Now()) // the response before it is complete now
	if aside {
		return
	}
	for _, x := range h.yielding.interjections {
		if x.stopped && x.answer == "" {
			x.answer = id
		}
	}
	if h.voiced, h.wrote = false, false; h.legs.away() {
		h.lose(id)
	}
	h.rate = h.settings.rate // a response may have a format of its own
	if format := r.Get("audio.output.format"); format.IsObject() {
		h.rate = audioRate(format)
	}
}

// noteReached notes that a response, if it is the running one, reached the caller; written: as text.
func (h *hearing) noteReached(id string, written bool) {
	if h.voiced && (h.wrote || !written) || h.undelivered[id] || id != h.saying.filter.Current() {
		return
	}
	h.wrote = h.wrote || written
	if !h.voiced {
		h.voiced = true
		h.saying.tell(floor.Spoke{Response: id})
	}
}

// mute drops the rest of a response's sound.
func (h *hearing) mute(response string) { h.muted[response] = true }

// lose notes that the caller hears no more of a response, even if they are back before its end.
func (h *hearing) lose(response string) { h.undelivered[response], h.muted[response] = true, true }

// noteGiven notes that a response gave the client an utterance, and reports it once the client shows that it is there.
// vague: the response was cut, and may have told other utterances but not this one.
func (h *hearing) noteGiven(s handoff.Said, response string, vague bool) {
	for _, w := range h.responseWords {
		if w.response == response {
			s.Text, s.Made = w.text, s.Cut && w.whole
		}
	}
	if s.Cut {
		s.Share = h.playback.share(response, len(s.Text))
	}
	s.Unsaid = response != "" && response == h.unsaid
	h.saying.noteOutcome(s)
	if !vague && !s.Unsaid {
		s.At = h.playback.endOf(time.Now(), response)
	}
	if h.legs.witness == nil || s.At.IsZero() || h.wasThere(s) {
		h.report(s)
		return
	}
	if len(h.unsure) == 0 {
		h.legs.witness.Probe()
		h.alarms[alarmSign].at = time.Now().Add(signEvery)
	}
	if len(h.unsure) >= maxUnsure {
		h.giveUp(1)
	}
	until := s.At
	if now := time.Now(); now.After(until) { // the response ended only now, so no sign was asked for before
		until = now
	}
	h.unsure = append(h.unsure, unsure{s, until.Add(signAfter)})
}

// wasThere reports whether the client showed a sign of life after, or just before, an utterance was given.
func (h *hearing) wasThere(s handoff.Said) bool {
	return !h.legs.witness.Seen().Before(s.At.Add(-signBefore))
}

// checkSigns reports the utterances for which the client has shown a sign since, and gives up those for which it is too
// late.
func (h *hearing) checkSigns(now time.Time) {
	for len(h.unsure) > 0 {
		s := h.unsure[0]
		switch {
		case h.wasThere(s.Said) && !h.legs.witness.Seen().After(s.until): // the sign was in time
			h.unsure = h.unsure[1:]
			h.report(s.Said)
		case now.After(s.until):
			h.giveUp(1)
		default:
			h.alarms[alarmSign].at = now.Add(signEvery)
			return
		}
	}
	h.alarms[alarmSign].at = time.Time{}
}

// giveUp drops the oldest n utterances that wait for a sign.
func (h *hearing) giveUp(n int) {
	h.unsure = h.unsure[n:]
	h.counts.unsure += n
	h.log().Warn("client gave no sign that it heard", zap.Int("utterances", n))
}

// keepWords remembers and reports the words of a response: the router compares them with the question that was to be
// asked, and with what the microphone picks up.
func (h *hearing) keepWords(response gjson.Result) {
	var said []string
	for _, item := range response.Get("output").Array() {
		for _, part := range item.Get("content").Array() {
			for _, name := range []string{"transcript", "text"} {
				if text := strings.TrimSpace(part.Get(name).String()); text != "" {
					said = append(said, text)
				}
			}
		}
	}
	if len(said) == 0 {
		return
	}
	text := strings.Join(said, " ")
	text = strings.Clone(strings.ToValidUTF8(text[:min(len(text), maxWords)], ""))
	whole := cmp.Or(response.Get("status").String(), events.StatusCompleted) == events.StatusCompleted
	h.responseWords = append(h.responseWords, saidWords{response.Get("id").String(), text, whole})
	if n := len(h.responseWords) - maxSaid; n > 0 {
		h.responseWords = slices.Delete(h.responseWords, 0, n)
	}
	h.report(handoff.Voiced{Text: text, From: h.playback.beganAt(time.Now(), response.Get("id").String())})
}
