package rtc

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"switchboard/handoff"
	"switchboard/realtime/events"
)

// formatLimit is how long the model may take, from the beginning of its session, to say what it made of the formats
// that the leg asked for. Until then nothing of the client is passed on; after that, what its session was made with
// counts.
const formatLimit = 3 * time.Second

// pcmFormat is what a Realtime model speaks when nobody says otherwise.
const pcmFormat = `{"type":"audio/pcm","rate":24000}`

// A format is a form of the model's sound.
type format struct {
	raw    string // as the model names it; "" where it did not say
	factor int    // PCM16 at so many times 8 kHz; 0 for µ-law, -1 for what cannot be converted
}

// readFormat reads what a session says of one side's sound, input or output.
func readFormat(session gjson.Result, side string) format {
	if f := session.Get("audio." + side + ".format"); f.IsObject() {
		return format{f.Raw, factorOf(f.Get("type").String(), f.Get("rate"))}
	}
	switch session.Get(side + "_audio_format").String() { // older servers
	case "g711_ulaw":
		return format{pcmuFormat, 0}
	case "pcm16":
		return format{pcmFormat, 3}
	}
	return format{}
}

func factorOf(kind string, rate gjson.Result) int {
	hertz := int64(24000)
	if rate.Exists() {
		hertz = rate.Int()
	}
	switch {
	case kind == events.PCMU:
		return 0
	case kind == "audio/pcm" && hertz%8000 == 0 && hertz >= 8000 && hertz <= 48000:
		return int(hertz / 8000)
	}
	return -1
}

// formats follow what sound the model takes and gives while its client is on WebRTC. They are pure.
type formats struct {
	line      line   // Set once: how the client hears, and speaks unless opus is set
	opus      bool   // Set once: what it says comes from a [decoder]
	asked     string // event id of our update
	begun     bool   // the model has a session
	known     bool   // what the model takes is known
	in, out   format // as they are
	made      struct{ in, out format }
	fromModel *translator // of what the model says; nil where the line is the same
	toModel   *translator // of what it is to hear; nil where the line is the same
	used      bool        // the translators are made
}

// begin learns what the session was made with, which holds until our update does.
func (f *formats) begin(session gjson.Result) *handoff.Error {
	f.begun, f.made.in, f.made.out = true, readFormat(session, "input"), readFormat(session, "output")
	if !f.known {
		f.use(f.made.in, f.made.out)
	}
	return nil // it may yet be changed
}

// update learns what the model made of an update. What it does not mention is as it was asked.
func (f *formats) update(session gjson.Result) *handoff.Error {
	in, out := readFormat(session, "input"), readFormat(session, "output")
	asked := f.line.asked()
	switch {
	case f.known:
		in, out = cmp.Or(in, f.in), cmp.Or(out, f.out)
	case in.raw == "" && out.raw != "" && out.factor != asked.factor: // where it does not speak it, it does not hear it
		in = cmp.Or(f.made.in, format{pcmFormat, 3})
	}
	f.known = true
	return f.use(cmp.Or(in, asked), cmp.Or(out, asked))
}

// refuse notes that the model does not do what we asked for: it does what it did.
func (f *formats) refuse() *handoff.Error {
	f.known = true
	pcm := format{pcmFormat, 3}
	return f.use(cmp.Or(f.made.in, pcm), cmp.Or(f.made.out, pcm))
}

// assume ends the wait for an answer: one that said what it does and not that it changed that goes on.
func (f *formats) assume() *handoff.Error {
	switch {
	case f.known:
		return nil
	case f.made.in.raw != "" || f.made.out.raw != "":
		return f.refuse()
	}
	f.known = true
	return f.use(f.line.asked(), f.line.asked())
}

// use converts from now on as these formats need.
func (f *formats) use(in, out format) *handoff.Error {
	if !f.used || in.factor != f.in.factor {
		f.toModel = f.line.toModel(in)
		if f.opus {
			f.toModel = decodedToModel(in)
		}
	}
	if !f.used || out.factor != f.out.factor {
		f.fromModel = f.line.fromModel(out)
	}
	f.used, f.in, f.out = true, in, out
	for _, side := range []format{in, out} {
		if side.factor < 0 && f.known {
			kind := gjson.Get(side.raw, "type").String()
			return handoff.Fault(handoff.CodeSoundFormat, kind[:min(len(kind), maxKind)], "")
		}
	}
	return nil
}

// maxKind bounds the name of a format in an error.
const maxKind = 40

// hear turns sound of the model, behind half a sample that is left of what came before it, into that of the line, and
// returns what is left of this. What cannot be converted is nothing: it would be noise.
func (f *formats) hear(half, sound []byte) (heard, left []byte) {
	switch {
	case f.out.factor < 0:
		return nil, nil
	case f.fromModel == nil:
		return sound, nil
	case f.out.factor > 0:
		sound = append(half, sound...)
		whole := len(sound) &^ 1
		sound, left = sound[:whole], slices.Clone(sound[whole:])
	}
	return f.fromModel.turn(sound), left
}

// silence fills a piece of the client's sound with silence, which in G.722 follows on the sound before it.
func (f *formats) silence(sound []byte) {
	if t := f.fromModel; t != nil && f.line == wide {
		t.samples = append(t.samples[:0], make([]int16, 2*len(sound))...)
		copy(sound, t.encode(nil, t.samples))
		return
	}
	f.line.silence(sound)
}

// say turns sound of the line into sound for the model.
func (f *formats) say(sound []byte) []byte {
	if f.toModel != nil {
		return f.toModel.turn(sound)
	}
	return sound
}

// keep puts a format into a client's event, so that it changes nothing.
func (f *formats) keep(event []byte, path string, now format) []byte {
	if !gjson.ValidBytes(event) { // patching could make it look good
		return event
	}
	return events.Set(event, path, cmp.Or(now.raw, f.line.asked().raw))
}

// ofFormats reports whether an error of the model is its refusal of our update. Some servers do not say which
// event they mean.
func (f *formats) ofFormats(fault gjson.Result) bool {
	id := fault.Get("event_id").String()
	if id != "" {
		return id == f.asked
	}
	names := func(field string) bool { return strings.Contains(fault.Get(field).String(), "format") }
	return !f.known && f.asked != "" && (names("param") || names("message"))
}

// formatted returns what follows from the model's word on formats: nothing, or the end with an error for the client.
func (p *player) formatted(fault *handoff.Error) effects {
	if fault == nil {
		return effects{}
	}
	return effects{end: fault, down: [][]byte{events.Error(p.ids.Next(), events.Fault{
		Kind: "server_error", Code: string(fault.Code), Message: fault.Spoken(),
	})}}
}
