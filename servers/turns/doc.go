// Package turns is the bookkeeping of turns that any kind of agent server needs: what a turn reports, in order
// and bounded until it is read ([Buffer]), made of what the server says ([Reducer]), and the questions that it
// waits for ([Questions]).
//
// It must not know a wire, a connection or a clock. Everything here is pure and not safe for concurrent use:
// whoever keeps it guards it.
package turns
