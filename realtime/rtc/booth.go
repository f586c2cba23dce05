package rtc

import (
	"time"

	"switchboard/handoff"
	"switchboard/realtime/events"
	"switchboard/realtime/outbound"
)

// A Booth is a client in the same process: it hears what a browser would, frame by frame, without a network. It is for
// conversations in fake time.
type Booth struct {
	*outbound.Queue
	heard  func(now time.Time, response string) // Set once: a frame of a response was played; "": silence after one
	event  func(event []byte)                   // Set once: takes what the data channel would carry
	lowers bool                                 // Set once
	says   chan []byte                          // of the client
	done   chan struct{}                        // closed when Run has ended
}

// NewBooth returns a client that is not carried yet. Lowers: it lowers the sound while its person speaks into it, see
// [Offer]. Its functions are called by the goroutine of Run.
func NewBooth(lowers bool, heard func(now time.Time, response string), event func([]byte)) *Booth {
	return &Booth{Queue: outbound.New(outbound.MaxBytes, nil), heard: heard, event: event, lowers: lowers,
		says: make(chan []byte), done: make(chan struct{})}
}

// Say sends an event of the client, or sound of it in an input_audio_buffer.append of µ-law.
func (b *Booth) Say(event []byte) {
	select {
	case b.says <- event:
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
	p.lowers, p.formats.asked = b.lowers, p.ids.Next()
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
		select {
		case <-b.Ready():
			for event, ok := b.Next(); ok; event, ok = b.Next() {
				tell(p.fromModel(event))
			}
		case event := <-b.says:
			if isSound(event) {
				take(event)
				continue
			}
			tell(p.fromClient(event))
		case now := <-ticker.C:
			sounding := p.sounding()
			frame, follows := p.next()
			if frame == nil || sounding == "" {
				sounding = p.sounding()
			}
			tell(follows)
			if frame != nil {
				b.heard(now, sounding)
			}
		case <-b.Ending():
			return
		}
	}
}

// isSound reports whether an event is sound of the caller, which a browser sends beside its events.
func isSound(event []byte) bool { return events.PeekType(event) == events.TypeAppend }

// sounding returns the response whose frame is due, or "".
func (p *player) sounding() string {
	if len(p.queue) == 0 {
		return ""
	}
	return p.queue[0].response
}
