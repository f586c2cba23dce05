package risk

import (
	_ "embed"
	"slices"
	"strings"
	"unicode"
)

// A row of the table accepts commands. table.txt explains the words that it consists of.
type row struct {
	tier                     Tier
	section                  string // the tools that it is one of, in capitals
	program, flags, operands []string
}

//go:embed table.txt
var tableText string

// table has the commands that are not high. Set once.
var table = readTable(tableText)

// readTable returns the rows of a text, which must be well-formed.
func readTable(text string) (rows []row) {
	section, shared := "", []string{}
	for line := range strings.Lines(strings.ReplaceAll(text, "\n    ", " ")) {
		words := strings.Fields(strings.NewReplacer(shared...).Replace(line))
		switch {
		case len(words) == 0 || words[0][0] == '#':
			continue
		case words[0][0] == '@':
			shared = append(shared, words[0], strings.Join(words[2:], " "))
			continue
		case words[0][0] == '[':
			section = strings.ToUpper(strings.Trim(words[0], "[]"))
			continue
		}
		r := row{tier: Tier(slices.Index(tierNames[:], words[0])), section: section}
		for _, word := range words[1:] {
			word = strings.ReplaceAll(word, "|", " ")
			switch {
			case word == "--" || unicode.IsUpper(rune(word[0])):
				r.operands = append(r.operands, word)
			case strings.HasPrefix(strings.TrimPrefix(word, "+"), "-"):
				r.flags = append(r.flags, word)
			default:
				r.program = append(r.program, strings.TrimPrefix(word, "="))
			}
		}
		rows = append(rows, r)
	}
	return rows
}

// listed returns the lowest risk of the rows of a section, or with "CMD" of all, that accept a command; without such a
// row, high.
func (w *whereabouts) listed(words []string, section string) Tier {
	risk := High
	for _, r := range table {
		n := len(r.program)
		if (section == "CMD" || r.section == section) && len(words) >= n && slices.EqualFunc(r.program, words[:n], oneOf) {
			risk = min(risk, max(r.tier, r.arguments(w, words[n:])))
		}
	}
	return risk
}

// arguments returns the risk of the words after a row's program: high unless each is a listed flag, the value of one,
// or an operand of a kind that may come next, and nothing is missing.
func (r row) arguments(place *whereabouts, args []string) Tier {
	risk, left, begun, ended := Low, r.operands, false, slices.Contains(r.operands, "WORDS*")
	had := map[int]bool{}
	for ; len(args) > 0 && risk < High; args = args[1:] {
		arg, kind := args[0], ""
		switch i := slices.Index(left, "--"); {
		case arg == "--" && i >= 0 && !slices.ContainsFunc(left[:i], required.MatchString):
			left, ended = left[i+1:], true
		case arg == "--" && !ended:
			ended = true
		case ended || len(arg) < 2 || arg[0] != '-':
			begun = true
			switch kind, left = place.next(left, arg); {
			case kind == "CMD":
				return max(risk, place.program(args))
			case oneOf(runs, kind):
				return max(risk, place.listed(args, kind))
			}
			risk = max(risk, place.operand(kind, arg))
		default:
			found, kind, value, attached := r.split(arg)
			switch {
			case len(found) == 0, kind == "" && attached, kind == "TEXT" && begun,
				len(kind) > 1 && !attached && len(args) < 2:
				return High
			case len(kind) > 1 && !attached:
				value, args = args[1], args[1:]
				fallthrough
			case len(kind) > 1:
				risk = max(risk, place.operand(kind, value))
			}
			for _, i := range found {
				had[i] = had[i] || !strings.HasPrefix(value, "!") // a pattern of what is left out asks for nothing
			}
		}
	}
	for i, f := range r.flags {
		if f[0] == '+' && !had[i] {
			return High
		}
	}
	if slices.ContainsFunc(left, required.MatchString) {
		return High
	}
	return risk
}

// split returns which flags a word is, as it may be a cluster of letters, and of the last one the kind of its value,
// and the value if it is attached. Letters are not clustered where a flag has a word after one dash.
func (r row) split(word string) (found []int, kind, value string, attached bool) {
	name, value, attached := strings.Cut(word, "=")
	if i, kind := r.flag(name); i >= 0 {
		return []int{i}, kind, value, attached
	}
	if i, _ := r.flag("-#"); i >= 0 && number.MatchString(word[1:]) {
		return []int{i}, "", "", false
	}
	if strings.HasPrefix(word, "--") || slices.ContainsFunc(r.flags, longFlag.MatchString) {
		return nil, "", "", false
	}
	for at := 1; at < len(word) && kind == ""; at++ {
		var i int
		if i, kind = r.flag("-" + word[at:at+1]); i < 0 {
			return nil, "", "", false
		}
		found, value = append(found, i), word[at+1:]
	}
	return found, kind, value, value != ""
}

// flag returns which flag has a name, -1 for none, and the kind of its value: "" takes none, "=" may take one.
func (r row) flag(name string) (i int, kind string) {
	for i, f := range r.flags {
		names, kind, _ := strings.Cut(strings.TrimPrefix(f, "+"), ":")
		if cut, ok := strings.CutSuffix(names, "="); ok {
			names, kind = cut, "="
		}
		if oneOf(names, name) {
			return i, kind
		}
	}
	return -1, ""
}

// next returns the kind of an operand, "" if none may come, and the kinds that may come after it.
func (w *whereabouts) next(left []string, arg string) (kind string, after []string) {
	for i, k := range left {
		kind = strings.TrimRight(k, "?*")
		switch {
		case k == "--":
			return "", nil
		case kind != k && i+1 < len(left) && w.operand(kind, arg) == High: // it may be of the next kind
		case kind+"*" == k:
			return kind, left[i:]
		default:
			return kind, left[i+1:]
		}
	}
	return "", nil
}
