package speakable

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"switchboard/handoff"
)

// Patterns of text that is left out or replaced. Set once.
var (
	escapes    = regexp.MustCompile("\x1b\\[[0-9;?]*[A-Za-z]|\x1b\\][^\x07]*\x07?|[\x00-\x08\x0b-\x1f\x7f]")
	urls       = regexp.MustCompile(`\b[A-Za-z][A-Za-z0-9+.-]*://\S*|\bwww\.\S+|\S+@\w[\w-]*\.\w[\w.-]*`)
	uuids      = regexp.MustCompile(`(?i)\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{18,}\b`)
	hexLike    = regexp.MustCompile(`(?i)(?:\b(?:as|at|als) )?\b(?:(?:sha\d+:)?[0-9a-f]{7,}|0x[0-9a-f]+)\b`)
	emojiNames = regexp.MustCompile(`(^|\s):[a-z0-9_+-]+:`)
	lastComma  = regexp.MustCompile(`[\s,;]+$`)
	keyLike    = regexp.MustCompile(`\b(?:sk|pk|gh[opsu]|xox[a-z]|ek|AKIA|eyJ)[-_]?[\w.-]{12,}|[A-Za-z0-9+/=]{32,}`)
	paths      = regexp.MustCompile(`(?:[A-Za-z]:)?(?:\.{1,2}|~)?(?:[/\\][\w.@+*-]+){2,}[/\\]?` +
		`|(?:[\w.@+-]+[/\\]){2,}[\w.@+*-]*|\b[\w.@+-]+/[\w.@+-]*\.[A-Za-z]\w{0,5}\b|(?:\.{1,2}|~)/[\w.@+*-]*`)
	rootPaths = regexp.MustCompile(`(^|[\s("'])/([\w.@+*-]+)`)
	fileLines = regexp.MustCompile(`\b([\w-]+\.(?:go|py|jsx?|tsx?|mjs|rs|java|kt|c|h|cc|cpp|hpp|cs|rb|php|swift|md` +
		`|json|ya?ml|toml|sh|sql|html|css|vue|proto|tf|txt))(?::|#L)(\d+)(?:[:-]L?\d+)*\b`)
	codeSigns    = regexp.MustCompile("[{}()\\[\\];=<>|&$\"'\\\\^%!?#`]|--\\S")
	markSigns    = regexp.MustCompile("`+|\\*{2,}|~~+|__+|\\||://|(?:^|\\s)#{1,6}\\s")
	tildes       = regexp.MustCompile(`(^|[\s(])~(\d)`)
	arrows       = regexp.MustCompile(`\s*(?:→|⇒|➜|->|=>)\s*`)
	hollowPairs  = regexp.MustCompile(`\(\s*[,;:]?\s*\)|\[\s*\]|""|''|“\s*”|„\s*“`)
	looseStops   = regexp.MustCompile(`\s+([.,;:!?]+)(\s|$)`)
	footnotes    = regexp.MustCompile(`\[\^[\w-]+\]:?`)
	inlineJSON   = regexp.MustCompile(`\{\s*"[^{}]*":[^{}]*\}`)
	variables    = regexp.MustCompile(`(?:\$\{?\w+\}?|%\w+%)([/\\][\w.@+*-]+)`)
	doubledStops = regexp.MustCompile(`[,;:]+\s*([.!?])|([.!?:;,])\s*[,;]+|([:;,])(?:\s*:)+`)
	spaces       = regexp.MustCompile(`\s+`)
)

// emojiWords replaces the signs that have a meaning; all other emojis are left out. Set once.
var emojiWords = strings.NewReplacer(
	"❌", " failed: ", "✗", " failed: ", "✘", " failed: ", "🔴", " failed: ", "⚠️", " warning: ", "⚠", " warning: ",
	"≥", " at least ", "≤", " at most ", "≈", " about ", "×", " times ",
)

