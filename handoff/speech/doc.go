// Package speech decides what is said in a call, and when. [Schedule] gets the events of one call and of its runs, here
// called works. It decides which message is given to the voice model now, later or never. heartbeatTimes and
// heartbeatEvery in schedule.go set how often a heartbeat is said; heartbeatDue in say.go reports whether one is due. A
// heartbeat that is due waits for quiet.
//
// It must not know sockets, the store or how the voice model speaks. Each event brings its time.
package speech
