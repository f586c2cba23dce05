// Package push reaches the phones and browsers that a caller has asked to be told: by Web Push (RFC 8030), encrypted
// for the browser alone (RFC 8291), signed with keys of this installation (RFC 8292). The only third party is
// the push service of the browser itself, which sees that something was sent, but not what.
//
// Who asked for it, and the keys, are records of the store, so that any instance tells a browser that asked at another.
//
// It must not know what is worth a notice (handoff decides that), nor the page, keys or calls. The address of
// a subscription is a secret: it is in no log and in no error.
package push
