package rtc

import (
	"time"

	"switchboard/handoff"
	"switchboard/realtime/events"
	"switchboard/realtime/outbound"
)

// A Booth is a client in the same process: it gets what a browser would get, frame by frame, without a network. It is
// for simulated conversations in fake time.
type Booth struct {
	*outbound.Queue
	onFrame func(now time.Time, response string) // Set once: called for each frame played; "": silence
	onEvent func(event []byte)                   // Set once: called with each event for the client
	events  chan []byte                          // events from the client
	sounds  chan []byte                          // sound from the client
	done    chan struct{}                        // closed when Run has ended
}

// NewBooth returns a booth that does not run yet. Both functions are called by the goroutine of Run.
func NewBooth(heard func(now time.Time, response string), event func([]byte)) *Booth {
	return &Booth{Queue: outbound.New(nil), onFrame: heard, onEvent: event,
		events: make(chan []byte), sounds: make(chan []byte), done: make(chan struct{})}
}

// Say sends an event of the client.
func (b *Booth) Say(event []byte) { give(b, b.events, event) }

// Speak sends sound of the client, in µ-law.
func (b *Booth) Speak(sound []byte) { give(b, b.sounds, sound) }

func give(b *Booth, to chan []byte, what []byte) {
	select {
	case to <- what:
	case <-b.done:
	}
}

// Performs marks the booth as a leg that plays the model's voice itself, and reports how much of it was heard.
func (b *Booth) Performs() {}

// Abandon ends a booth whose Run was never called.
func (b *Booth) Abandon() { b.End(nil) }

// Close ends the booth and returns when Run has.
func (b *Booth) Close(reason *handoff.Error) {
	b.End(reason)
	<-b.done
}

// Run plays sound and passes events until Close is called.
func (b *Booth) Run(take func(event []byte)) {
	defer close(b.done)
	p := newPlayer(narrow)
	p.formats.updateID = p.ids.Next()
	tell := func(t effects) {
		for _, event := range t.up {
			take(event)
		}
		for _, event := range t.down {
			b.onEvent(event)
		}
		if t.end != nil {
			b.End(t.end)
		}
	}
	take(formatsEvent(p.formats.updateID, narrow))
	ticker := time.NewTicker(frameTime)
	defer ticker.Stop()
	opened := false
	for {
		if !opened && p.formats.known {
			opened = true
			take(openedEvent())
		}
		says := b.events
		if !p.formats.known {
			says = nil // they may set formats
		}
		select {
		case <-b.Ready():
			for event, ok := b.Next(); ok; event, ok = b.Next() {
				tell(p.fromModel(event))
			}
		case event := <-says:
			tell(p.fromClient(event))
		case sound := <-b.sounds:
			if !p.formats.known {
				continue
			}
			take(events.Append(p.formats.forModel(sound)))
		case now := <-ticker.C:
			frame, follows := p.next()
			tell(follows)
			if frame != nil {
				b.onFrame(now, p.playing)
			}
		case <-b.Ending():
			return
		}
	}
}
