// Package handoff is the shared vocabulary of Switchboard: the types that every other package uses (call, request,
// handoff, server, thread, turn, update, remark, answer, sticky), its limits, its errors, and the small
// interfaces between the packages that need something and those that provide it.
//
// It imports none of our packages and must not know any adapter: if it knew one, every adapter would know every other.
// The decisions are made in the packages below it: which of an agent's words can be said aloud (speakable), our own
// sentences (wording), how dangerous something is (risk), whether a reply is a yes (consent), which question the yes
// was for (evidence), what a handoff does next (phase), which steps the store allows (ledger), which changes a thread
// of our own agents allows (threads), what is said when (speech), what can be asked of Switchboard (tools). Package
// router runs handoffs, package call serves conversations; package homes has a router for each caller.
package handoff
