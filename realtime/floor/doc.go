// Package floor decides who may make the voice model speak. It never has two asks (response.create) on the wire, and
// leaves nothing unsaid that has to be said: an utterance counts as given once the caller has heard it, and is asked
// for again until then, within bounds.
//
// It is pure: what happens, time included, goes into [Floor.Step] as an [Event], and what is to be done comes out as an
// [Effect]. It must not know sockets, clocks, filters or what an utterance says.
package floor
