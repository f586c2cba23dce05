// Package events reads and writes the events of the Realtime API that we act on, and hands out ids for ours. What
// has to be read of every event, its type and a field near its beginning, is read without decoding it.
//
// It decides nothing, and must not know who sends an event to whom.
package events
