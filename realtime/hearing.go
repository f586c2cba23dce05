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
	// signBefore and signAfter bound when a client must have shown that it is there for what it was given last
	// to count as heard: the network may have lost it long before anybody tells. One that comes back later has
	// missed the sound, or hears it so late that nobody knows when.
	signBefore = time.Second
	signAfter  = 3 * time.Second
	// signEvery is how often a sign is looked for while one is missing.
	signEvery = 250 * time.Millisecond
	// typedInto is for how long what is typed counts as typed into a voice that is over: a page stops the sound as it
	// sends the words.
	typedInto = time.Second
	// maxUnsure bounds what waits for a sign. When full the oldest counts as not heard: the router says it
	// again, or keeps it for the next call.
	maxUnsure = 64
	// maxWords bounds the words of a response that are remembered, in bytes: some minutes of speech.
	maxWords = 16 << 10
	// maxSaid is how many responses are remembered in words: those that are still being heard. The oldest
	// goes first; then the router is not told what was said, which it can do without.
	maxSaid = 8
)

// hearing is what the caller hears of the model, and what the model hears of the caller.
type hearing struct {
	*core
	legs     *legs
	saying   *saying
	attached *attached // Set once, before begin: the provider carries the caller's leg; nil: we do

	// Set once, before begin: whether words only show that somebody listens; nil: none do
	backchannel func(words string) bool

	settings settings // as the client asked for them last
	inForce  settings // as the model said last

	// The caller speaks.
	clock    clock        // of the caller's sound
	speeches speeches     // when they began
	asked    time.Time    // the caller's newest sentence was over
	kept     recall.Sound // that the model may lose, where another session can take its place
	speech   string       // the item that the caller speaks; "" for none
	yielding yielding     // what they say into the voice

	// The model speaks.
	playback playback
	rate     int             // bytes in a millisecond of its sound
	sounding bool            // as the floor was told
	sounded  time.Time       // when that changed last
	voiced   bool            // the running response reached the caller
	wrote    bool            // it did so in writing
	unsaid   string          // the response that ends now and of whose utterances the model chose to say nothing
	muted    map[string]bool // responses that we cancelled: nothing of them is to be heard
	lost     map[string]bool // responses that began for a client that vanished: the caller gets nothing of them
	said     []saidWords     // what the last responses said, oldest first
	unsure   []unsure        // given to a client that gave no sign, oldest first
}

// saidWords is what a response said, as the model wrote it down.
type saidWords struct {
	response, text string
	whole          bool // the model made the response to its end
}

// unsure is what was given to a client that gave no sign.
type unsure struct {
	handoff.Said
	until time.Time // a sign that comes later does not count
}

// soundOfClient passes the caller's sound on, and follows its clock.
func (h *hearing) soundOfClient(event []byte) {
	h.clock.add(time.Now(), events.SoundBytes(event, events.KeyAppend), h.settings.inRate)
	if h.settings.manual && h.speeches.appended.IsZero() {
		h.speeches.appended = h.clock.at
	}
	if h.legs.heirs {
		most := h.settings.padding + detectLag // a sentence is told of some time after it began
		if h.settings.manual || h.saying.floor.Speaking() {
			most = recall.MaxSound
		}
		h.kept.Add(h.clock.at, recalled.clone(event), most, recalled.put)
	}
	h.legs.toModel(event)
}

// soundOfModel passes sound on to the caller, and follows it.
func (h *hearing) soundOfModel(event []byte) {
	now := time.Now()
	if h.legs.model.stirred = now; h.legs.away() {
		return
	}
	response := events.PeekField(event, "response_id")
	if len(h.muted) > 0 && h.muted[string(response)] {
		return
	}
	size := events.SoundBytes(event, events.KeyDelta)
	heard, first := h.playback.add(now, response, events.PeekField(event, "item_id"), size, h.rate)
	id := ""
	if heard && (first || !h.voiced && string(response) == h.saying.mask.Current()) {
		id = string(response)
	}
	h.legs.toClient(event) // from here on it is the leg's
	if !heard {
		return
	}
	if first {
		h.saying.tell(floor.Sounded{Response: id})
	}
	h.overhear(now, nil)
	if !h.voiced && id != "" {
		h.voice(id, false)
	}
}

