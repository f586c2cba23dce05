// Package wording holds our own sentences, all of them in one place: answers of tools, messages to the voice
// model, questions, ages and lists as they are said. What an agent said is quoted in them as data.
//
// What a caller hears is in the language of the call, see [Language]. To add one, add its file to the folder languages,
// with the sentences of en.txt, and its word file to package consent.
//
// It must not know a call or a router. It decides nothing: others decide whether, when and to whom a sentence is said.
package wording
