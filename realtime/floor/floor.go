package floor

import (
	"slices"
	"strconv"

	"switchboard/handoff"
	"switchboard/realtime/events"
)

// A Floor decides who may make the voice model speak in the default conversation. The client's asks and ours share it.
//
// Responses are matched to asks by the tag that every ask carries in its metadata, never by their order: a response
// without a tag was started by voice detection and answers no ask. (A model that drops tags is noticed: see wire.)
type Floor struct {
	wire    // what the model was asked for, and which response answers it
	effects // of the step that runs

	clientAsks  []*ask                    // waiting asks of the client, in order
	pending     []*pendingSpeech          // waiting speech of ours, in order
	calls       map[string]*responseState // responses with our requests, by call ids of those without an answer
	clientCalls map[string]*responseState // the same, by call ids of the client's calls without an output
	responses   responseStates            // by id; forgotten once done and without open calls

	ready        bool   // the client has set up its session, or had time to: a voice cannot be changed once heard
	manual       bool   // no turn detection: we never ask; our speech rides on the client's asks
	autoVAD      bool   // turn detection starts responses
	speaking     bool   // the caller
	turns        int    // how often the caller has begun to speak
	answerDue    bool   // the caller has stopped, and the response of voice detection is due
	wrote        bool   // the caller has written something, and the client's ask for a response to it is due
	playing      bool   // the model's voice is still heard
	away         bool   // the client is away
	noSession    bool   // the model has no session
	siblingsWait bool   // our requests have time to be answered together
	resting      bool   // we wait after a failure, as the model may be at a limit
	lastQuiet    Effect // the last EffectQuiet
}

// A pendingSpeech is an utterance for which the model has to be asked to speak.
type pendingSpeech struct {
	id          string
	from        *responseState // the response with its request, or after whose requests it is said; nil: none
	unlessSpoke bool           // decided when sending: needs no ask if from spoke
	fails       int
	starts      int            // how often it was cut before a word was heard
	cuts        int            // those of starts since the caller last began to speak
	turn        int            // the floor's turns when cuts was reset
	taken       bool           // the model has the utterance in the conversation
	mute        bool           // it was answered by a function call of the client, which must not be repeated
	beside      *responseState // another response that began after taken, and so may tell it; or nil
}

// A responseState is a response that holds requests of ours, or says speech of ours.
type responseState struct {
	id             string
	spoke          bool
	words          bool // the caller got something to hear or read
	ended          bool
	open           int
	siblingsWaited bool // its requests had their time: speech no longer waits for the open ones
	clientCalls    int  // calls of the client in it without an output
	shared         bool // the client is expected to ask for the next response after it

	sounds bool  // it has sound, which is on its way to the caller
	over   bool  // no more of its sound will be heard
	heard  Heard // how much of its sound was heard; set when over
	ask    *ask  // the ask that it answered, from its end until its sound is over
	cut    bool  // it ended before it was complete
}

// responseStates are the remembered responses, by id.
type responseStates map[string]*responseState

// of returns the state of a response, which it makes if there is none.
func (all responseStates) of(response string) *responseState {
	c := all[response]
	if c == nil {
		c = &responseState{id: response}
		all[response] = c
	}
	return c
}

// forget drops a response that no event can be about any more. Pending speech keeps its own pointer.
func (all responseStates) forget(c *responseState) {
	if c.ended && c.open == 0 && c.clientCalls == 0 && (!c.sounds || c.over) {
		delete(all, c.id)
	}
}

const (
	// oursPrefix is the prefix of the ids of our asks. The client's have another.
	oursPrefix = "a"
	// unknownResponse stands for a running response whose id we never saw.
	unknownResponse = "?"
	// MaxHeld bounds the client's waiting asks. Further ones are refused with an error.
	MaxHeld = 64
	// maxFails is how often asks for our speech may fail before it is given up. It is asked for again after TimerRest,
	// and then after timerLongRest.
	maxFails = 3
	// MaxCuts is how often our speech may be cut before a word was heard while the caller says nothing. Without it, a
	// client that cancels whatever it did not ask for would be asked for ever.
	MaxCuts = 3
	// MaxStarts is how often it may be cut so in all. A caller who speaks into its beginning hears it at the next quiet
	// moment: an "mm-hmm" does not mean that they want to miss it. But a voice that is heard as the caller's, by echo,
	// must come to an end.
	MaxStarts = 10
)

// New returns the floor of a call whose session does not exist yet.
func New() *Floor {
	return &Floor{
		wire: wire{runs: map[string]*ask{}}, responses: responseStates{}, calls: map[string]*responseState{},
		clientCalls: map[string]*responseState{}, autoVAD: true,
	}
}

