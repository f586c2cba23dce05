// Package evidence decides which question a caller had heard when they spoke, and so whether an answer that
// the voice model brings is theirs.
//
// It must not know the call that it judges for, nor give an answer to anybody. Whether words are a yes is
// for consent, how risky the act is for risk.
package evidence
