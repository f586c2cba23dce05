// Package recall remembers of a conversation what another session of the model must know to go on with it: the items in
// order, the responses that run, the events that the model has not answered, and the caller's sound that
// it may lose. It is fed with what the model and its client send, and is pure: time enters as a value.
//
// The words that the next session is given are made in [Recall.Items], a line of our own among them. renewal.renew of
// package realtime gives them, in its order; the settings that were in force come from mask/renew.go.
//
// It must not know what of it is ours and what the client may see: the mask does.
package recall