// Step takes an event and returns what is to be done. The result is valid until the next step.
func (f *Floor) Step(e Event) []Effect {
	f.out = f.out[:0]
	switch e := e.(type) {
	case Uttered:
		f.uttered(e)
	case ClientAsked:
		f.clientAsks = append(f.clientAsks, &ask{ID: e.Ask, client: true, apart: e.Apart, instructed: e.Instructed})
	case Created:
		f.created(e)
	case Ended:
		f.ended(e)
	case Refused:
		f.refused(e.Ask)
	case Rejected:
		f.rejected(e.Ask)
	case Withdrawn:
		f.pending = slices.DeleteFunc(f.pending, func(w *pendingSpeech) bool { return w.id == e.ID })
	case Missed:
		f.missed(e.ID)
	case Taken:
		f.took(e.ID)
	case Called:
		f.called(e)
	case Mixed:
		f.mixed(e)
	case Output:
		f.output(e.Call)
	case Wrote:
		if !f.manual { // a response that we ask for would answer the caller's words in our name
			f.wrote = true
			f.arm(TimerVAD)
		}
	case Cancelled: // this ends the client's waiting asks
		for _, a := range f.clientAsks {
			f.out = append(f.out, Effect{Kind: EffectTakenBack, Ask: a.ID})
		}
		f.clientAsks = nil
		f.stopAwaitingClient(false)
	case Spoke:
		if c := f.responses[e.Response]; c != nil {
			c.spoke, c.words = true, c.words || !e.Silence
		}
	case Sounded:
		c := f.responses.of(e.Response)
		c.sounds, c.words = true, true
	case Played:
		f.played(e)
	case Speech:
		f.speaking = e.On
		f.answerDue = !e.On && f.autoVAD && !f.manual
		if e.On {
			f.turns++
			f.arm(TimerSpeech)
		} else if f.answerDue {
			f.arm(TimerVAD)
		}
	case Hushed:
		f.speaking, f.answerDue = false, false
	case Sounding:
		f.playing = e.On
	case Listening:
		f.manual, f.autoVAD = e.Manual, e.Auto
		if e.Manual {
			f.speaking, f.answerDue = false, false
		}
	case Opened:
		f.arm(TimerOpen)
	case Configured:
		f.ready = true
	case Away:
		if f.away = e.On; e.On {
			f.speaking = false // what the caller was saying has no end
			f.cancelOurs()
		}
	case Lost:
		f.sessionLost()
	case Renewed:
		f.noSession = false
	case Elapsed:
		f.elapsed(e)
	}
	f.decide()
	f.reportQuiet()
	return f.out
}

// reportQuiet adds an effect if both sides have become quiet, or are no longer.
func (f *Floor) reportQuiet() {
	quiet := f.ready && !f.away && !f.noSession && f.active == "" && f.asked == nil && !f.playing &&
		(f.manual || (!f.speaking && !f.answerDue))
	x := Effect{Kind: EffectQuiet, On: quiet, Invited: quiet && f.manual}
	if x.On != f.lastQuiet.On || x.Invited != f.lastQuiet.Invited {
		f.lastQuiet = x
		f.out = append(f.out, x)
	}
}

// Full reports whether the client's next ask must be refused.
func (f *Floor) Full() bool { return len(f.clientAsks) >= MaxHeld }

func (f *Floor) uttered(e Uttered) {
	from := f.calls[e.Call]
	if from != nil {
		delete(f.calls, e.Call)
		from.open--
		f.responses.forget(from)
	}
	if e.Need == handoff.FloorUnlessSpoke || e.Need == handoff.FloorAsk {
		unless := from != nil && e.Need == handoff.FloorUnlessSpoke
		f.pending = append(f.pending, &pendingSpeech{id: e.ID, from: from, unlessSpoke: unless})
	}
}

func (f *Floor) created(e Created) {
	f.active = e.Response
	f.responses.of(e.Response)
	f.dropsTags = f.dropsTags && e.Tag == ""
	f.keepsTags = f.keepsTags || e.Tag != ""
	f.lateResponse(e.Response, e.Tag)
	f.arm(TimerRun)
	if e.Tag == "" && !(f.dropsTags && f.asked != nil) {
		f.speaking, f.answerDue, f.wrote = false, false, false
		f.noteBeside(e.Response)
		return
	}
	if f.asked != nil && (f.asked.ID == e.Tag || f.dropsTags) {
		f.runs[e.Response] = f.asked
		f.asked = nil
	}
	f.noteBeside(e.Response)
	// Since the ask was sent, the caller may have begun to speak, or gone.
	if a := f.runs[e.Response]; a != nil && (f.speaking || f.away || a.moot) {
		f.cancelOurs()
	}
}

// cancelOurs cancels the running response if it answers an ask of ours.
func (f *Floor) cancelOurs() {
	if a := f.runs[f.active]; a != nil && !a.client && !a.cancelled {
		a.cancelled = true
		f.out = append(f.out, Effect{Kind: EffectCancel, Response: f.active})
	}
}

