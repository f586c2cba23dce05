package risk

import (
	"path"
	"regexp"
	"strings"
)

// turns has the kinds of the operands that may still come. A kind that ends in "?" may be left out; one that ends in
// "*" may come any number of times.
type turns struct {
	left  []string
	begun bool // an operand has come
}

// next returns the risk of the next operand; high if none may come.
func (t *turns) next(place *whereabouts, arg string) Tier {
	t.begun = true
	for len(t.left) > 0 {
		kind := t.left[0]
		if many, ok := strings.CutSuffix(kind, "*"); ok {
			return place.operand(many, arg)
		}
		t.left = t.left[1:]
		kind, spare := strings.CutSuffix(kind, "?")
		if risk := place.operand(kind, arg); risk < High || !spare {
			return risk
		}
	}
	return High
}

// end returns high if an operand is missing.
func (t *turns) end() Tier {
	for _, kind := range t.left {
		if !strings.HasSuffix(kind, "*") && !strings.HasSuffix(kind, "?") {
			return High
		}
	}
	return Low
}

// operand returns the risk of a word as an operand of a kind: high if it is not of that kind.
func (w *whereabouts) operand(kind, word string) Tier {
	switch kind {
	case "text", "free":
		return Low
	case "out":
		if word == "/dev/null" {
			return Low
		}
		return w.operand("in", word)
	case "read", "in":
		if strings.ContainsAny(word, "*?[]{}$\\`'\"") || strings.Contains(word, "://") {
			return High
		}
		if kind == "read" {
			return w.read(word)
		}
		return w.write(word)
	case "rev":
		return w.revision(word)
	case "glob":
		if !patterns[kind].MatchString(word) || word[0] != '!' && !hasKnownEnding(word) {
			return High
		}
		return Low
	case "setting":
		if name, value, _ := strings.Cut(word, "="); !oneOf(settings, name) || !plain.MatchString(value) {
			return High
		}
		return Low
	case "task":
		if name, part, _ := strings.Cut(word, ":"); !oneOf(tasks, name) || !plain.MatchString(part) {
			return High
		}
		return Low
	case "url":
		return w.download(word)
	case "module":
		if w.operand("in", word) == Medium {
			return Medium
		}
	}
	if p, ok := patterns[kind]; !ok || !p.MatchString(word) {
		return High
	}
	return Low
}

// revision returns the risk of a word that Git takes as a revision, a range of these, a path, or a path at a revision.
func (w *whereabouts) revision(word string) Tier {
	at, file, found := strings.Cut(word, ":")
	switch {
	case !found && w.operand("read", word) < High:
		return w.operand("read", word)
	case !patterns["rev"].MatchString(word) || strings.Trim(word, ".") == "":
		return High
	case found:
		return max(w.revision("./"+at), w.operand("read", file))
	}
	for end := range strings.SplitSeq(strings.Replace(strings.TrimPrefix(word, "^"), "...", "..", 1), "..") {
		if end != "" && w.write(end) == High {
			return High
		}
	}
	return Low
}

// download returns the risk of downloading an address: low if it is on the public network, and its file name may be
// written.
func (w *whereabouts) download(address string) Tier {
	parts := https.FindStringSubmatch(address)
	if parts == nil {
		return High
	}
	host, last, file := strings.ToLower(parts[1]), strings.ToLower(parts[2]), "/"+parts[3]
	if oneOf(privateNames, last) || strings.HasPrefix(host, "metadata.") || saysAddress.MatchString(host) {
		return High
	}
	if base := path.Base(file); base != "/" && w.write(base) == High {
		return High
	}
	return Low
}

const (
	// settings are variables that only choose among the usual actions of a program.
	settings = `CI NO_COLOR FORCE_COLOR NODE_ENV GOOS GOARCH CGO_ENABLED GOMAXPROCS LANG LC_ALL TZ RUST_BACKTRACE
		PYTHONUNBUFFERED TERM COLUMNS`
	// tasks are common names of build and test tasks.
	tasks = `all test tests unit e2e check lint vet build compile fmt format typecheck type-check tsc coverage doc docs
		verify validate assemble package`
	// privateNames are last parts of host names that are not on the public network.
	privateNames = "local localhost localdomain internal intranet lan home corp private test invalid arpa onion"
)

