package spoken

import "strings"

// Words of several languages, in lower case and without diacritics. Set once.
var (
	// numberWords are the numbers that people say inside names ("node two").
	numberWords = pairs(`
		zero 0 one 1 two 2 three 3 four 4 five 5 six 6 seven 7 eight 8 nine 9 ten 10 eleven 11 twelve 12
		thirteen 13 fourteen 14 fifteen 15 sixteen 16 seventeen 17 eighteen 18 nineteen 19 twenty 20
		thirty 30 forty 40 fifty 50 sixty 60 seventy 70 eighty 80 ninety 90
		null 0 eins 1 zwei 2 zwo 2 drei 3 vier 4 funf 5 sechs 6 sieben 7 acht 8 neun 9 zehn 10 elf 11 zwolf 12
		deux 2 trois 3 quatre 4 cinq 5 sept 7 huit 8 neuf 9 dix 10
		cero 0 uno 1 dos 2 tres 3 cuatro 4 cinco 5 seis 6 siete 7 ocho 8 nueve 9 diez 10
		dois 2 duas 2 quatro 4 sete 7 oito 8 nove 9 dez 10
		tre 3 quattro 4 cinque 5 sette 7 otto 8 dieci 10
		een 1 twee 2 drie 3 vijf 5 zes 6 zeven 7 negen 9 tien 10
		jeden 1 dwa 2 trzy 3 cztery 4 piec 5 szesc 6 siedem 7 osiem 8 dziewiec 9 dziesiec 10`)

	// numberSounds are words that stand for a number at the end of a name or before a number ("build to").
	numberSounds = pairs(`oh 0 won 1 to 2 too 2 tree 3 for 4 fore 4 ate 8`)

	// ordinals stand for numbers ("the first build machine").
	ordinals = pairs(`
		first 1 second 2 third 3 fourth 4 fifth 5 erste 1 ersten 1 zweite 2 zweiten 2 dritte 3 dritten 3
		premier 1 premiere 1 deuxieme 2 troisieme 3 primero 1 primera 1 segundo 2 segunda 2 tercero 3 tercera 3
		primo 1 secondo 2 terzo 3`)

	// letterNames are the names of letters, as a recogniser writes them.
	letterNames = pairs(`
		ay a bee b be b pea p pee p tea t tee t cee c sea c see c dee d gee g jay j kay k el l ell l em m en n
		oh o queue q cue q are r ar r ess s you u ewe u vee v ex x why y wye y zee z zed z eye i aye i eff f aitch h`)

	// fillers are words around names that do not distinguish names.
	fillers = strings.Fields(`
		the my our your this that these those a an and on at in of to from for with by about into is its we me
		please um uh er hmm ok okay well just so like
		machine server computer project repo repository number called named
		session thread conversation chat one thing stuff work task where which what does do
		point dot
		der die das den dem des ein eine einen einem einer mein meine meinen meinem unser unsere auf im am
		vom zum zur fur und
		mit von bitte
		le la les un une des du de mon ma mes notre sur dans au aux et pour avec il vous plait
		el los las lo una unos del mi mis en con y por favor para al
		il gli nel nella sul sulla mio mia che da di si per favore
		os as no na meu minha do dos das em um uma
		het een mijn op van
		na w do moj moja prosze`)

	// newest are words for the session that was worked on last.
	newest = strings.Fields(`latest newest last recent current neueste neuesten letzte letzten dernier
		derniere ultimo ultima
		reciente`)
)

// pairs reads a list of words, each with its replacement.
func pairs(list string) map[string]string {
	fields, out := strings.Fields(list), map[string]string{}
	for i := 0; i+1 < len(fields); i += 2 {
		out[fields[i]] = fields[i+1]
	}
	return out
}

// plainLetters are groups of a plain letter and its forms with diacritics.
const plainLetters = "aàáâãäåāăą cçćč dďđ eèéêëēęě gğ iìíîïī lł nñńň oòóôõöøōő rř sśšşș tťț uùúûüūůű yýÿ zźżž"

// plain maps a letter to its form without diacritics, and some signs to words. Set once.
var plain = func() map[rune]string {
	out := map[rune]string{'ß': "ss", 'æ': "ae", 'œ': "oe", '+': " plus ", '#': " sharp ", '&': " and ", '/': " "}
	for group := range strings.FieldsSeq(plainLetters) {
		letters := []rune(group)
		for _, r := range letters[1:] {
			out[r] = string(letters[0])
		}
	}
	return out
}()

// A soundRule says how letters sound.
type soundRule struct{ letters, sound string }

// soundRules map spellings of consonants to sounds, by their first letter, in the order in which they are tried. They
// fit several languages. Set once.
var soundRules = func() map[byte][]soundRule {
	out := map[byte][]soundRule{}
	for rule := range strings.FieldsSeq(`
		tsch:X sch:X tch:X dge:X ch:X sh:X gn:N kn:N ph:F ght:T gh: wr:R
		ck:K ce:S ci:S cy:S ge:X gi:X gy:X tz:TS x:KS
		b:P p:P d:T t:T f:F v:F g:K k:K c:K q:K j:X l:L m:M n:N r:R s:S z:S`) {
		letters, sound, _ := strings.Cut(rule, ":")
		out[letters[0]] = append(out[letters[0]], soundRule{letters, sound})
	}
	return out
}()
