package risk

import (
	"regexp"
	"strings"
	"unicode"
)

// A row of the table accepts commands. See [table] for how it is written.
type row struct {
	tier     Tier
	what     string
	flags    string
	operands string
}

// names reports whether the command is the row's, and returns the words after its name.
func (r row) names(words []string) ([]string, bool) {
	for want := range strings.FieldsSeq(r.what) {
		if len(words) == 0 || !oneOf(want, words[0]) {
			return nil, false
		}
		words = words[1:]
	}
	return words, true
}

// oneOf reports whether a word is one of a list that is divided by "|" or blanks.
func oneOf(list, word string) bool {
	for w := range strings.FieldsFuncSeq(list, func(c rune) bool { return c == '|' || unicode.IsSpace(c) }) {
		if w == word {
			return true
		}
	}
	return false
}

// arguments is the risk of the words after a row's name: high unless each is a listed flag, the value of one, or an
// operand of the kind whose turn it is.
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

// flag returns the kind of value that a flag takes: "none" for none, "" for a flag that is not listed, and the value if
// it is attached. A flag is found as it is listed, or as one of a cluster of letters.
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

// optional turns the kind "=", a value that may be left out, into what is there.
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

// longFlag is a word behind one dash: then letters are not clustered.
var longFlag = regexp.MustCompile(`(^|\s)-\w\w`)

// listed returns the kind of a flag's value as the row has it: "-n" has none, "-n:num" a number, "--color=" one that
// may be left out.
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
