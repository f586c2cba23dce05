package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"mime/multipart"
	"net/http"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/handoff/call"
	"switchboard/handoff/call/calltest"
	"switchboard/handoff/consent"
	"switchboard/handoff/homes"
	"switchboard/handoff/tools"
	"switchboard/realtime"
	"switchboard/realtime/rtc"
	"switchboard/realtime/rtc/rtctest"
	"switchboard/realtime/simulator"
)

// A panelist is one conversation of the panel: a caller in a booth, a simulated voice model that notices, answers and
// writes down as late as the seed says, the whole voice side between them, and agents behind it. Its script is the part
// "caller" of an archive: lines "WHEN VERB WORDS". WHEN is
//
//	MS          since the call began
//	+MS         since the line before was over
//	told+MS     since the telling of an outcome began that no line has waited for yet
//	voice+MS    since the voice began to be heard that is heard now, or the next one
//	quiet+MS    since nobody spoke any more
//
// and VERB says what the caller does, and so what is wanted of the other side:
//
//	says        a turn of their own: an answer
//	barges      they interrupt: the voice stops
//	murmurs     they show that they listen: the voice goes on
//	coughs      for so many milliseconds, without a word: likewise
//	aside       they talk to somebody else: nothing
//	closes      the voice model's connection is lost
//	none        nothing: the line only waits
//	ends        they hang up
type panelist struct {
	t      *testing.T
	random *rand.Rand
	began  time.Time
	now    chan simulator.Event
	speaks atomic.Bool // the caller does
	over   atomic.Bool

	mu      sync.Mutex
	tells   bool      // Guarded by mu, as all below: the model begins to tell an outcome
	frames  []string  // the response that each 20 ms were heard of; "": none
	voice   string    // the response that is heard
	voiced  time.Time // since when
	heard   time.Time // when something was last
	told    []time.Time
	cleared map[string]int    // when responses were cut
	words   map[string]string // what responses say, as far as the model made them
	made    map[string]bool   // it made them to their end
	acts    []act
	log     []byte
	waited  int // tellings that a line has waited for

	newest   []string    // what the model was told last. Owned by the model
	outcomes []outcomeOf // once it is over
}

// A source of random numbers for several goroutines: the caller and the model draw from it.
type source struct {
	mu  sync.Mutex
	pcg *rand.PCG // Guarded by mu
}

// Uint64 implements [rand.Source].
func (s *source) Uint64() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pcg.Uint64()
}

// An outcomeOf is one of some work, and whether it counts as told.
type outcomeOf struct {
	work string
	told bool
}

// An act is something that the caller did, in ticks of 20 ms.
type act struct {
	verb, words string
	from, to    int
	into        string // the response that was heard then
}

const tick = 20 * time.Millisecond

func (p *panelist) at() int { return int(time.Since(p.began) / tick) }

// A panelClient is how the client of a conversation treats speech into the voice.
type panelClient int

const (
	lowersIt  panelClient = iota // it lowers the sound, which goes through here
	lowersFar                    // likewise, and the sound goes between it and the voice model's server
	cutsIt                       // the sound is cut at once
)

// converse plays a conversation, and returns it when it is over.
func converse(t *testing.T, world, caller []string, seed uint64, client panelClient) *panelist {
	p := &panelist{t: t, random: rand.New(&source{pcg: rand.NewPCG(24, seed)}), began: time.Now(),
		now: make(chan simulator.Event, 64), cleared: map[string]int{}, words: map[string]string{}, made: map[string]bool{}}
	w := newPanelMachines(t, world)
	r := homes.New(w.Config("h"))
	calls := call.New(call.Config{Handoffs: r, Attending: r, Questions: r, Shown: r.Shown, Life: "h",
		Tools: tools.Backend{Directory: w, Resolver: w, Work: r, Questions: r}})
	stopRouter := background(t, r.Run)
	booth := rtc.NewBooth(p.hear, p.event)
	model, lines := newModelOfPanel(p, booth), rtctest.NewPipes()
	stopModel := background(t, func(ctx context.Context) error { return model.Serve(ctx, lines) })
	front, err := realtime.NewFront(realtime.Config{
		ModelURL: "ws://127.0.0.1:1/v1/realtime", Model: simulator.Name, Router: calls, Tools: tools.For, Dial: lines.Dial,
		Backchannel: consent.Backchannel, Log: zap.NewNop(), Ticks: func(_ string, log []byte) { p.log = log },
	})
	must(t, err)
	var carried sync.WaitGroup
	if client == lowersFar {
		id := p.offers(lines)
		carried.Go(func() { must(t, front.ServeCarried(t.Context(), calltest.Grant, id)) })
	} else {
		carried.Go(func() { must(t, front.ServeBooth(t.Context(), calltest.Grant, booth, client == lowersIt)) })
	}
	if client == lowersIt {
		booth.Say([]byte(`{"type":"session.update","session":{"type":"realtime","audio":{"input":` + goesOnItself + `}}}`))
	}
	carried.Go(func() { p.speak(booth) })
	for _, line := range caller {
		p.perform(line)
	}
	p.over.Store(true)
	booth.Close(nil)
	carried.Wait()
	synctest.Wait()
	p.delivered(r)
	stopRouter()
	stopModel()
	over, stop := context.WithCancel(t.Context())
	stop()
	must(t, front.Run(over)) // it gives its port back
	return p
}

