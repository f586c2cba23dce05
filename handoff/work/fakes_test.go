package work

import (
	"maps"
	"slices"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
)

// A store keeps documents. It knows its last states, and can lose them.
type store struct {
	life    int
	version string
	docs    map[string]string
	past    map[string]string
	texts   map[string]map[string]string // by key and part
	before  []store                      // older states, the newest last
}

func newStore() store {
	return store{docs: map[string]string{}, past: map[string]string{}, texts: map[string]map[string]string{}}
}

func (s *store) state() ledger.State {
	return ledger.State{Version: s.version, Documents: maps.Clone(s.docs)}
}

// keep remembers the state as it is.
func (s *store) keep() {
	old := *s
	old.docs, old.past, old.texts, old.before = maps.Clone(s.docs), maps.Clone(s.past), maps.Clone(s.texts), nil
	s.before = append(s.before[max(0, len(s.before)-2):], old)
}

// loses goes back to the state before some batches, or to nothing.
func (s *store) loses(batches int) {
	old := newStore()
	if batches <= len(s.before) {
		old = s.before[len(s.before)-batches]
	}
	old.life = s.life
	*s = old
}

// loses lets the store go back.
func (w *world) loses(batches int) {
	w.store.loses(batches)
	w.lost, w.losses = true, w.losses+1
	w.forgets(w.newest())
}

// forgets notes that a life knows nothing of work that began, since the store has lost it. A life writes again what it
// knows, except what was heard for more than a minute.
func (w *world) forgets(l *life) {
	for key := range w.began {
		key = KeyOf(owner.Caller, key)
		h := l.find(l.byKey[key])
		read := l.came && w.store.docs[ledger.HandoffDoc+key] != ""
		known := w.store.past[key] != "" || read || h != nil && h.doc.known
		w.amnesia = w.amnesia || w.losses > 0 && !known
	}
}

func (s *store) commit(life int, b ledger.Batch) (ledger.Committed, error) {
	switch {
	case s.life != life:
		return 0, handoff.Fault(handoff.CodeShutdown, "", "")
	case s.version != b.Was:
		return ledger.Outdated, nil
	}
	for _, c := range b.Changed {
		if c.Free && s.past[c.Key] != "" {
			return ledger.NotFree, nil
		}
	}
	s.keep()
	s.version = b.Now
	maps.Copy(s.docs, b.Put)
	for _, name := range b.Drop {
		delete(s.docs, name)
	}
	for _, c := range b.Changed {
		texts := maps.Clone(s.texts[c.Key])
		if c.Clear || texts == nil {
			texts = map[string]string{}
		}
		if c.Clear {
			delete(s.past, c.Key)
		}
		maps.Copy(texts, c.Texts)
		if s.texts[c.Key] = texts; c.Past != nil {
			s.past[c.Key] = c.Past.Row
		}
	}
	if len(s.docs) == 0 {
		s.version = ""
	}
	return ledger.Written, nil
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

func (l *lines) Leave(keys []string, id string) {
	for _, key := range keys {
		x := l.at(key)
		x.waiting = slices.DeleteFunc(x.waiting, func(w string) bool { return w == id })
		if x.holder == id {
			x.holder, x.turn = "", Turn{}
		}
	}
	l.all = slices.DeleteFunc(l.all, func(x line) bool { return x.holder == "" && len(x.waiting) == 0 })
}

func (l *lines) Runs(keys []string, id string, t Turn) {
	for _, key := range keys {
		if x := l.at(key); x.holder == id {
			x.turn = t
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
