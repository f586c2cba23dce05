// Package consent decides whether the words of a caller are a yes to the one thing that they were asked.
//
// It knows words and nothing else: it must not know an agent's question, a call, a clock or a risk. The code that calls
// [Read] decides who may be asked, which question a reply was for, and whether it came in time.
//
// # What makes a yes
//
// A reply is a yes if all of this holds; everything else is asked again or denies:
//
//   - It is cut without rest into listed phrases, names of the machine or the project, and words that name the act. One
//     word more, and it is no yes: thanks, praise, a name that somebody is called by, "yes, they are".
//   - One of the phrases says yes, or orders the act that was asked about.
//   - It has no listed no, wait or doubt.
//   - It is short, and was read whole. It does not break off, or end with a word that leads on, and it has no question
//     mark, quote, bracket, colon or invisible character.
//   - No phrase of it comes twice in a row, unless that is listed: "yeah yeah" shows that somebody listens.
//   - It is not a part of our own question, nor of anything that the voice said since. A part of these with a
//     no or a wait in it is unclear, since it may be the caller's own.
//
// A listed no makes the whole reply a no: "okay, wait, don't". A listed wait leaves the question open. Thanks and
// fillers alone are nothing. All other replies are unclear, and the question is asked once more in the words of
// [Question.Again]. The longest phrase counts: "no problem" is no "no", and "not yet" is a wait.
//
// A reply is read in the language that knows most of its words, together with English. If several languages know as
// many, the most cautious reading counts. Case, accents, the width of letters, and the marks and spaces between words
// do not matter, except the accent of "sí" and "sì", without which it is an "if".
//
// # The word files
//
// The words are text files, one for each language, in the folder words: lines of "section: phrase, phrase". There are
// no words in the code.
//
//	again     the words that ask once more
//	yes       says yes by itself
//	alone     says yes as the whole reply
//	fill      says nothing: "please"
//	thanks    says nothing by itself, and makes a yes unclear: "it's fine, thanks" is often a no
//	hum       says nothing, and cannot end a reply: "um"
//	link      leads to other words, and cannot end a reply: "on the"
//	nod       goes with a yes, although it contains a no: "no problem"
//	order X   orders the act X: "run the tests"
//	thing X   names it, and orders nothing: "the tests"
//	name X    other names of the machine X, or of the word X of a command
//	number N  how the number N of files is said
//	mark      how the marks in a name are said: "dot"
//	ending    an ending that is written to a name: "bigpc'de"
//	no        denies
//	wait      asks for time
//	doubt     asks, sets a condition, goes further than the question, or is somebody else's word
//	means X   in English only: the words of a command that mean the act X, or name a remote
//	back      said by listeners while somebody speaks, and no reply to a question: "I see"; see [Backchannel]
//	hush      as a whole, asks for quiet: "stop talking"; see [Hush]
//
// Two marks have a meaning: (a|b) is a choice, so that "(it|they) may (|now) go" is four phrases, and @ is the name of
// the machine.
//
// # Reviewing a language
//
// A native speaker reads one file, in ten minutes, and asks of each line:
//
//   - yes, order: would everybody who says just this, with fillers, names and links in any order around it, allow the
//     act? Remove a phrase that can be meant ironically, absently, of something else, as "maybe" or "enough", or as a
//     question.
//   - fill, hum, link, nod, thing: does a yes stay a yes wherever the phrase comes in it? Remove a word that names
//     another place, time or person, that praises, or that shows that somebody has understood: "ah, okay" is no yes.
//   - no, wait, doubt: are the common words there? Without one, a reply is unclear, and allows nothing.
//   - back: does it never ask, deny or order anything? hush: does it never mean the work?
//
// A no that must count is a row of TestRead; the corpus of testdata only tests that replies are no yes.
//
// Phrases that are not plain are left out on purpose: then the question is asked again. To add a language, add a file
// with the sections of the others, and one with our own sentences to package wording. The tests have the same rules for
// all languages.
package consent
