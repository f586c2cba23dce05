// Package simulator is a Responses API without a model. Agents of kind responses use it when nothing is configured,
// and in tests. It is as strict as the real API about ids, calls and their outputs.
//
// A script, which is a function of the request, makes its answers. [Actor] is the script of a machine of the built-in
// world, and [Tools] are the tools of such an agent; they touch nothing.
//
// It plays the far end and knows only the wire. It must not know the agent that sends the requests.
package simulator
