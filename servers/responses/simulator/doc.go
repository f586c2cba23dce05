// Package simulator is a Responses API without a model. Agents of kind responses run on it when nothing is configured,
// and in tests. On the wire it is as strict as the real one about ids, calls and their outputs, and it can
// misbehave.
//
// What it answers is a script: a function of what it was asked. [Actor] is the script of a machine of the built-in
// world, and [Tools] are what such an agent works with; they touch nothing.
//
// It plays the far end and knows only the wire. It must not know the agent that asks it.
package simulator
