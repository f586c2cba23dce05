// Package consent decides whether the words of a caller are a yes to the one thing that they were asked.
//
// It knows words and nothing else: it must not know an agent's question, a call, a clock or a risk. Who may be asked,
// which question a reply was for, and whether it came in time is decided by whoever calls [Read].
//
// The words are text files, one a language, in the folder words. To add a word, write it in the section
// that says what it does, separated by commas; to add a language, add a file named by its code with the
// sections of the others. Case, accents, the width of letters and marks between words do not matter.
// TestConsentWords says what is wrong with a file. The sections are:
//
//	yes    says yes by itself
//	fill   says nothing: "please", "then"
//	hum    hesitates, so it cannot stand at the end: "um"
//	lead   may stand before a yes, and is none: "well", "right"
//	tail   may follow a yes: its object, thanks
//	link   may follow a yes, but not at the end: "on", "the"
//	deny   denies, wherever it stands
//	hold   asks for time, wherever it stands
//
// A word that is in none of them makes a reply unclear, and the question is asked again.
package consent
