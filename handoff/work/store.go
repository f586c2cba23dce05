package work

import (
	"cmp"
	"crypto/rand"
	"maps"
	"slices"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
)

// A keeper is what a state knows of its store.
type keeper struct {
	open    bool            // the store was read
	closed  bool            // nothing more is written: another home goes on from the store
	loading bool            // it is being read
	version string          // of the newest batch that the store has; "": it has nothing
	docs    map[string]bool // names of the documents that it has
	doubted []string        // versions of batches of which it is not known whether the store has them
	dirty   []*Handoff      // to be written, in order
	places  map[Place]bool  // whose current threads are to be written
	sent    *sent           // the batch that is on its way; nil: none
	beat    bool            // a batch is to be sent even if it is empty
	single  bool            // batches have one handoff: one of several was refused
	tries   int             // to reach the store since it last answered
	again   time.Time       // when the next try is made; zero: at once
	err     error           // of the newest try
}

// A sent is a batch that is on its way.
type sent struct {
	version string
	of      []sentOf
	places  []Place
	put     []string // names of documents
	drop    []string
}

// A sentOf is the part of one handoff in a batch.
type sentOf struct {
	h     *Handoff
	seq   uint64   // of its change
	texts []string // parts of its texts
	// dropped: its whole request is dropped.
	dropped bool
}

// Bounds of a batch.
const (
	maxAtOnce = 32      // handoffs
	maxTexts  = 1 << 20 // bytes of texts, after which no handoff is added
)

// A document is what the store has of a handoff, or is to have.
type document struct {
	never    bool           // nothing of it is kept
	closed   bool           // nothing more is written
	known    bool           // there is a document, or may be one, or is to be one
	free     bool           // the key must not be in the past
	taken    bool           // work that was not known when it was asked has the key
	clear    bool           // what an earlier handoff with the key has left is dropped first
	sent     bool           // it was in a batch, so the store may have it
	request  bool           // the same for its whole request
	passed   bool           // it is history although nobody heard the outcome
	status   handoff.Status // as it is to stand there
	turn     handoff.TurnID // the newest that was written
	code     handoff.Code   // of the fault of the outcome
	spoken   string         // the sentence about what became of paused work; "": that about the outcome
	print    string         // as it is to stand there; see [ledger.Printed]
	accepted time.Time      // when the document was made
	past     time.Time      // when it became history

	seq, acked uint64 // numbers of the newest change, and of the newest that the store has
	texts      []string
	waiters    []waiter
}

// A waiter waits until the store has a change.
type waiter struct {
	seq  uint64
	kept chan struct{}
}

// A pending is a change of a document for which something waits, for a time.
type pending struct {
	what step
	by   time.Time
	seq  uint64
}

// A step is what follows when the store has a change; zero: nothing does.
type step int

const (
	notes step = iota + 1 // the words are promised
	sends                 // they are sent
	tells                 // the outcome is told, in the end also without the store
)

// clean reports whether nothing of the document is to be written.
func (d *document) clean() bool { return d.seq == d.acked || d.closed }

// stored reports whether the store has everything.
func (s *State) stored() bool {
	return !s.cfg.Stored || s.keep.closed || len(s.keep.dirty) == 0 && len(s.keep.places) == 0 && s.keep.sent == nil
}

// IsOpen reports whether the store was read, or there is none.
func (s *State) IsOpen() bool { return s.keep.open || !s.cfg.Stored }

// open reports the same, and has the store read if it was not.
func (s *State) open() bool {
	if s.IsOpen() {
		return true
	}
	if !s.keep.loading {
		s.keep.loading = true
		s.do(Load{})
	}
	return false
}

// write has a handoff written, as it is when its turn comes. It returns false if nothing is to be written.
func (s *State) write(h *Handoff, to handoff.Status) bool {
	d := &h.doc
	if d.never || d.closed {
		return false
	}
	d.known, d.status = true, to
	if d.accepted.IsZero() {
		d.accepted = s.now
	}
	if to == handoff.StatusCompleted {
		d.code = codeOf(h.Fault)
		d.passed = s.cfg.Caller.Nameless() // they can hear it in their call alone
	}
	s.mark(h)
	if to != handoff.StatusStarted && to != handoff.StatusDelivered { // somebody waits: try at once
		s.keep.again = time.Time{}
	}
	return true
}

