package work

import (
	"maps"
	"slices"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
)

// A store keeps what is kept of a caller for one life at a time. It knows its last states, and can lose them.
type store struct {
	ledger.Kept
	life   int
	before []ledger.Kept // older states, the newest last
}

// over reports whether a handoff is in the past.
func (s *store) over(key string) bool {
	_, over := s.Past[key]
	return over
}

func newStore() store { return store{Kept: ledger.NewKept()} }

// loses goes back to the state before some batches, or to nothing.
func (s *store) loses(batches int) {
	old := ledger.NewKept()
	if batches <= len(s.before) {
		old = s.before[len(s.before)-batches]
	}
	s.Kept, s.before = old, nil
}

// loses lets the store go back.
func (w *world) loses(batches int) {
	w.store.loses(batches)
	w.lost, w.losses = true, w.losses+1
	clear(w.stopped) // a life that knows of a stop writes it again
	w.forgets(w.newest())
}

// forgets notes that a life knows nothing of work that began, since the store has lost it. A life writes again what it
// knows, except what was heard for more than a minute.
func (w *world) forgets(l *life) {
	for key := range w.began {
		key = KeyOf(owner.Caller, key)
		h := l.find(l.byKey[key])
		read := l.came && w.store.Documents[ledger.HandoffDoc+key] != ""
		known := w.store.over(key) || read || h != nil && h.doc.known
		w.amnesia = w.amnesia || w.losses > 0 && !known
	}
}

func (s *store) commit(life int, b ledger.Batch) (ledger.Committed, error) {
	if s.life != life {
		return 0, handoff.Fault(handoff.CodeShutdown, "", "")
	}
	was := s.Kept
	done := s.Commit(b)
	if done == ledger.Written {
		s.before = append(s.before[max(0, len(s.before)-2):], was)
	}
	return done, nil
}

// entriesOf returns the handoffs of a batch.
func entriesOf(b ledger.Batch) []ledger.Entry {
	docs := maps.Clone(b.Put)
	for _, c := range b.Changed {
		if c.Past != nil {
			docs[ledger.HandoffDoc+c.Key] = c.Past.Row
		}
	}
	return ledger.Entries(docs, func(string) {})
}

// lines are the queues of threads.
type lines struct{ all []line }

type line struct {
	key     string
	holder  string
	waiting []string
	turn    Turn
}

func (l *lines) at(key string) *line {
	i := slices.IndexFunc(l.all, func(x line) bool { return x.key == key })
	if i < 0 {
		i, l.all = len(l.all), append(l.all, line{key: key})
	}
	return &l.all[i]
}

func (l *lines) Take(key, id string, _ handoff.Caller) bool {
	x := l.at(key)
	if x.holder == "" && (len(x.waiting) == 0 || x.waiting[0] == id) {
		x.holder = id
		x.waiting = slices.DeleteFunc(x.waiting, func(w string) bool { return w == id })
	}
	return x.holder == id
}

func (l *lines) Look(key, id string, c handoff.Caller) View {
	if l.Take(key, id, c) {
		return View{Mine: true}
	}
	x := l.at(key)
	if !slices.Contains(x.waiting, id) {
		x.waiting = append(x.waiting, id)
	}
	return View{Holder: x.holder, Same: true, Changed: make(chan struct{}), Turn: x.turn}
}

func (l *lines) Leave(id, but string) {
	for i := range l.all {
		x := &l.all[i]
		if x.key == but {
			continue
		}
		x.waiting = slices.DeleteFunc(x.waiting, func(w string) bool { return w == id })
		if x.holder == id {
			x.holder, x.turn = "", Turn{}
		}
	}
	l.all = slices.DeleteFunc(l.all, func(x line) bool { return x.holder == "" && len(x.waiting) == 0 })
}

func (l *lines) Runs(id string, t Turn) {
	for i := range l.all {
		if l.all[i].holder == id {
			l.all[i].turn = t
		}
	}
}

func (l *lines) Behind(id string) (all []string) {
	for _, x := range l.all {
		if x.holder == id {
			all = append(all, x.waiting...)
		}
	}
	return all
}

func (l *lines) Move(string, string, map[string]bool) []string { return nil }
