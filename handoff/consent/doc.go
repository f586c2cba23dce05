// Package consent decides whether the words of a caller are a yes to the one thing that they were asked.
//
// It knows words and nothing else: it must not know an agent's question, a call, a clock or a risk. Who may be asked,
// which question a reply was for, and whether it came in time is decided by the caller of [Read].
//
// # What makes a yes
//
// A reply is a yes if all of this holds; everything else is asked again or denies:
//
//   - Every word of it belongs to a listed phrase, or names the machine, the project or the act that was asked about.
//     One word more, and it is no yes.
//   - One of the phrases says yes, or orders the act that was asked about.
//   - No listed no, wait or doubt stands in it.
//   - It has at most 12 words. It ends neither in the middle nor with a word that leads on, and no question mark,
//     quote, bracket or colon stands in it.
//   - No word of it stands twice in a row: "yeah yeah" shows that somebody listens, or is impatient.
//   - It is not on the list of replies that are none as a whole, and not a piece of what we said ourselves.
//
// A listed no makes it a no, wherever it stands: "okay, wait, don't". A listed wait leaves the question open. Thanks
// and fillers alone are nothing. All else is unclear, and the question is asked once more in the words of
// [Question.Again]. The longest phrase counts: "no problem" is no "no", and "not yet" is a wait.
//
// A reply is read in the language that knows most of its words, and in English beside it. Where two languages know as
// many, the more cautious reading holds. Case, accents, the width of letters, and the marks and spaces between words
// do not matter, except the accent of "sí" and "sì", without which it is an "if".
//
// # The word files
//
// The words are text files, one a language, in the folder words: lines of "section: phrase, phrase". There are no
// words in the code.
//
//	again     the words that ask once more
//	yes       says yes by itself
//	run       says yes where the act is named beside it: "npm install is fine"
//	alone     says yes as the whole reply
//	fill      says nothing: "please"
//	hum       says nothing, and not at the end: "um"
//	link      leads to what is said, and not at the end: "on the"
//	nod       goes with a yes, although it contains a no: "no problem"
//	order X   orders the act X: "run the tests"
//	thing X   names it, and orders nothing: "the tests"
//	name X    what a machine, or a word of a command, is called besides
//	number N  how the number N of files is said
//	ending    what is written to the end of a name: "bigpc'de"
//	no        denies
//	wait      asks for time
//	doubt     asks, sets a condition, goes further than the question, or is somebody else's
//	none      as the whole reply it is no yes, although its words are: "sure, sure"
//	means X   in English only: the words of a command that mean the act X
//	back      what listeners say while somebody speaks, and no reply to a question: "I see"; see [Backchannel]
//	hush      asks for quiet, as the whole of what is said: "stop talking"; see [Hush]
//
// Two marks have a meaning: (a|b) is a choice, so that "(it|they) may (|now) go" are four phrases, and @ is the name
// of the machine.
//
// # Reviewing a language
//
// A native speaker reads one file, in ten minutes, and asks of each line:
//
//   - yes, run, order: would everybody who says just this, with fillers, names and links in any order around it, allow
//     the act? Whatever can be meant ironically, absently, of something else, as "maybe" or as a question goes.
//   - fill, hum, link, nod, thing: does it leave a yes what it is, wherever it stands? A word that names another place,
//     another time or another person goes. So does the sound of somebody who has just understood ("ah", "oh", and "äh",
//     which reads the same without its accent): "ah, okay" allows nothing.
//   - no, wait, doubt: are the common words there? A missing one makes a reply unclear, so nothing is allowed by it.
//   - back: does it never ask, deny or order anything? hush: does it never mean the work?
//
// A no that must count is a row of TestRead; the corpus of testdata fails only for a yes that is none.
//
// A phrase is missing on purpose where it is not plain: the question is asked again. To add a language, add a file
// with the sections of the others, and one with our own sentences to package wording; the tests hold both to the same
// rules as the others.
package consent
