// Package speech decides what is said, and when. [Schedule] gets the events of one call and of the work that the
// call hears about, and says which message is given to the voice model now, later or never. How often a heartbeat is
// said is set by heartbeatTimes and heartbeatEvery in schedule.go; heartbeatDue in say.go reports whether one is due.
// One that is due waits for quiet.
//
// It must not know sockets, the store or how the voice model speaks. Each event brings its time.
package speech
