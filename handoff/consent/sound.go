package consent

import "cmp"

// letterNames are letters as speech recognition spells them in a name.
var letterNames = map[string]string{
	"bee": "b", "sea": "c", "see": "c", "dee": "d", "gee": "g", "jay": "j", "kay": "k", "ell": "l", "em": "m", "en": "n", "oh": "o",
	"pea": "p", "pee": "p", "queue": "q", "cue": "q", "are": "r", "ess": "s", "tea": "t", "tee": "t", "vee": "v", "ex": "x", "zee": "z", "zed": "z", "eye": "i", "eff": "f", "aitch": "h", "el": "l", "ay": "a",
}

// homophones are English words that sound like a harmless one.
var homophones = map[string]string{
	"shore": "sure", "due": "do", "dew": "do", "coarse": "course", "write": "right", "rite": "right", "grate": "great", "buy": "by", "bye": "by",
	"aloud": "allowed", "ewe": "you", "pleas": "please", "guessed": "guest", "fore": "for", "thee": "the", "inn": "in",
	"sew": "so", "sow": "so", "wright": "right",
}

// respelled writes homophones as the word they sound like.
func respelled(tokens []string) []string {
	out := make([]string, len(tokens))
	for i, t := range tokens {
		out[i] = cmp.Or(homophones[t], t)
	}
	return out
}

// fluent is a reply without what a speaker began and said again: "ye yes", "go a go ahead", "the the".
func (h heard) fluent() heard {
	out := h
	out.tokens, out.apart, out.marked = nil, nil, nil
	for i := 0; i < len(h.tokens); {
		if n := restarted(h.tokens[i:]); n > 0 && h.unbroken(i, 2*n) {
			i += n
			continue
		}
		out.tokens, out.apart, out.marked = append(out.tokens, h.tokens[i]), append(out.apart, h.apart[i]), append(out.marked, h.marked[i])
		i++
	}
	return out
}

// restarted is how many tokens at the front are the beginning of what follows them, at most two.
func restarted(tokens []string) int {
	for n := 1; n <= 2 && 2*n <= len(tokens); n++ {
		if n == 1 && tokens[0] == tokens[1] && objects[tokens[0]] { // "allow it, it can't work without"
			continue
		}
		if startsWith(tokens[n:], tokens[:n-1]) && isBeginning(tokens[n-1], tokens[2*n-1]) && (tokens[n-1] == tokens[2*n-1] || !articles[tokens[n-1]]) {
			return n
		}
	}
	return 0
}

// articles are little words with which the next one often begins: "a api". Set once.
var articles = setOf("a an i o e y la le de da do to il los las um en em na no w z u я и в с у а і к з")

// isBeginning tells whether a word is the beginning of another one. Scripts without spaces have none.
func isBeginning(part, whole string) bool {
	return len(part) <= len(whole) && whole[:len(part)] == part && !isDense([]rune(part)[0])
}

// soundsLike tells whether speech recognition may have written a word of the question as another one:
// the same consonants, one letter more, less or other ("get" for "git").
func soundsLike(heard, word string) bool {
	if len(word) < 3 || loaded[heard] || consonants(heard) != consonants(word) || consonants(word) == "" {
		return false
	}
	short, long := heard, word
	if len(short) > len(long) {
		short, long = long, short
	}
	if len(long)-len(short) > 1 {
		return false
	}
	same := 0
	for same < len(short) && short[same] == long[same] {
		same++
	}
	if len(short) == len(long) {
		return same == len(short) || short[same+1:] == long[same+1:]
	}
	return short[same:] == long[same+1:]
}

// consonants are the letters of an English word that carry its sound; "" for anything else.
func consonants(word string) string {
	var out []byte
	for i := range len(word) {
		switch c := word[i]; {
		case c < 'a' || c > 'z':
			return ""
		case i > 0 && (c == 'a' || c == 'e' || c == 'i' || c == 'o' || c == 'u'):
		default:
			out = append(out, c)
		}
	}
	return string(out)
}
