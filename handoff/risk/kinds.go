package risk

import (
	"cmp"
	"regexp"
	"strings"
)

const (
	globs = "LIST TREE FILE IN FILTER PLAIN" // the kinds in which the shell may expand a "*"
	runs  = "CMD JS PY RB"                   // the kinds of words that are a command
)

// paths has the kinds that are paths, and how risky it is to use one, relative to the workspace. Set once.
var paths = map[string]func(rel string) Tier{
	"LIST": list, "TREE": list, "FILE": read, "SHOWN": read, "REV": rev, "IN": work, "CONTEXT": work, "PKG": build, "EDIT": edit,
	"OUT": out,
}

// operand returns the risk of a word as an operand or value of a kind: high if it is not of that kind.
func (w *whereabouts) operand(kind, word string) Tier {
	marks, judge := "?[]*{}$`'\"", paths[kind]
	switch {
	case strings.Contains(word, star) && !oneOf(globs, kind):
		return High
	case kind == "OUT" && word == "/dev/null", kind == "FILE" && word == "-", kind == "PKG" && word == "all",
		kind == "SHOWN" && patterns["FILTER"].MatchString(word):
		return Low
	case kind == "CONTEXT" && word != "." && !strings.HasPrefix(word, "./"): // it may be an address
		return High
	case oneOf("LIST REV", kind), kind == "IN" && !strings.Contains(word, ".."): // the program may expand it
		marks = "?[]$`'\""
		word, _, _ = strings.Cut(word, "::") // a test in a file
	}
	switch {
	case judge != nil && strings.ContainsAny(word, marks):
		return High
	case kind == "TREE" && ending(word) != "": // a file
		return w.each(word, read)
	case judge != nil:
		return w.each(word, judge)
	case kind == "BLOB":
		at, file, _ := strings.Cut(word, ":")
		return max(w.operand("REV", at), w.operand("FILE", file))
	case kind == "NAMED" && secret(word), kind == "WORD" && !isWord(word), kind == "PUSHED" && loud.MatchString(kebab(word)),
		patterns[kind] == nil || !patterns[kind].MatchString(strings.ReplaceAll(word, star, "*")):
		return High
	case kind == "NAMED" && (private.MatchString(word) || !oneOf(code+prose+data+"-", cmp.Or(ending(word), "-"))),
		kind == "PATTERN" && !isWord(word):
		return Medium
	}
	return Low
}

// isWord reports whether a pattern of a search finds neither everything nor what looks like a secret: each of its
// alternatives has three letters that must be there.
func isWord(pattern string) bool {
	for one := range strings.SplitSeq(strings.ReplaceAll(pattern, `\|`, "|"), "|") {
		if !literal.MatchString(one) || !letters.MatchString(escaped.ReplaceAllString(one, " ")) {
			return false
		}
	}
	return !secret(pattern) && !telling.MatchString(pattern)
}

var (
	longFlag = re(`(^|[+ ])-\w\w`)
	required = re(`[^?*]$`)
	number   = re(`^[+-]?[0-9]+(\.[0-9]+)?[smhdkKMG]?$`)
	// literal matches an alternative of a pattern whose letters must all be there; escaped its other parts.
	literal = re(`^(\\[swbd(){}\[\].?*+^$/-][*+]?|\.[*+]?|[^|*?\[\]{}+\\])*$`)
	escaped = re(`\\.`)
	letters = re(`\pL{3}|_\pL{2}|\pL{2}_`)
	// telling matches what is searched for to find secrets, besides what a secret is called.
	telling = re(`(?i)akia|begin|bearer|ghp_|\bsk-|xox|eyj|://|dsn|aws_|connection.?str`)
	// loud matches branches from which something is published.
	loud = words(`prod(uction)? live deploy(ment)? publish pages staging heroku`)
)

const (
	sedLines  = `([0-9]+|\$|/[^/\\]*/)(,(\+?[0-9]+|\$|/[^/\\]*/))?`
	sedMarks  = `/([^/\\]|\\.)*/([^/\\]|\\.)*/|\|([^|\\]|\\.)*\|([^|\\]|\\.)*\||#([^#\\]|\\.)*#([^#\\]|\\.)*#`
	jqPath    = `(\.(\w+|"[\w -]+")?(\[([0-9]*|"[\w -]+")\])*)+`
	jqStep    = `(` + jqPath + `|length|keys|type)`
	awkFields = `(\$([0-9]+|NF)|NR|"[ :,;|=\w-]*"|,| )`
)

