package ledger

import "maps"

// A Kept is what a store has of one caller, in memory. What [Kept.Commit] does with a batch is what every store must do
// with it, but for the owners of threads.
type Kept struct {
	State
	Past  map[string]Past              // by key
	Texts map[string]map[string]string // by key, and then by part
}

// NewKept returns a Kept with nothing in it.
func NewKept() Kept {
	return Kept{State{Documents: map[string]string{}}, map[string]Past{}, map[string]map[string]string{}}
}

// Commit writes a batch whole or not at all. It makes new maps, so that copies from before stay as they are.
func (k *Kept) Commit(b Batch) Committed {
	if b.Was != k.Version {
		return Outdated
	}
	for _, c := range b.Changed {
		if _, over := k.Past[c.Key]; over && c.Free {
			return NotFree
		}
	}
	*k = Kept{State{b.Now, maps.Clone(k.Documents)}, maps.Clone(k.Past), maps.Clone(k.Texts)}
	maps.Copy(k.Documents, b.Put)
	for _, name := range b.Drop {
		delete(k.Documents, name)
	}
	for _, c := range b.Changed {
		texts := map[string]string{}
		if c.Clear {
			delete(k.Past, c.Key)
		} else {
			maps.Copy(texts, k.Texts[c.Key])
		}
		maps.Copy(texts, c.Texts)
		maps.DeleteFunc(texts, func(_, text string) bool { return text == "" })
		if k.Texts[c.Key] = texts; len(texts) == 0 {
			delete(k.Texts, c.Key)
		}
		if c.Past != nil {
			k.Past[c.Key] = *c.Past
		}
	}
	if len(k.Documents) == 0 { // of nothing there is no version
		k.Version = ""
	}
	return Written
}