func (f *Floor) ended(e Ended) {
	f.keepsTags = f.keepsTags || e.Tag != ""
	f.lateResponse(e.Response, e.Tag)
	if f.asked != nil && e.Tag != "" && f.asked.ID == e.Tag { // a response that is interrupted at once has no created
		f.runs[e.Response] = f.asked
		f.asked = nil
	}
	c := f.responses[e.Response]
	if e.Tag == "" && f.asked != nil {
		f.untagged++
		f.lastUntagged = c
		f.arm(timerEcho)
	}
	if f.active == e.Response || f.active == unknownResponse {
		f.active = ""
	}
	if c != nil {
		c.ended, c.cut = true, e.Status != events.StatusCompleted
		c.spoke = c.spoke || e.Output
	}
	a := f.runs[e.Response]
	delete(f.runs, e.Response)
	f.answered(a, c, e)
	if c != nil {
		f.responses.forget(c)
	}
}

// refused queues an ask again that was refused because another response runs: that will end.
func (f *Floor) refused(id string) {
	a := f.take(id)
	if a == nil {
		return
	}
	if f.active == "" {
		f.active = unknownResponse
		f.arm(timerUnknown)
	}
	f.putBack(a)
}

func (f *Floor) called(e Called) {
	if f.calls[e.Call] != nil {
		return
	}
	c := f.responses.of(e.Response)
	c.open++
	f.calls[e.Call] = c
	if !f.siblingsWait {
		f.siblingsWait = true
		f.arm(timerSiblings)
	}
}

func (f *Floor) elapsed(e Elapsed) {
	if f.armed[e.Timer] != e.Gen {
		return
	}
	switch e.Timer {
	case TimerVAD:
		f.answerDue, f.wrote = false, false
	case timerSiblings:
		f.siblingsWait = false
		for _, c := range f.responses {
			c.siblingsWaited = c.open > 0
		}
	case TimerSpeech:
		f.speaking = false
	case TimerRun:
		f.responseLost()
	case TimerOpen:
		f.ready = true
	case TimerRest, timerLongRest:
		f.resting = false
	case timerUnknown:
		if f.active == unknownResponse {
			f.active = ""
		}
	case timerAsk, timerEcho:
		f.askOverdue()
	case timerTheirs, timerTheirAsk:
		f.stopAwaitingClient(e.Timer == timerTheirs)
	}
}

// decide sends the next ask if it may be sent now.
func (f *Floor) decide() {
	if f.active != "" || f.asked != nil || f.away || f.noSession {
		return
	}
	if len(f.clientAsks) > 0 {
		a := f.clientAsks[0]
		if !a.apart && f.waitsForOurs() {
			return
		}
		f.clientAsks = f.clientAsks[1:]
		if !a.apart {
			a.speech = f.resolve(func(w *pendingSpeech) bool {
				return f.manual || !a.instructed && w.from.ridesOnClient()
			})
		}
		if f.send(EffectForward, a); !a.apart {
			f.wrote = false
			f.stopAwaitingClient(false) // this was the ask that the client was expected to send
		}
		return
	}
	if !f.ready || f.manual || len(f.pending) == 0 || f.speaking || f.answerDue || f.wrote || f.playing || f.resting {
		return
	}
	if !slices.ContainsFunc(f.pending, (*pendingSpeech).due) {
		return
	}
	if speech := f.resolve(func(w *pendingSpeech) bool { return w.from == nil || !w.from.shared }); len(speech) > 0 {
		f.asks++
		f.send(EffectAsk, &ask{ID: oursPrefix + f.naming + strconv.Itoa(f.asks), speech: speech})
	}
}

// due reports whether the speech may be asked for now: the requests of one response are answered together.
func (w *pendingSpeech) due() bool {
	return w.from == nil || !w.from.shared && (w.from.open == 0 || w.from.siblingsWaited)
}

// resolve takes the pending speech that which picks, without the speech that needs no ask as the response with its
// request has said something to the caller.
func (f *Floor) resolve(which func(*pendingSpeech) bool) []*pendingSpeech {
	var need, silent, rest []*pendingSpeech
	for _, w := range f.pending {
		switch {
		case !which(w):
			rest = append(rest, w)
		case w.unlessSpoke && w.from.spoke:
			silent = append(silent, w)
		default:
			need = append(need, w)
		}
	}
	f.pending = rest
	f.emit(Effect{Kind: EffectSilent}, silent)
	return need
}

func (f *Floor) send(kind EffectKind, a *ask) {
	f.asked, f.untagged, f.lastUntagged = a, 0, nil
	x := Effect{Kind: kind, Ask: a.ID}
	for _, w := range a.speech {
		x.Utterances, x.Mute = append(x.Utterances, w.id), x.Mute || w.mute
	}
	f.out = append(f.out, x)
	f.arm(timerAsk)
}

// Speaking reports whether the caller speaks.
func (f *Floor) Speaking() bool { return f.speaking }

// AnswerDue reports whether the caller has spoken and voice detection is about to start the answer.
func (f *Floor) AnswerDue() bool { return f.answerDue }

// Quiet reports whether nobody speaks or is about to.
func (f *Floor) Quiet() bool { return f.lastQuiet.On }

// Open returns how many responses are remembered.
func (f *Floor) Open() int { return len(f.responses) }
