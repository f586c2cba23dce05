// Package recall remembers what another session of the model must know to continue a conversation: the items in order,
// the running responses, the events that the model has not answered, and the caller's sound that is in no item yet. It
// is given the events of the model and its client, and is pure: time is given as a value.
//
// [Recall.Items] makes the items for the next session, with a line of our own among them. renewal.renew of package
// realtime sends them; the settings in force come from filter/renew.go.
//
// It must not know which items are ours and which the client may see: the filter does.
package recall
