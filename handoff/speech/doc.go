// Package speech decides what is said when. [Schedule] gets the events of one call and of the work it hears
// of, and says which message is given to the voice model now, later or never; how often a heartbeat is
// said is in schedule.go, and whether one is due in say.go.
//
// It must not know sockets, the store or how the voice model speaks. Time comes with each event.
package speech
