// Package handoff is the language of Switchboard: the words that every other package speaks (call, request,
// handoff, server, thread, turn, update, remark, answer, sticky), its limits, its errors, and the small
// interfaces between those who need something and those who have it.
//
// It imports none of ours and must not know any adapter: if it knew one, every adapter would know every
// other. What is decided with these words is decided in the rooms below it: what can be said of an agent's
// words (speakable), our own sentences (wording), how dangerous something is (risk), whether a reply is a
// yes (consent), which question it was for (evidence), what a handoff does next (phase), what may follow what
// in the store (ledger), what is said when (speech), what the voice model can call (tools). The router joins
// them.
package handoff