// overhear tells the floor what became of responses that sounded, and whether the model can be heard now.
func (h *hearing) overhear(now time.Time, ended []floor.Played) {
	for _, p := range ended {
		h.saying.tell(p)
		h.playback.forget(p.Response)
	}
	h.alarms[alarmPlayback].at = h.playback.next(now)
	if on := h.playback.on(now); on != h.sounding {
		h.sounding, h.sounded = on, now
		h.saying.tell(floor.Sounding{On: on})
	}
}

// performed takes what a leg reports of the sound that it played.
func (h *hearing) performed(event []byte) {
	now, r := time.Now(), gjson.ParseBytes(event)
	ended := h.playback.hear(now, r.Get("response_id").String(), r.Get("audio_ms").Int(), r.Get("cut").Bool())
	h.overhear(now, ended)
}

// hush ends what the client stopped playing: one item, the response that runs, or all.
func (h *hearing) hush(kind string, event []byte) {
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
	ended := h.playback.drain(now) // what was heard to its end is not cut
	h.overhear(now, append(ended, h.playback.cut(now, which)...))
}

// callerSpeaks notes that the caller began to speak, which silences the model unless the client set its
// session otherwise.
func (h *hearing) callerSpeaks(event []byte) {
	began := h.clock.began(time.Now(), gjson.GetBytes(event, "audio_start_ms"), h.settings.padding)
	if h.attached != nil {
		began = began.Add(-detectLag)
	}
	h.speech = gjson.GetBytes(event, "item_id").String()
	h.speeches.start(began, h.speech)
	h.report(handoff.Spoke{At: began})
	h.saying.tell(floor.Speech{On: true}) // first: silence alone would let us speak
	if !h.spokenInto(time.Now()) && !h.settings.patient {
		h.cut(func(string, *playing) bool { return true })
	}
}

// worded reports what the caller said, also where it was no word: then no more is to come of it.
func (h *hearing) worded(text, item string) {
	h.understood(item, text == "" || h.backchannel != nil && h.backchannel(text))
	h.report(handoff.Heard{Text: text, Began: h.speeches.worded(item)})
}

// notWorded reports that nobody will know the words of what the caller said. It counts as no backchannel: it may have
// been a "stop".
func (h *hearing) notWorded(item string) {
	h.understood(item, false)
	h.report(handoff.Heard{Lost: true, Began: h.speeches.worded(item)})
}

// mark keeps a commit or a clear of the client among the sound.
func (h *hearing) mark(event []byte) {
	if h.legs.heirs {
		h.kept.Mark(time.Now(), event)
	}
}

// forsake ends what the caller said into a session that is gone: no words come of it any more, and no yes waits for
// them. What the session had made nothing of another one hears again; what it had taken is lost, and may have been a
// "don't".
func (h *hearing) forsake() {
	for _, x := range h.yielding.said { // it may have been a "stop"
		h.interrupt(time.Now(), x)
	}
	h.goesOn()
	again, lost := h.speeches.forsake(h.speech)
	for i, began := range slices.Concat(lost, again) {
		if time.Since(began) < longSpeech { // or else its words never come
			h.report(handoff.Heard{Began: began, Lost: i < len(lost)})
		}
	}
	if h.speech != "" {
		h.legs.toClient(events.Encode(events.Object{"type": events.TypeSpeechStopped, "event_id": h.ids.Next(),
			"item_id": h.speech, "audio_end_ms": h.clock.heard.Milliseconds()}))
		h.speech = ""
	}
}

// soundAgain gives a new session the sound that the one before made nothing of. Its clock begins with that.
func (h *hearing) soundAgain() {
	h.clock = clock{again: h.kept.Since()}
	all, at := h.kept.Events()
	for i, event := range all {
		if events.PeekType(event) == events.TypeAppend {
			h.clock.add(at[i], events.SoundBytes(event, events.KeyAppend), h.settings.inRate)
		}
		h.legs.toModel(event)
	}
}

// committed notes that the client, which detects turns itself, ended one.
func (h *hearing) committed() {
	if began := h.speeches.appended; h.settings.manual && !began.IsZero() {
		h.speeches.end()
		h.asked = time.Now()
		h.report(handoff.Spoke{At: began})
	}
}

