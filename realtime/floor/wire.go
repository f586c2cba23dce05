package floor

import "strings"

// An ask is one response.create.
type ask struct {
	ID         string
	client     bool
	apart      bool // it reads nothing of the conversation: our speech cannot ride on it
	instructed bool // it brings its own instructions: ours rides on it only where we cannot ask
	speech     []*pendingSpeech
	pulled     bool // we cancelled it: the caller was speaking, or it has nothing to say any more
	moot       bool // what it asks for is being said
}

// wire is what the model was asked for, and which response answers what. Owned by the floor.
type wire struct {
	active       string          // the response that runs, unknownResponse, or ""
	asked        *ask            // on the wire, neither created nor refused
	runs         map[string]*ask // asks that became responses which are not done, by response id
	late         *ask            // the newest that got no answer in time; it may still come
	asks         int             // ours so far
	naming       string          // Set once, before the first of ours: begins their ids, behind oursPrefix
	untagged     int             // untagged responses that ended since the ask on the wire was sent
	lastUntagged *carrier        // the newest of them
	blind        bool            // the model does not echo tags: an untagged response is the one asked for
	echoes       bool            // it does: a response without a tag is never the one asked for
}

// NameAsks tells our asks apart from those of another floor in the same session, whose responses may still come.
func (w *wire) NameAsks(word string) { w.naming = word }

// Active returns the response that runs, or "".
func (w *wire) Active() string { return w.active }

// Asked returns the ask that is on the wire, neither created nor refused, or "".
func (w *wire) Asked() string {
	if w.asked == nil {
		return ""
	}
	return w.asked.ID
}

// Untagged returns the ask that an untagged response answers when it begins now, or "" where the model keeps tags.
func (w *wire) Untagged() string {
	if !w.blind {
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

// Ours reports whether an ask is not the client's; "" is none.
func Ours(ask string) bool { return strings.HasPrefix(ask, oursPrefix) }

// take removes the ask from the wire, or from the response that was mistaken for its own.
func (w *wire) take(id string) *ask {
	if a := w.asked; a != nil && a.ID == id {
		w.asked = nil
		return a
	}
	for response, a := range w.runs {
		if w.blind && a.ID == id {
			delete(w.runs, response)
			return a
		}
	}
	return nil
}