// plainWords leaves out or replaces what cannot be said. Signs are removed before marks are searched, since the removal
// may join the two halves of a mark.
func plainWords(s string) string {
	s = arrows.ReplaceAllString(s, " to ")
	s = emojiNames.ReplaceAllString(s, "$1")
	s = strings.Map(sayable, emojiWords.Replace(s))
	s = urls.ReplaceAllString(s, "")
	s = footnotes.ReplaceAllString(s, "")
	s = inlineJSON.ReplaceAllString(s, "some data")
	s = variables.ReplaceAllString(s, ".$1")
	s = uuids.ReplaceAllString(s, "")
	s = paths.ReplaceAllStringFunc(s, lastName)
	s = rootPaths.ReplaceAllString(s, "$1$2")
	s = fileLines.ReplaceAllString(s, "$1 line $2")
	s = keyLike.ReplaceAllStringFunc(s, unlessWord)
	s = hexLike.ReplaceAllStringFunc(s, unlessWord)
	s = tildes.ReplaceAllString(s, "${1}about $2")
	s = hollowPairs.ReplaceAllString(s, "")
	s = looseStops.ReplaceAllString(s, "$1$2")
	s = doubledStops.ReplaceAllString(s, "$1$2$3")
	s = markSigns.ReplaceAllString(s, " ")
	s = spaces.ReplaceAllString(lastComma.ReplaceAllString(s, ""), " ")
	return strings.TrimLeft(s, ".,;:!? ")
}

// lastName returns the last name of a path. Text that only looks like a path stays: dates, ratios, names like TCP/IP.
func lastName(p string) string {
	if p == strings.ToUpper(p) && !strings.ContainsAny(p[:1], `/\.~`) {
		return p
	}
	parts := strings.FieldsFunc(p, func(r rune) bool { return r == '/' || r == '\\' })
	for len(parts) > 0 && strings.Trim(parts[len(parts)-1], ".*~") == "" {
		parts = parts[:len(parts)-1]
	}
	if len(parts) == 0 {
		return ""
	}
	name := parts[len(parts)-1]
	if rest := strings.TrimRight(name, "."); rest != name { // the end of a sentence
		return rest + "."
	}
	return name
}

// unlessWord returns "" for a hash or key, and s for a word or a number.
func unlessWord(s string) string {
	word := s[strings.LastIndexByte(s, ' ')+1:]
	if strings.ContainsFunc(word, unicode.IsDigit) && strings.ContainsFunc(word, unicode.IsLetter) {
		return ""
	}
	return s
}

// sayable returns -1 for emojis, their joiners, and invisible characters.
func sayable(r rune) rune {
	switch {
	case r == '°':
		return r
	case unicode.IsSpace(r):
		return ' '
	case unicode.In(r, unicode.So, unicode.C, unicode.Variation_Selector),
		r >= 0x1f000 && r < 0x1fb00, r == utf8.RuneError:
		return -1
	}
	return r
}

// spokenCode returns a code span for speech: a name or a short command as it is, anything else as "some code".
func spokenCode(code string) string {
	code = strings.TrimSpace(code)
	name := strings.TrimRight(code, "()")
	if len(name) <= maxCodeSize && len(strings.Fields(name)) <= maxCodeWords && !codeSigns.MatchString(name) {
		return name
	}
	if said := paths.FindString(code); said == code { // a path with a sign in it
		return code
	}
	return "some code"
}

// maxNoiseLine bounds the lines of diffs and stack traces, in bytes: longer lines count as prose.
const maxNoiseLine = 500

// prose removes the content of fenced code, and lines of diffs and stack traces without a fence. It reports whether it
// removed anything.
func prose(md string) (string, bool) {
	var out strings.Builder
	fence, diff, cut := "", false, false
	for line := range strings.Lines(md) {
		trimmed := strings.TrimSpace(line)
		switch {
		case fence != "":
			if !strings.HasPrefix(trimmed, fence) || strings.Trim(trimmed, fence[:1]) != "" {
				cut = true
				continue
			}
			fence = ""
		case len(line) > maxNoiseLine:
			diff = false
		case fenceLine.MatchString(line):
			fence, diff = fenceLine.FindStringSubmatch(line)[1], false
		case diffLine.MatchString(line):
			diff, cut = true, true
			continue
		case diff && trimmed != "" && strings.ContainsRune("+- ", rune(line[0])):
			continue
		case traceLine.MatchString(line):
			cut = true
			continue
		default:
			diff = false
		}
		out.WriteString(line)
	}
	return out.String(), cut
}

