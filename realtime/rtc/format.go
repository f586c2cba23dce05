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

// formatLimit is how long the model may take, from the beginning of its session, to answer the update of the formats.
// Until then nothing of the client is passed on; after that, the formats that the session began with are assumed.
const formatLimit = 3 * time.Second

// pcmFormat is the default format of a Realtime model.
const pcmFormat = `{"type":"audio/pcm","rate":24000}`

// A format is an audio format of the model.
type format struct {
	raw    string // as the model reported it, raw JSON; "": it did not
	factor int    // PCM16 at so many times 8 kHz; 0: µ-law; -1: cannot be converted
}

// readFormat reads the format of one side, input or output, from a session.
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

// formats are the audio formats that the model takes and gives, and the conversion from and to those of the client's
// line. They are pure.
type formats struct {
	line         line   // Set once: how the client is sent sound, and sends it unless opus is set
	opus         bool   // Set once: the client's sound comes from a [decoder], as PCM
	updateID     string // event id of our update of the formats
	sessionBegun bool   // the model's session has begun
	known        bool   // the formats are known
	in, out      format // the formats in force
	initial      struct{ in, out format }
	fromModel    *translator // converts the model's sound; nil: it needs no conversion
	toModel      *translator // converts sound for the model; nil: it needs no conversion
	inUse        bool        // the translators were made
}

// begin notes the formats that the session began with. They are used until our update is answered.
func (f *formats) begin(session gjson.Result) *handoff.Error {
	f.sessionBegun, f.initial.in, f.initial.out = true, readFormat(session, "input"), readFormat(session, "output")
	if !f.known {
		f.use(f.initial.in, f.initial.out)
	}
	return nil // our update may still change a format that cannot be converted
}

// update reads the formats from a session.updated. A format that it does not mention is taken to be as asked for.
func (f *formats) update(session gjson.Result) *handoff.Error {
	in, out := readFormat(session, "input"), readFormat(session, "output")
	asked := f.line.modelFormat()
	switch {
	case f.known:
		in, out = cmp.Or(in, f.in), cmp.Or(out, f.out)
	case in.raw == "" && out.raw != "" && out.factor != asked.factor: // output was not changed, so input was not either
		in = cmp.Or(f.initial.in, format{pcmFormat, 3})
	}
	f.known = true
	return f.use(cmp.Or(in, asked), cmp.Or(out, asked))
}

// refuse notes that the model refused our update: the initial formats stay in force.
func (f *formats) refuse() *handoff.Error {
	f.known = true
	pcm := format{pcmFormat, 3}
	return f.use(cmp.Or(f.initial.in, pcm), cmp.Or(f.initial.out, pcm))
}

// assume ends the wait for an answer: a model that has reported its formats, and no change, keeps them. One that has
// reported none is taken to have done what we asked for.
func (f *formats) assume() *handoff.Error {
	switch {
	case f.known:
		return nil
	case f.initial.in.raw != "" || f.initial.out.raw != "":
		return f.refuse()
	}
	f.known = true
	return f.use(f.line.modelFormat(), f.line.modelFormat())
}

// use sets the formats in force, and the translators for them. The error says that a format cannot be converted.
func (f *formats) use(in, out format) *handoff.Error {
	if !f.inUse || in.factor != f.in.factor {
		f.toModel = f.line.toModel(in)
		if f.opus {
			f.toModel = decodedToModel(in)
		}
	}
	if !f.inUse || out.factor != f.out.factor {
		f.fromModel = f.line.fromModel(out)
	}
	f.inUse, f.in, f.out = true, in, out
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

// forClient converts sound of the model to that of the line. half is the byte left over from the piece before, and left
// the one of this piece. Sound that cannot be converted is dropped, as it would be noise.
func (f *formats) forClient(half, sound []byte) (heard, left []byte) {
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
	return f.fromModel.convert(sound), left
}

// silence fills a piece of the client's sound with silence. In G.722 that is encoded, as it depends on the sound before
// it.
func (f *formats) silence(sound []byte) {
	if t := f.fromModel; t != nil && f.line == wide {
		t.samples = append(t.samples[:0], make([]int16, 2*len(sound))...)
		copy(sound, t.encode(nil, t.samples))
		return
	}
	f.line.silence(sound)
}

// forModel converts sound of the client for the model.
func (f *formats) forModel(sound []byte) []byte {
	if f.toModel != nil {
		return f.toModel.convert(sound)
	}
	return sound
}

// keepFormat sets a format in a client's event to the present one, so that the event does not change it.
func (f *formats) keepFormat(event []byte, path string, now format) []byte {
	if !gjson.ValidBytes(event) { // patching could make it valid
		return event
	}
	return events.Set(event, path, cmp.Or(now.raw, f.line.modelFormat().raw))
}

// isRefusal reports whether an error of the model is its refusal of our update. Some servers do not name the event.
func (f *formats) isRefusal(fault gjson.Result) bool {
	id := fault.Get("event_id").String()
	if id != "" {
		return id == f.updateID
	}
	names := func(field string) bool { return strings.Contains(fault.Get(field).String(), "format") }
	return !f.known && f.updateID != "" && (names("param") || names("message"))
}

// formatted returns what follows from an error of the formats: the end of the leg, with an error for the client. Nil:
// nothing.
func (p *player) formatted(fault *handoff.Error) effects {
	if fault == nil {
		return effects{}
	}
	return effects{end: fault, down: [][]byte{events.Error(p.ids.Next(), events.Fault{
		Kind: "server_error", Code: string(fault.Code), Message: fault.Spoken(),
	})}}
}
