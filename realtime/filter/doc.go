// Package filter decides what a client sees of a session that Switchboard shares with it, and what the model sees of
// the client's events. The model sees our tools, instructions and transcription beside the client's own. The client
// sees none of these, nor our function calls, their outputs, our messages or our tags.
//
// It is pure: events come in and go out as raw JSON, patched where needed and otherwise byte for byte the same. It must
// not know which leg carries them, when they came, or what a tool does.
package filter
