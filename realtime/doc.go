// Package realtime is the voice front: an endpoint compatible with OpenAI's Realtime API, the client and
// model legs of a call, the floor that lets one response run at a time, and the masking that keeps our
// tools out of the client's sight. It hands completed function calls to a router and gives its answers
// and messages to the voice model.
//
// It must not know servers, threads or turns: the same router serves other voice fronts, and the same
// front would serve another router. The floor and the mask decide in rooms of their own, rtc carries browsers;
// WebSockets are carried here.
//
// # Concurrency
//
// A call ([Call]) has one lock for its floor, mask and items, under which nobody waits: what is decided is enqueued.
// Who read an event from a socket takes it through the call, and then writes to the other side what that takes at
// once: to wake another goroutine on the way costs more than all that is done to a frame. One loop a call does what no
// socket brings. What a far end does not take at once is written by a goroutine that lives until it is. [Front.Run] owns
// the goroutines of all calls and returns after the last has ended. Floor, mask and what follows the sound are pure:
// time enters as a value.
//
// # Failure
//
// Text is never dropped: whoever cannot keep up ends the call with a reason. Every request of the voice
// model gets one output, also when the call ends. Errors that our events cause are ours to handle; the
// client sees its own, with its own ids.
package realtime