func (s *State) mark(h *Handoff) {
	h.doc.seq++
	if !slices.Contains(s.keep.dirty, h) {
		s.keep.dirty = append(s.keep.dirty, h)
	}
}

// unwrite takes back what was not sent to the store.
func (s *State) unwrite(h *Handoff) {
	if d := &h.doc; !d.sent {
		d.known, d.seq = false, d.acked
		s.keep.dirty = slices.DeleteFunc(s.keep.dirty, func(o *Handoff) bool { return o == h })
	}
}

// writeDelivered writes that the outcome was heard. kept is nil if nothing is written.
func (s *State) writeDelivered(h *Handoff) (kept <-chan struct{}) {
	d := &h.doc
	if !d.known || d.status != handoff.StatusDelivered && !s.write(h, handoff.StatusDelivered) || d.clean() {
		return nil
	}
	w := waiter{d.seq, make(chan struct{})}
	d.waiters = append(d.waiters, w)
	return w.kept
}

// writePlace writes the current thread of a place. For a nameless caller nothing is stored, since they cannot come
// back.
func (s *State) writePlace(p Place) {
	if s.cfg.Stored && !s.cfg.Caller.Nameless() {
		s.keep.places[p] = true
	}
}

// commit sends the next batch, unless one is on its way or the store is away.
func (s *State) commit() {
	k := &s.keep
	if !s.cfg.Stored || k.closed || k.sent != nil || !k.again.IsZero() || len(k.dirty) == 0 && len(k.places) == 0 && !k.beat ||
		!s.open() {
		return
	}
	b := ledger.Batch{Was: k.version, Now: rand.Text(), Put: map[string]string{}}
	k.sent = &sent{version: b.Now}
	k.beat = false
	for bytes := 0; len(k.dirty) > 0 && len(k.sent.of) < maxAtOnce && bytes < maxTexts; {
		h := k.dirty[0]
		k.dirty = k.dirty[1:]
		if h.doc.taken {
			s.notFree(h)
			continue
		}
		bytes += s.batch(&b, h)
		if k.single {
			break
		}
	}
	k.single = k.single && len(k.dirty) > 0
	for p := range k.places {
		field, value := ledger.StickyField(handoff.Target{Server: p.Server, Project: p.Project}), ""
		if c, ok := s.current[p]; ok {
			_, value, _ = ledger.EncodeSticky(c, s.now) // it has a server and a thread
			b.Put[ledger.StickyDoc+field] = value
		} else {
			b.Drop = append(b.Drop, ledger.StickyDoc+field)
		}
		k.sent.places = append(k.sent.places, p)
	}
	clear(k.places)
	if !slices.ContainsFunc(s.all, func(h *Handoff) bool { return h.doc.waits() }) {
		b.For = ledger.StickyFor
	}
	k.sent.put, k.sent.drop = slices.Collect(maps.Keys(b.Put)), b.Drop
	s.do(Commit{b})
}

// waits reports whether the document is one of an open handoff, or of an outcome that nobody heard.
func (d *document) waits() bool {
	return d.known && !d.closed && !d.passed && d.status != handoff.StatusDelivered
}

// batch adds a handoff to a batch, and returns how many bytes its texts have.
func (s *State) batch(b *ledger.Batch, h *Handoff) (bytes int) {
	d := &h.doc
	if s.byKey[h.key] == h.ID {
		s.replace(b, h)
	}
	e := s.entry(h)
	c := ledger.Changed{Key: h.key, Free: d.free, Clear: d.clear, Texts: s.texts(h)}
	b.Promise = b.Promise || d.status == handoff.StatusAccepted || d.status == handoff.StatusDispatching
	d.sent = true
	of := sentOf{h: h, seq: d.seq}
	for part, text := range c.Texts {
		of.texts = append(of.texts, part)
		bytes += len(text)
		if part == ledger.PartRequest {
			of.dropped = text == ""
			d.request = d.request || text != ""
		}
	}
	s.keep.sent.of = append(s.keep.sent.of, of)
	if t := h.run.Target; d.status == handoff.StatusDispatching && ledger.Made(h.Why) && t.Thread != "" &&
		t.Thread != handoff.NewThread {
		c.Owned = ledger.Owned{Server: t.Server, Thread: t.Thread, Caller: s.cfg.Caller}
		c.At = s.now
	}
	if d.status == handoff.StatusDelivered || d.passed {
		if d.past.IsZero() {
			d.past = s.now
		}
		b.Drop = append(b.Drop, ledger.HandoffDoc+h.key)
		c.Past = new(e.History().Row(d.past))
	} else {
		b.Put[ledger.HandoffDoc+h.key] = handoff.Encode(e)
	}
	b.Changed = append(b.Changed, c)
	return bytes
}

