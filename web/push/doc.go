// Package push sends notices to the phones and browsers that a caller has subscribed: by Web Push (RFC 8030), encrypted
// for the browser (RFC 8291), and signed with keys of this installation (RFC 8292). The only third party is the push
// service of the browser, which sees that something was sent, but not what.
//
// The subscriptions and the keys are records of the store, so that any instance can send to every browser.
//
// It must not know what is worth a notice (handoff decides that), nor the page, keys or calls. The address of a
// subscription is a secret, which is in no log and no error.
package push
