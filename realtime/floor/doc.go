// Package floor decides who may make the voice model speak. Never two asks are on the wire, and nothing that is
// wanted is left unsaid: it counts as given once the caller heard it, and is asked for again otherwise.
//
// It is pure: what happens goes into [Floor.Step] as an [Event], time too, and what is to be done comes out as
// an [Effect]. It must not know sockets, clocks, masks or what an utterance says.
package floor
