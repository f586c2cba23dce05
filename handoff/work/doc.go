// Package work is for all that is known of one caller as one state, and for the promises that hold of it. The promises
// are named below, each with the proof that holds it from outside; [Promises] has the same list, and a test finds each
// proof. A proof in testdata/ladders of package call is named by its file.
//
// It must not know a store, a server, a call or a clock.
package work
