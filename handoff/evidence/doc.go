// Package evidence decides which question a caller had heard when they spoke, and so whether an answer that the voice
// model reports is the caller's.
//
// It must not know the call that it judges for, nor give an answer to anybody. Package consent decides whether words
// are a yes, and package risk how risky the act is.
package evidence
