package rtc

import (
	"time"

	"switchboard/handoff"
	"switchboard/realtime/outbound"
)

// A Booth is a client in the same process: it hears what a browser would, frame by frame, without a network. It is for
// conversations in fake time.
type Booth struct {
	*outbound.Queue
	heard  func(now time.Time, response string) // Set once: a frame of a response was played; "": silence after one
	event  func(event []byte)                   // Set once: takes what the data channel would carry
	says   chan []byte                          // events of the client
	speaks chan []byte                          // its sound
	done   chan struct{}                        // closed when Run has ended
}

// NewBooth returns a client that is not carried yet. Its functions are called by the goroutine of Run.
func NewBooth(heard func(now time.Time, response string), event func([]byte)) *Booth {
	return &Booth{Queue: outbound.New(outbound.MaxBytes, nil), heard: heard, event: event,
		says: make(chan []byte), speaks: make(chan []byte), done: make(chan struct{})}
}

// Say sends an event of the client.
func (b *Booth) Say(event []byte) { give(b, b.says, event) }

// Speak sends sound of the client, in µ-law.
func (b *Booth) Speak(sound []byte) { give(b, b.speaks, sound) }

func give(b *Booth, to chan []byte, what []byte) {
	select {
	case to <- what:
	case <-b.done:
	}
}

// Performs marks a leg that plays the model's voice itself, and reports what was heard of it.
func (b *Booth) Performs() {}

// Abandon ends a booth whose Run was never called.
func (b *Booth) Abandon() { b.End(nil) }

// Close ends the booth and returns when Run has.
func (b *Booth) Close(reason *handoff.Error) {
	b.End(reason)
	<-b.done
}

// Run carries the booth until Close was called.
func (b *Booth) Run(take func(event []byte)) {
	defer close(b.done)
	p := newPlayer(narrow)
	p.formats.asked = p.ids.Next()
	tell := func(t effects) {
		for _, event := range t.up {
			take(event)
		}
		for _, event := range t.down {
			b.event(event)
		}
		if t.end != nil {
			b.End(t.end)
		}
	}
	take(formatsEvent(p.formats.asked, narrow))
	ticker := time.NewTicker(frameTime)
	defer ticker.Stop()
	opened := false
	for {
		if !opened && p.formats.known {
			opened = true
			take(openedEvent())
		}
		says := b.says
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
		case sound := <-b.speaks:
			if !p.formats.known {
				continue
			}
			take(appendEvent(p.formats.say(sound)))
		case now := <-ticker.C:
			frame, follows := p.next()
			tell(follows)
			if frame != nil {
				b.heard(now, p.plays)
			}
		case <-b.Ending():
			return
		}
	}
}
