// Package wording has all of our own sentences: answers of tools, messages to the voice model, questions, ages and
// lists. The words of an agent are quoted in them as data.
//
// Sentences for the caller are in the language of the call, see [Language]. To add a language, add its file to the
// folder languages, with the sentences of en.txt, and its word file to package consent.
//
// It must not know a call or a router. It decides nothing: others decide whether, when and to whom a sentence is said.
package wording