var (
	re       = regexp.MustCompile
	anything = re(``)
	branch   = re(`^[A-Za-z][\w-]*(/[\w-][\w.-]*)*$`)
)

// patterns has the kinds whose words have a form. Set once.
var patterns = map[string]*regexp.Regexp{
	"TEXT": anything, "FREE": anything, "WORDS": anything, "WORD": anything, "PATTERN": anything, "NAMED": anything,
	"NUM": number, "SECONDS": re(`^[0-9]{1,3}(\.[0-9]+)?s?$`), "SPAN": re(`^[0-9]+(,[+-]?[0-9]+)?$`),
	"BLANK": re(`^$`), "CLOSE": re(`^\]$`), "STAMP": re(`^\+`), "ITEM": re(`^\w[\w:]*$`), "NAME": re(`^\w[\w./-]*$`),
	"PACKAGE": re(`^[\w@][\w./-]*$`), "VENV": re(`^\.?venv$`), "BRANCH": branch, "PUSHED": branch,
	"COMMIT": re(`^[0-9a-f]{6,40}$|^HEAD(~[0-9]+|\^)?$`), "REMOTE": oneWord("origin upstream fork"),
	"TRUNK":  re(`^(main|master|develop|dev|trunk|(feature|feat|fix|bugfix|hotfix|chore|refactor)/[\w-]+)$`),
	"FILTER": endingIn(code + prose), "PLAIN": endingIn(code + prose + data),
	"USER": oneWord(`user\.name user\.email init\.defaultBranch`),
	"LANG": oneWord("go rust c cpp cs java kotlin js ts py python ruby php swift css html md markdown"),
	// SET are variables that only choose among the usual actions of a program.
	"SET": re(`^(CI|NO_COLOR|FORCE_COLOR|NODE_ENV|GOOS|GOARCH|CGO_ENABLED|GOMAXPROCS|LANG|LC_ALL|TZ|RUST_BACKTRACE|` +
		`PYTHONUNBUFFERED|TERM|COLUMNS)=[\w.-]*$`),
	// TASK are whole names of tasks that build and test; EXTRA is passed to one.
	"TASK": oneWord(`all test tests unit e2e check lint vet build compile fmt format typecheck type-check tsc coverage doc
		docs verify validate assemble package spec help test:unit test:integration test:e2e test:ci test:coverage test:watch
		test:all test:types lint:fix lint:check lint:js lint:css format:check format:fix fmt:check check:types types:check
		build:dev build:ci test-unit test-integration testClasses spotlessCheck checkstyle test-compile`),
	"EXTRA": oneWord(`--coverage --watch=false --watchAll=false --run --ci --verbose --silent --runInBand --bail --fix
		--check --nocapture --exact --test-threads=1 -D -v warnings`),
	"FORMAT": re(`^([^%\\]|%s|%%|\\n|\\t)*$`),
	"SED":    re(`^(` + sedLines + `p(;` + sedLines + `p)*|` + sedLines + `d|(` + sedLines + `)?s(` + sedMarks + `)[gIip0-9]*)$`),
	"FIELDS": re(`^(/[\w .:=-]*/ ?)?(NR ?[=<>]=? ?[0-9]+ ?)?\{ ?print(` + awkFields + `)* ?\}$`),
	"QUERY":  re(`^` + jqStep + `( ?\| ?` + jqStep + `)*$`),
}

// oneWord returns what matches a word of a list.
func oneWord(list string) *regexp.Regexp {
	return re(`^(` + strings.Join(strings.Fields(list), "|") + `)$`)
}

// endingIn returns what matches a pattern of names with endings of a list, or of what is left out.
func endingIn(list string) *regexp.Regexp {
	one := "(" + strings.Join(strings.Fields(list), "|") + ")"
	return re(`^!|^(\*\*/|[\w-]+/)*(\*|\*?[\w-]+)(\.test|\.spec)?\.(` + one + `|\{` + one + `(,` + one + `)*\})$`)
}
