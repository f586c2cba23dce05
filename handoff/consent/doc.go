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
// A choice is written in brackets: "(it|they) may (|now) go" are four phrases. A word of an act that ends in * is the beginning of others. A phrase that denies and ends in $ does so only
// where the sentence does not go on with the act: "laat maar", never mind, but "laat maar installeren".
//
// A story with unknown words may stand beside a yes; see story.go. It is one or more clauses that each begin and state
// something as such a clause does, and hold no word of doubt but for what a story tells of the past and of habit. The
// reply must also order or permit the act or going ahead, and the clause that does is wholly understood; or the story
// is the reason of the yes before it. What it denies is not the act where it begins before that word and goes on after
// it without an order, a yes, or a word of what is wanted or allowed; elsewhere a denial that may be part of a story
// makes a reply unclear:
//
//	go       orders or permits to go ahead
//	opens    begins such a clause and makes a statement: "because", "we"
//	subject  begins one, but states nothing yet: "the", "my"
//	clause   makes a statement: "is"
//	ending   how words end that make one: "ed"
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
//	slip     does so in so many words: "no, wait, I mean"; where a yes that stands for itself follows, it is one. After a
//	         weaker mark that yes comes with an order
//
// A yes that orders the act by its name may end in an afterthought, which need not be understood: what the speaker wants
// to learn from the act, whom it serves, or how it went; see afterthought.go. It sets no condition, time or limit, orders
// nothing else, and denies nothing.
//
// What is said in the question's own order is the question again, heard or doubted, unless a yes stands apart from it:
//
//	approve     says that something is fine, as the first words: "is fine", before "that", or before the act as a verb
//	            that nobody orders
//	infinitive  how such a verb ends, or with an * the word before it: "to"
//
// An imperative is an order. A reply that only names the act with its object, in the form in which a language names what
// is done and orders nothing, is the question heard back: an infinitive, a noun, the bare verb of Chinese. A yes, a
// particle or a "please" beside it makes it an order. Where a language has one form for both, as English has, it is an
// order, unless its words stand so in the question:
//
//	cite        how a verb ends that names what is done, or the whole of it in languages without spaces: "ing"
package consent
