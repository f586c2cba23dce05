package floor

import "strings"

// An ask is one response.create.
type ask struct {
	ID         string
	client     bool
	apart      bool // it brings its own input, so our speech cannot ride on it
	instructed bool // it brings instructions: our speech rides on it only if we cannot ask
	speech     []*pendingSpeech
	cancelled  bool // we cancelled its response: the caller spoke or left, or it is moot
	moot       bool // another response says what it asks for
}

// wire is what the model was asked for, and which response answers which ask. Owned by the floor.
type wire struct {
	active       string          // the response that runs, unknownResponse, or ""
	asked        *ask            // the ask on the wire, neither answered nor refused; nil: none
	runs         map[string]*ask // asks whose responses run, by response
	lateAsk      *ask            // the newest ask without an answer in time, which may still come
	asks         int             // number of our newest ask
	naming       string          // Set once, before our first ask: part of their ids, after oursPrefix
	untagged     int             // untagged responses that ended since the ask on the wire was sent
	lastUntagged *responseState  // the newest of these
	dropsTags    bool            // the model drops tags: an untagged response answers the ask on the wire
	keepsTags    bool            // the model keeps tags: an untagged response answers no ask
}

// NameAsks sets a word in the ids of our asks, to distinguish them from those of an earlier floor in the same session,
// whose responses may still come.
func (w *wire) NameAsks(word string) { w.naming = word }

// Active returns the running response, or "".
func (w *wire) Active() string { return w.active }

// Asked returns the ask on the wire, neither answered nor refused, or "".
func (w *wire) Asked() string {
	if w.asked == nil {
		return ""
	}
	return w.asked.ID
}

// Untagged returns the ask that an untagged response would answer if it began now, or "" if the model keeps tags.
func (w *wire) Untagged() string {
	if !w.dropsTags {
		return ""
	}
	return w.Asked()
}

// AskOf returns the ask that a running response answers, or "".
func (w *wire) AskOf(response string) string {
	if a := w.runs[response]; a != nil {
		return a.ID
	}
	return ""
}

// Tells reports whether a running response was asked for with speech of ours.
func (w *wire) Tells(response string) bool {
	a := w.runs[response]
	return a != nil && len(a.speech) > 0
}

// Ours reports whether an ask is ours, not the client's; false for "".
func Ours(ask string) bool { return strings.HasPrefix(ask, oursPrefix) }

// take removes and returns the ask on the wire, or one to which an untagged response was wrongly matched.
func (w *wire) take(id string) *ask {
	if a := w.asked; a != nil && a.ID == id {
		w.asked = nil
		return a
	}
	for response, a := range w.runs {
		if w.dropsTags && a.ID == id {
			delete(w.runs, response)
			return a
		}
	}
	return nil
}
