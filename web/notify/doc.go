// Package notify reaches callers who are in no call: it posts notices (work ended, an agent waits for an answer) to one
// address, such as a topic of ntfy.
//
// It decides how a notice is delivered: how many wait, how often each is tried, and when one is dropped. It must not
// know what is worth a notice (handoff decides that), nor the page, keys or calls. The address, the token and the texts
// are secrets, which are in no log and no error.
package notify
