package risk

import (
	"regexp"
	"strings"
	"unicode"
)

// A row of the table accepts commands. See [table] for its syntax.
type row struct {
	tier     Tier
	what     string
	flags    string
	operands string
}

// names reports whether a command has the row's name, and returns the words after the name.
func (r row) names(words []string) ([]string, bool) {
	for want := range strings.FieldsSeq(r.what) {
		if len(words) == 0 || !oneOf(want, words[0]) {
			return nil, false
		}
		words = words[1:]
	}
	return words, true
}

// oneOf reports whether a word is in a list whose words are separated by "|" or blanks.
func oneOf(list, word string) bool {
	for w := range strings.FieldsFuncSeq(list, func(c rune) bool { return c == '|' || unicode.IsSpace(c) }) {
		if w == word {
			return true
		}
	}
	return false
}

// arguments returns the risk of the words after a row's name: high unless each is a listed flag, the value of one, or
// an operand of a kind that may come next.
func (r row) arguments(place *whereabouts, args []string) Tier {
	risk, turns := Low, turns{left: strings.Fields(r.operands)}
	for ended := r.flags == "*"; len(args) > 0; args = args[1:] {
		arg := args[0]
		if !ended && arg == "--" {
			ended = true
			continue
		}
		if ended || len(arg) < 2 || arg[0] != '-' {
			risk = max(risk, turns.next(place, arg))
			continue
		}
		kind, value, attached := r.flag(arg)
		switch {
		case kind == "" || kind == "text" && turns.begun:
			return High
		case kind == "none":
			continue
		case !attached && len(args) < 2:
			return High
		case !attached:
			value, args = args[1], args[1:]
		}
		risk = max(risk, place.operand(kind, value))
	}
	return max(risk, turns.end())
}

// flag returns the kind of a flag's value: "none" if it takes none, "" if the flag is not listed; and the value, if it
// is attached. The flag may be a cluster of letters.
func (r row) flag(arg string) (kind, value string, attached bool) {
	name, value, attached := strings.Cut(arg, "=")
	if kind = r.listed(name); kind != "" {
		return optional(kind, value, attached)
	}
	if number.MatchString(arg[1:]) && r.listed("-#") != "" {
		return "none", "", false
	}
	if strings.HasPrefix(arg, "--") || longFlag.MatchString(r.flags) {
		return "", "", false
	}
	for i := 1; i < len(arg); i++ {
		kind = r.listed("-" + arg[i:i+1])
		if value = arg[i+1:]; kind != "none" {
			return optional(kind, value, value != "")
		}
	}
	return kind, "", false
}

// optional replaces the kind "=", of a value that may be left out, by the kind for a present or missing value.
func optional(kind, value string, attached bool) (string, string, bool) {
	switch {
	case kind == "=" && attached:
		return "free", value, true
	case kind == "=", kind == "none" && !attached:
		return "none", "", false
	case kind == "none":
		return "", "", false
	}
	return kind, value, attached
}

// longFlag matches a word after one dash in a list of flags. In such a row, letters are not clustered.
var longFlag = regexp.MustCompile(`(^|\s)-\w\w`)

// listed returns the kind of a flag's value in the row: "none" for "-n", "num" for "-n:num", "=" for "--color=", whose
// value may be left out; "": the flag is not listed.
func (r row) listed(flag string) string {
	for f := range strings.FieldsSeq(r.flags) {
		name, kind, takes := strings.Cut(f, ":")
		switch {
		case name == flag && takes:
			return kind
		case f == flag:
			return "none"
		case f == flag+"=":
			return "="
		}
	}
	return ""
}