var (
	plain  = regexp.MustCompile(`^[\w.-]*$`)
	number = regexp.MustCompile(`^[+-]?[0-9]+(\.[0-9]+)?[smhdkKMG]?$`)
	// https matches an address with a host name: the host, its last part, and the path.
	https = regexp.MustCompile(`^https://((?:[A-Za-z0-9-]+\.)+([A-Za-z]{2,}))(?::443)?` +
		`(?:/([\w./~%+,=&@:-]*)(?:\?[\w./~%+,=&?@:-]*)?)?$`)
	// saysAddress matches a host name that stands for an IP address.
	saysAddress = regexp.MustCompile(`(^|[.-])[0-9]+[.-][0-9]+[.-][0-9]+[.-][0-9]+[.-]` +
		`|(^|\.)(nip\.io|sslip\.io|localtest\.me|lvh\.me)$`)
)

const (
	sedLines   = `([0-9]+|\$|/[^/\\]*/)(,(\+?[0-9]+|\$|/[^/\\]*/))?`
	sedSlashes = `/([^/\\]|\\.)*/([^/\\]|\\.)*/`
	sedBars    = `\|([^|\\]|\\.)*\|([^|\\]|\\.)*\|`
	sedHashes  = `#([^#\\]|\\.)*#([^#\\]|\\.)*#`
	sedMarks   = sedSlashes + `|` + sedBars + `|` + sedHashes
	jqPath     = `(\.(\w+|"[\w -]+")?(\[([0-9]*|"[\w -]+")\])*)+`
	jqStep     = `(` + jqPath + `|length|keys|type)`
	awkFields  = `(\$([0-9]+|NF)|NR|"[ :,;|=\w-]*"|,| )`
)

// patterns has the kinds whose words have a form. Set once.
var patterns = map[string]*regexp.Regexp{
	"num":     number,
	"span":    regexp.MustCompile(`^[0-9]+(,[+-]?[0-9]+)?$`),
	"blank":   regexp.MustCompile(`^$`),
	"close":   regexp.MustCompile(`^\]$`),
	"stamp":   regexp.MustCompile(`^\+`),
	"item":    regexp.MustCompile(`^\w[\w:]*$`),
	"name":    regexp.MustCompile(`^\w[\w./-]*$`),
	"remote":  regexp.MustCompile(`^(origin|upstream|fork)$`),
	"rev":     regexp.MustCompile(`^[\w@^:.][\w@^:./~{}+-]*$`),
	"format":  regexp.MustCompile(`^([^%\\]|%s|%%|\\n|\\t)*$`),
	"print":   regexp.MustCompile(`^` + sedLines + `p(;` + sedLines + `p)*$|^` + sedLines + `d$`),
	"replace": regexp.MustCompile(`^(` + sedLines + `)?s(` + sedMarks + `)[gIip0-9]*$`),
	"fields":  regexp.MustCompile(`^(/[\w .:=-]*/ ?)?(NR ?[=<>]=? ?[0-9]+ ?)?\{ ?print(` + awkFields + `)* ?\}$`),
	"query":   regexp.MustCompile(`^` + jqStep + `( ?\| ?` + jqStep + `)*$`),
	"glob":    regexp.MustCompile(`^!?(\*\*/|[\w-]+/)*(\*|[\w-]+)\.\w+$|^!(\*\*/)?[\w/-]+(/\*\*?)?$`),
	"package": regexp.MustCompile(`^(\.|(@\w[\w.-]*/)?[A-Za-z0-9]([\w.-]*\w)?(\[[\w,-]+\])?` +
		`([@=<>~^!]{1,2}[\w*][\w.*-]*)?)$`),
	"module": regexp.MustCompile(`^[a-z0-9-]+(\.[a-z0-9-]+)+(/[\w.~-]+)*(@[\w.+-]+)?$`),
}