// goesOnItself is how the session hears the person of a client that lowers the sound.
const goesOnItself = `{"transcription":{"model":"gpt-4o-mini-transcribe"},` +
	`"turn_detection":{"type":"server_vad","interrupt_response":false}}`

// offers begins a call of the voice model's server, as a page does.
func (p *panelist) offers(lines *rtctest.Pipes) (id string) {
	p.t.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	must(p.t, form.WriteField("sdp", "an offer"))
	must(p.t, form.WriteField("session",
		`{"type":"realtime","model":"`+simulator.Name+`","audio":{"input":`+goesOnItself+`}}`))
	must(p.t, form.Close())
	transport := &http.Transport{DialContext: lines.Dial}
	defer transport.CloseIdleConnections()
	response, err := (&http.Client{Transport: transport}).Post("http://127.0.0.1:1/v1/realtime/calls", form.FormDataContentType(), &body)
	must(p.t, err)
	defer response.Body.Close()
	if response.StatusCode != http.StatusCreated {
		p.t.Fatalf("the offer is answered %s", response.Status)
	}
	return path.Base(response.Header.Get("Location"))
}

// speak sends the sound of the caller, loud while they speak.
func (p *panelist) speak(booth *rtc.Booth) {
	const silent, loud = 0xff, 0x9a // of µ-law
	for ; !p.over.Load(); time.Sleep(2 * tick) {
		level := byte(silent)
		if p.speaks.Load() {
			level = loud
		}
		booth.Speak(bytes.Repeat([]byte{level}, 2*160))
	}
}

// newModelOfPanel returns the voice model, which a booth may call itself: it gives work to the machine that is named,
// tells what it is given, and says little else.
func newModelOfPanel(p *panelist, booth *rtc.Booth) *simulator.Model {
	return simulator.New(simulator.Config{Manner: drawnManner(p.random), Events: p.now, Script: p.answer,
		Answer: func(context.Context, string) (string, simulator.Browser, *handoff.Error) {
			return "an answer", rtc.NewBoothPeer(booth), nil
		}})
}

// drawnManner returns a manner like that of OpenAI's models, as far as that is known.
//
// Answer: the model itself takes 232 ms at best and 320 ms on average (GPT-4o System Card, 2024). Over the API the
// first sound comes after 0.3 to 2.3 s, and later the more the model reasons (comparisons of gpt-realtime-2, 2026).
// Here it is log-normal about 0.5 s, within these bounds.
//
// The end of speech is noticed after the silence_duration_ms of the session, 500 by default (API reference). How long
// the beginning takes is not published: here it is 100 to 350 ms, which the prefix_padding_ms of 300 mostly makes up
// for. Transcripts are made beside the answer, with no promise of order (API reference): here log-normal about 0.4 s,
// at most 2 s. Sound comes faster than it plays; by how much is not published: here four times.
func drawnManner(r *rand.Rand) *simulator.Manner {
	normal := func(median, spread float64, least, most time.Duration) func() time.Duration {
		return func() time.Duration {
			d := time.Duration(median * math.Exp(spread*r.NormFloat64()) * float64(time.Second))
			return min(max(d, least), most)
		}
	}
	return &simulator.Manner{
		Onset: func() time.Duration {
			return 100*time.Millisecond + time.Duration(r.Int64N(int64(250*time.Millisecond)))
		},
		Answer: normal(0.5, 0.4, 232*time.Millisecond, 2300*time.Millisecond),
		Words:  normal(0.4, 0.5, 100*time.Millisecond, 2*time.Second),
		Pace:   4,
	}
}

// reWork is a sentence that gives work to a machine; reTells a message that tells an outcome.
var (
	reWork  = regexp.MustCompile(`(?i)^on (\w+),? (.+)$`)
	reTells = regexp.MustCompile(`(?i)"status":|finished|failed|was stopped|while you were away|i was saying`)
)

// answer decides what the model says. It is called by the model alone.
func (p *panelist) answer(h simulator.Heard) (moves []simulator.Move) {
	for _, text := range h.Texts {
		m := reWork.FindStringSubmatch(strings.Trim(text, ".!"))
		switch {
		case m != nil:
			if p.random.IntN(2) == 0 {
				moves = append(moves, simulator.Say{Text: "Okay."})
			}
			moves = append(moves, simulator.Call{Tool: tools.Codex,
				Arguments: fmt.Sprintf(`{"server":%q,"prompt":%q}`, strings.ToLower(m[1]), m[2])})
		case consent.Backchannel(text):
			moves = append(moves, p.murmured()...)
		case consent.Hush(text):
			moves = append(moves, simulator.Say{Text: "Okay."})
		case strings.Contains(text, "stop the work"):
			moves = append(moves, simulator.Call{Tool: tools.StopWork, Arguments: `{}`})
		default:
			moves = append(moves, simulator.Say{Text: "It is sunny, and it stays so until the evening."})
		}
	}
	if h.Sound {
		moves = append(moves, p.murmured()...)
	}
	noNews := func(o simulator.Output) bool { return o.Tool == tools.RemainSilent }
	h.Outputs = slices.DeleteFunc(h.Outputs, noNews)
	switch {
	case len(h.Messages) > 0: // what was begun is no news any more
		h.Outputs, p.newest = nil, h.Messages
	case len(moves)+len(h.Outputs) == 0: // it is asked again for what was cut before a word of it
		h.Messages = p.newest
	}
	for _, m := range h.Messages {
		p.mu.Lock()
		p.tells = p.tells || reTells.MatchString(m)
		p.mu.Unlock()
	}
	return append(moves, simulator.Repeat(h)...)
}

