// Package consent decides whether the words of a caller are a yes to the one thing that they were asked.
//
// It knows words and nothing else: it must not know an agent's question, a call, a clock or a risk. Who may
// be asked, which question a reply was for, and whether it came in time is decided by whoever calls [Read].
//
// The words are text files, one a language, in the folder words. To add a word, write it in the section that
// says what it does: a no goes under deny, a "wait" under hold. To add a language, add a file named by its code with
// the sections of the others. Case, accents, the width of letters and the marks between words do not matter. A reply is
// read in one language and English. A word that is in no section makes a reply unclear, and the question is asked again.
//
// What can be part of a yes:
//
//	yes     orders or permits; says yes by itself
//	weak    says yes, but perhaps absently: "yeah". It makes no yes of a longer reply
//	end     says yes, as the last words: "darfst du"
//	do      orders it; a yes with its object: "run"
//	very    strengthens the yes before or in which it stands: "perfectly"
//	all     may stand right after an order of the act: "all of them"
//	fill    says nothing: "please", "then"
//	hum     hesitates, so it cannot stand at the end: "um"
//	lead    may stand before a yes, and is none: "well", "right"
//	tail    may follow a yes: its object, thanks
//	link    may follow a yes, but not at the end: "the"
//	nod     goes with a yes although it contains a no: "no problem"
//	shrug   likewise, but makes a yes before it weak: "why not"
//	why     likewise, and goes only with a yes that orders nothing: "why wouldn't it be okay"
//	need    likewise, and goes only with an order that names the act: "no need to ask"
//	inverted  asks, as the first words, where no particle follows: "mag je"
//	modal     likewise, before the machine's name: "puede"
//	reason    makes a clause that says what needs the act: "needs"
//	purpose   begins what an order is good for, at the end: "I'd like to see"; the reason of a yes to tests
//	can     orders only after what it is about: "die Dateien darf er ändern"
//	so      draws a conclusion
//	post    may follow what is named: a particle
//	follow  begins what is to be told afterwards: "and read me"
//	may     makes a yes of the machine's name before it: "bigpc may"
//	in      stands before the machine or a place: "on"
//	place   means the machine: "that computer"
//	yes X, do X, act X   the same for one act X of acts.go; act is its name: "the tests"
//	number N             the number N as it is said
//
// A reassurance goes with a yes as a nod does, and denies nothing: one "not" and a trouble ("requests isn't a
// problem"), or what nobody must do ("you don't even have to ask me"), with nothing between but little words and
// what the question is about:
//
//	not       denies
//	must      needs
//	needless  both: "needn't"
//	trouble   a trouble that there is not: "problem"
//	bother    what nobody needs to do: "ask"
//	glue      a little word: "that", "is", "for me"
//
// What no yes may contain, the stronger first. A longer phrase that contains a shorter one of a stronger
// section wins over it: "not yet" holds off.
//
//	deny    denies
//	hold    asks for time
//	unsure  does not know, or grumbles
//	ask     asks back
//	grumble grumbles, unless an order or a permission stands beside it: "yeah, yeah"
//	noise   is what a recogniser makes of silence; a reply that begins with it says nothing
//
// Three marks have a meaning in the files:
//
//	(a|b)  a choice: "(it|they) may (|now) go" are four phrases
//	word*  in an act: every word that begins so
//	word$  in a phrase that denies: it denies only where the sentence does not go on with the act. "laat maar" is
//	       never mind, "laat maar installeren" orders it
//
// A story with unknown words may stand beside a yes; see story.go. It consists of clauses. The sections below say how a
// clause begins, and what makes it a statement. A clause holds no word of doubt, except words about the past and about
// habits. Beside the story the reply must order or permit the act, or going ahead, in a clause that is wholly
// understood; or the story must be the reason of the yes before it.
//
// A denial in a story is not about the act where its clause begins before the denying word, and goes on after it without
// an order, a yes, or a word of what is wanted or allowed. Any other denial that may be part of a story makes the reply
// unclear:
//
//	go       orders or permits to go ahead
//	opens    begins such a clause and makes a statement: "because", "we"
//	subject  begins one, but states nothing yet: "the", "my"
//	clause   makes a statement of the clause: "is"
//	ending   how a word ends that makes a statement: "ed"
//	reason   makes the clause the reason of a yes: "anyway", "it needs"
//	else     what goes wrong without the act, or stays open elsewhere, which states something and denies nothing there:
//	         "otherwise nothing works", "I don't want to close it"
//	lest     begins such a clause: "without it"
//	told     a doubtful word that a story may hold: "yesterday"
//	inner    denies a part of what is told: "hasn't"
//	wish     says what is wanted or allowed, so a denial beside it may be one of the act
//	doubt    a condition, a contrast, somebody else's words, another time; no unknown word may stand beside it
//	scene    a doubtful word that a story may hold beside a yes with an order of the act by its name, where its clause
//	         has begun and says nothing of what is wanted or to come: "before I drove off", "over coffee"
//	but      leads from a story to the first order: "I'm driving, but yes, push it"
//	mend     corrects what was said before it: "no, sorry"; such a reply is no denial, and unclear
//	slip     corrects it in so many words: "no, wait, I mean". Where a yes that needs nothing else follows, the reply is
//	         that yes. After a mend or a word of hold, that yes must come with an order
//
// A yes that orders the act by its name may end in an afterthought, which need not be understood: what the speaker wants
// to learn from the act, whom it serves, or how it went; see afterthought.go. It sets no condition, time or limit, orders
// nothing else, and denies nothing.
//
// A reply that is the question again, without its question mark, is no yes: "fine to run the tests". Where a yes that
// needs nothing else stands in it too, it is an answer:
//
//	approve     says that something is fine, as the first words: "is fine", before "that", or before the act as a verb
//	            that nobody orders
//	infinitive  how such a verb ends, or with an * the word before it: "to"
//
// An imperative is an order. Many languages name an act in another form: as an infinitive, a noun, the bare verb of
// Chinese. A reply that only names the act with its object in that form is the question heard back, unless a yes, a
// particle or a "please" beside it makes it an order. Where a language has one form for both, as English has, the reply
// is an order, unless the same words stand in the question:
//
//	cite        how a verb ends that names what is done, or the whole of it in languages without spaces: "ing"
package consent