// typed reports what the caller wrote instead of saying it.
func (h *hearing) typed(it events.Item) {
	if it.Kind == events.ItemMessage && it.Role == "user" && it.Text != "" {
		h.asked = time.Now()
		// Every socket of a call that the provider carries can write into it.
		loose := h.attached != nil && h.attached.item(it.ID) == nil
		into := h.sounding || h.asked.Sub(h.sounded) < typedInto
		h.report(handoff.Heard{Text: it.Text, Typed: true, Into: into, Began: h.asked, Loose: loose})
	}
}

// began follows the beginning of a response, which may be aside of the conversation.
func (h *hearing) began(r gjson.Result, aside bool) {
	id := r.Get("id").String()
	h.playback.begin(id, aside)
	h.alarms[alarmPlayback].at = h.playback.next(time.Now()) // the end of one before it is waited for from now on
	if aside {
		return
	}
	for _, x := range h.yielding.said {
		if x.stopped && x.answer == "" {
			x.answer = id
		}
	}
	if h.voiced, h.wrote = false, false; h.legs.away() {
		h.lose(id)
	}
	h.rate = h.settings.rate // a format is one response's
	if format := r.Get("audio.output.format"); format.IsObject() {
		h.rate = audioRate(format)
	}
}

// voice notes that a response, if it is the running one, reached the caller; written: they can read it.
func (h *hearing) voice(id string, written bool) {
	if h.voiced && (h.wrote || !written) || h.lost[id] || id != h.saying.mask.Current() {
		return
	}
	h.wrote = h.wrote || written
	if !h.voiced {
		h.voiced = true
		h.saying.tell(floor.Spoke{Response: id})
	}
}

// mute lets nothing more of a response be heard.
func (h *hearing) mute(response string) { h.muted[response] = true }

// lose notes that the caller gets nothing (more) of a response, also if they are back before its end.
func (h *hearing) lose(response string) { h.lost[response], h.muted[response] = true, true }

// given notes that a response gave the client an utterance, and reports it once the client shows that it is there.
// vague: only maybe this one, of several.
func (h *hearing) given(s handoff.Said, response string, vague bool) {
	for _, w := range h.said {
		if w.response == response {
			s.Text, s.Made = w.text, s.Cut && w.whole
		}
	}
	if s.Cut {
		s.Share = h.playback.share(response, len(s.Text))
	}
	s.Unsaid = response != "" && response == h.unsaid
	h.saying.got(s)
	if !vague && !s.Unsaid {
		s.At = h.playback.at(time.Now(), response)
	}
	if h.legs.witness == nil || s.At.IsZero() || h.there(s) {
		h.report(s)
		return
	}
	if len(h.unsure) == 0 {
		h.legs.witness.Probe()
		h.alarms[alarmSign].at = time.Now().Add(signEvery)
	}
	if len(h.unsure) >= maxUnsure {
		h.doubt(1)
	}
	until := s.At
	if now := time.Now(); now.After(until) { // nobody asked for a sign before: its response has only ended now
		until = now
	}
	h.unsure = append(h.unsure, unsure{s, until.Add(signAfter)})
}

// there reports whether the client was there when something was given.
func (h *hearing) there(s handoff.Said) bool {
	return !h.legs.witness.Seen().Before(s.At.Add(-signBefore))
}

// signs looks whether the client has shown itself since, and gives up what it cannot have heard.
func (h *hearing) signs(now time.Time) {
	for len(h.unsure) > 0 {
		s := h.unsure[0]
		switch {
		case h.there(s.Said) && !h.legs.witness.Seen().After(s.until): // also where we look later than that
			h.unsure = h.unsure[1:]
			h.report(s.Said)
		case now.After(s.until):
			h.doubt(1)
		default:
			h.alarms[alarmSign].at = now.Add(signEvery)
			return
		}
	}
	h.alarms[alarmSign].at = time.Time{}
}

// doubt gives up the oldest n that wait for a sign.
func (h *hearing) doubt(n int) {
	h.unsure = h.unsure[n:]
	h.counts.unsure += n
	h.log().Warn("client gave no sign that it heard", zap.Int("utterances", n))
}

// keepWords remembers what a response said: the router compares it with what was to be asked.
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
	h.said = append(h.said, saidWords{response.Get("id").String(), text, whole})
	if n := len(h.said) - maxSaid; n > 0 {
		h.said = slices.Delete(h.said, 0, n)
	}
}