// murmured is what a model does that heard nothing worth an answer: most often it knows.
func (p *panelist) murmured() []simulator.Move {
	if p.random.IntN(4) > 0 {
		return []simulator.Move{simulator.Call{Tool: tools.RemainSilent, Arguments: `{}`}}
	}
	return []simulator.Move{simulator.Say{Text: "Sure."}}
}

// hear takes a frame that was played.
func (p *panelist) hear(now time.Time, response string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for at := p.at(); len(p.frames) <= at; {
		p.frames = append(p.frames, "")
	}
	p.frames[p.at()] = response
	if response == "" {
		return
	}
	if response != p.voice || now.Sub(p.heard) > 200*time.Millisecond {
		p.voice, p.voiced = response, now
		if p.tells {
			p.tells, p.told = false, append(p.told, now)
		}
	}
	p.heard = now
}

// event takes an event of the data channel.
func (p *panelist) event(event []byte) {
	var e struct {
		Type, Transcript string
		ID               string `json:"response_id"`
		Response         struct{ ID, Status string }
	}
	if err := json.Unmarshal(event, &e); err != nil {
		p.t.Error(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e.Type {
	case "output_audio_buffer.cleared":
		p.cleared[e.ID] = p.at()
	case "response.output_audio_transcript.done":
		p.words[e.ID] += e.Transcript + " "
	case "response.done":
		p.made[e.Response.ID] = e.Response.Status == "completed"
	}
}

// perform waits until a line's time has come, and does what it says.
func (p *panelist) perform(line string) {
	when, rest, _ := strings.Cut(line, " ")
	verb, words, _ := strings.Cut(rest, " ")
	p.until(when)
	lasts := time.Duration(len(strings.Fields(words)))*370*time.Millisecond + 200*time.Millisecond
	switch verb {
	case "none", "ends":
		return
	case "closes":
		p.now <- simulator.Close{}
		return
	case "coughs":
		ms, err := strconv.Atoi(words)
		must(p.t, err)
		lasts, words = time.Duration(ms)*time.Millisecond, ""
	case "murmurs":
		lasts = 250*time.Millisecond + time.Duration(p.random.IntN(200))*time.Millisecond
	}
	p.mu.Lock()
	a := act{verb: verb, words: words, from: p.at()}
	if time.Since(p.heard) <= 2*tick {
		a.into = p.voice
	}
	p.mu.Unlock()
	p.now <- simulator.Hear{Text: words, For: lasts}
	p.speaks.Store(true)
	time.Sleep(lasts)
	p.speaks.Store(false)
	a.to = p.at()
	p.acts = append(p.acts, a)
}

// until waits until a time has come.
func (p *panelist) until(when string) {
	from, ms, anchored := strings.Cut(when, "+")
	if !anchored {
		from, ms = "", when
	}
	n, err := strconv.Atoi(ms)
	must(p.t, err)
	after := time.Duration(n) * time.Millisecond
	if !anchored {
		time.Sleep(time.Until(p.began.Add(after)))
		return
	}
	if from == "" {
		time.Sleep(after)
		return
	}
	nth := p.waited
	if from == "told" {
		p.waited++
	}
	for limit := time.Now().Add(3 * time.Minute); time.Now().Before(limit); time.Sleep(tick) {
		p.mu.Lock()
		since, ok := p.anchor(from, nth)
		p.mu.Unlock()
		if ok && time.Since(since) >= after {
			return
		}
	}
	p.t.Errorf("nothing came that %q waits for", when)
}

// anchor returns since when what a line waits for holds. The caller holds mu.
func (p *panelist) anchor(from string, nth int) (since time.Time, ok bool) {
	sounds := time.Since(p.heard) <= 2*tick
	switch from {
	case "told":
		if nth < len(p.told) {
			return p.told[nth], true
		}
	case "voice":
		return p.voiced, sounds
	case "quiet":
		return p.heard, !sounds && !p.heard.IsZero()
	}
	return time.Time{}, false
}

// delivered looks which outcomes were told, by the end of the call.
func (p *panelist) delivered(r *homes.Homes) {
	all, err := r.Handoffs(calltest.Grant)
	must(p.t, err)
	for _, rec := range all {
		if rec.Outcome != "" {
			p.outcomes = append(p.outcomes, outcomeOf{rec.ID, rec.State == handoff.StatusDelivered})
		}
	}
}
