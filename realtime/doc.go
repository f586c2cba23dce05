// Package realtime is the voice front: an endpoint compatible with OpenAI's Realtime API, the client and
// model legs of a call, the floor that lets one response run at a time, and the masking that keeps our
// tools out of the client's sight. It hands completed function calls to a router and gives its answers
// and messages to the voice model.
//
// It must not know servers, threads or turns: the same router serves other voice fronts, and the same
// front would serve another router. pion and gorilla are used here.
package realtime
