// Package turns has what all kinds of agent servers need for turns: a [Reducer] makes updates from the messages of a
// server, a [Buffer] keeps them in order and within bounds until they are read, and [Questions] has the open questions.
//
// It must not know a wire, a connection or a clock. All of it is pure, and not safe for concurrent use.
package turns