// Patterns of lines that begin fenced code or a diff, and of lines of stack traces in common languages. Set once.
var (
	fenceLine = regexp.MustCompile("^\\s*(`{3,}|~{3,})[^`]*$")
	diffLine  = regexp.MustCompile(`^(?:diff --git |index [0-9a-f]{7,}\.\.|--- (?:a/|/dev/null)` +
		`|\+\+\+ (?:b/|/dev/null)|@@ .* @@)`)
	traceLine = regexp.MustCompile(`^(?:goroutine \d+ \[.*\]:|\s+at .+(?:\(.*\)|:\d+)\s*$|\s+File ".*", line \d+` +
		`|Traceback \(most recent call last\):|\s*\S+\.(?:go|rs|c|cc|cpp):\d+(?::\d+)? \+0x[0-9a-f]+` +
		`|[\w./*()-]+\((?:0x[0-9a-f]+|\.\.\.|, ?|\{)*\}?\)\s*$|\s+\d+: .*0x[0-9a-f]+|exit status \d+\s*$)`)
)

// CutSentence shortens text to the last sentence end below limit bytes, or, without one, to the last word.
func CutSentence(s string, limit int) string {
	head := strings.TrimSuffix(handoff.Clip(s, limit), "…")
	for i := len(head) - 1; i > limit/4; i-- {
		if sentenceEnd(s, i) {
			return head[:i+1]
		}
	}
	if i := strings.LastIndexByte(head, ' '); i > 0 {
		return strings.TrimRight(head[:i], " ,;:.") + "…"
	}
	return head
}

// meaningful is the least length of a sentence that says something, in bytes: "Okay." says nothing.
const meaningful = 12

// FirstSentence returns the beginning of a text up to the end of the first sentence that says something; "": there is
// no such end.
func FirstSentence(s string) string {
	for i := meaningful - 1; i < len(s); i++ {
		if sentenceEnd(s, i) {
			return s[:i+1]
		}
	}
	return ""
}

// abbreviations are words whose dot ends no sentence. Set once.
var abbreviations = map[string]bool{
	"e.g": true, "i.e": true, "etc": true, "vs": true, "approx": true, "cf": true, "no": true, "mr": true, "mrs": true,
	"dr": true, "st": true,
	"z.b": true, "d.h": true, "u.a": true, "bzw": true, "ca": true, "usw": true, "evtl": true, "ggf": true, "nr": true,
	"inkl": true, "vgl": true,
}

// sentenceEnd reports whether a sentence ends at byte i: not within a number, a name or an abbreviation.
func sentenceEnd(s string, i int) bool {
	if slices.ContainsFunc([]string{"。", "！", "？"}, func(stop string) bool { return strings.HasSuffix(s[:i+1], stop) }) {
		return true
	}
	if s[i] != '.' && s[i] != '!' && s[i] != '?' || i+1 < len(s) && s[i+1] != ' ' {
		return false
	}
	if s[i] != '.' || i+1 == len(s) {
		return true
	}
	begin := strings.LastIndexByte(s[:i], ' ') + 1
	word := strings.ToLower(strings.TrimLeft(s[begin:i], `("'„“`))
	switch {
	case word == "", abbreviations[word]:
		return false
	case utf8.RuneCountInString(word) == 1 && word >= "a": // "z. B.", but "12.5 s."
		before := strings.TrimRight(s[:begin], " ")
		return before != "" && unicode.IsDigit(rune(before[len(before)-1]))
	}
	return len(word) > 2 || strings.Trim(word, "0123456789") != "" // "am 3. Mai"
}

// CountWord returns a number, up to ten as a word; with first, also the word "things".
func CountWord(n int, first bool) string {
	words := []string{"no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"}
	w := fmt.Sprint(n)
	if n < len(words) {
		w = words[n]
	}
	switch {
	case !first:
		return w
	case n == 1:
		return w + " thing"
	}
	return w + " things"
}
