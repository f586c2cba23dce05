// Package consent decides whether the words of a caller are a yes to the one thing that they were asked.
//
// It knows words and nothing else: it must not know an agent's question, a call, a clock or a risk. Who may
// be asked, which question a reply was for, and whether it came in time is decided by whoever calls [Read].
//
// The words are text files, one a language, in the folder words. To add a word, write it in the section that
// says what it does; to add a language, add a file named by its code with the sections of the others. Case,
// accents, the width of letters and the marks between words do not matter. A reply is read in one language
// and English. A word that is in no section makes a reply unclear, and the question is asked again.
//
// What can be part of a yes:
//
//	yes     says yes by itself
//	end     says yes, as the last words: "darfst du"
//	do      orders it; a yes with its object: "run"
//	fill    says nothing: "please", "then"
//	hum     hesitates, so it cannot stand at the end: "um"
//	lead    may stand before a yes, and is none: "well", "right"
//	tail    may follow a yes: its object, thanks
//	link    may follow a yes, but not at the end: "the"
//	nod     goes with a yes although it contains a no: "no problem"
//	shrug   likewise, but makes a yes before it weak: "why not"
//	may     makes a yes of the machine's name before it: "bigpc may"
//	in      stands before the machine or a place: "on"
//	place   means the machine: "that computer"
//	yes X, do X, act X   the same for one act X of acts.go; act is its name: "the tests"
//	number N             the number N as it is said
//
// What no yes may contain, the stronger first. A longer phrase that contains a shorter one of a stronger
// section wins over it: "not yet" holds off.
//
//	deny    denies
//	hold    asks for time
//	unsure  does not know, or grumbles
//	ask     asks back
//	noise   is what a recogniser makes of silence; a reply that begins with it says nothing
package consent