// replace ends the documents of earlier handoffs with the key of one that is written now: there is one of a key.
func (s *State) replace(b *ledger.Batch, h *Handoff) {
	for _, o := range s.all {
		if o != h && o.key == h.key {
			o.doc.closed = true
			if !h.doc.sent && o.doc.known {
				h.doc.clear, h.doc.free = true, false
			}
			s.keep.dirty = slices.DeleteFunc(s.keep.dirty, func(x *Handoff) bool { return x == o })
		}
	}
	b.Changed = slices.DeleteFunc(b.Changed, func(c ledger.Changed) bool { return c.Key == h.key })
	b.Drop = slices.DeleteFunc(b.Drop, func(name string) bool { return name == ledger.HandoffDoc+h.key })
}

// texts returns the parts of the texts of a handoff that the store does not have, or has and is to drop: "".
func (s *State) texts(h *Handoff) map[string]string {
	all := map[string]string{}
	if h.Unkept {
		return all
	}
	add := func(part, text string) {
		if text != "" && !slices.Contains(h.doc.texts, part) {
			all[part] = text
		}
	}
	add(ledger.PartPrompt, handoff.Clip(h.Prompt, ledger.MaxBody))
	if h.doc.over() {
		add(ledger.PartText, handoff.Clip(h.Text, ledger.MaxBody))
		if did := encodeDetails(h.Record); len(did) <= ledger.MaxBody {
			add(ledger.PartDid, did)
		}
	}
	keeps := h.doc.status == handoff.StatusAccepted || h.doc.status == handoff.StatusCompleted && h.doc.code.Asks()
	switch {
	case keeps:
		add(ledger.PartRequest, h.request)
	case slices.Contains(h.doc.texts, ledger.PartRequest), h.doc.request:
		all[ledger.PartRequest] = ""
	}
	return all
}

// over reports whether the document has an outcome. Work that goes on without this process has none there.
func (d *document) over() bool {
	return d.status == handoff.StatusCompleted || d.status == handoff.StatusDelivered
}

// target returns where the words of a handoff go, by the names that were asked for until it is resolved.
func (s *State) target(h *Handoff) handoff.Target {
	if asked := h.run.Request.Target; h.run.Target == (handoff.Target{}) {
		return handoff.Target{Server: asked.Server, Thread: asked.Thread}
	}
	return h.run.Target
}

// entry returns the document of a handoff.
func (s *State) entry(h *Handoff) ledger.Entry {
	d := &h.doc
	e := ledger.Entry{
		Key: h.key, Caller: s.cfg.Caller, Owner: h.ID, Args: h.args, Status: d.status, Attempt: h.attempt.number,
		Inherited: h.state.Inherited, Accepted: ledger.Millis(d.accepted),
		Facts: ledger.Facts{
			Print: d.print, ClientID: h.ID, Target: s.target(h), Watermark: h.run.Before, Turn: h.run.Turn, Prompt: h.Prompt,
			Title: h.Title, Why: h.Why, Giver: h.Key, Asker: h.Client, Parent: h.Parent, Unkept: h.Unkept,
			Instead: h.run.Request.Instead, Stopping: h.state.Stopping && !d.over(),
		},
	}
	if d.over() {
		e.Outcome, e.Tests, e.Code, e.Spoken = h.Outcome, h.Tested, d.code, cmp.Or(d.spoken, h.Spoken)
		e.Ended = ledger.Millis(*h.EndedAt)
	}
	return e.Bounded()
}
