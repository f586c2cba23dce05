package risk

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// Bounds of a command line; a longer one is high.
const (
	maxLineBytes = 4096
	maxCommands  = 32
)

// star is an unquoted "*" in a word, which the shell expands to names that are not hidden. No line contains it itself.
const star = "\uE000"

// A command is a simple command of a line, all of it literal but for stars.
type command struct {
	after     string   // what joins it to the command before: ";", "&&", "||" or "|"
	sets      []string // "NAME=value" before the program
	words     []string // without quotes
	redirects []redirect
}

// A redirect has the kind of its path: FILE for input, OUT for output.
type redirect struct{ kind, path string }

// parseLine returns the simple commands of one line, which may be joined by ";", "&&", "||" and "|". It returns false
// if the line uses anything else of a shell. The result holds for other kinds of shells, too: a line with an unquoted
// character that means something to one of them is refused.
func parseLine(line string) ([]command, bool) {
	if len(line) > maxLineBytes || !utf8.ValidString(line) || strings.ContainsFunc(line, isUnseen) {
		return nil, false
	}
	parser := syntax.NewParser(syntax.Variant(syntax.LangBash), syntax.KeepComments(true))
	file, err := parser.Parse(strings.NewReader(line), "")
	if err != nil {
		return nil, false
	}
	r := &lineReader{ok: true}
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n.(type) {
		case nil, *syntax.File, *syntax.Stmt, *syntax.BinaryCmd, *syntax.CallExpr, *syntax.TimeClause, *syntax.Assign,
			*syntax.Redirect, *syntax.Word, *syntax.Lit, *syntax.SglQuoted, *syntax.DblQuoted:
		default: // comments, expansions, substitutions, compound commands, functions, ...
			r.ok = false
		}
		return r.ok
	})
	for _, s := range file.Stmts {
		r.statement(s, ";")
	}
	return r.commands, r.ok && len(r.commands) > 0 && len(r.commands) <= maxCommands
}

// isUnseen reports whether a character is invisible or looks like another: controls, marks of direction, wide blanks.
func isUnseen(c rune) bool {
	return c != ' ' && (c == unicode.ReplacementChar || unicode.In(c, unicode.C, unicode.Z))
}

// A lineReader collects commands. ok becomes false at the first syntax that is not allowed.
type lineReader struct {
	commands []command
	ok       bool
}

func (r *lineReader) statement(s *syntax.Stmt, after string) {
	r.ok = r.ok && !s.Negated && !s.Background && !s.Coprocess && !s.Disown
	if call, ok := s.Cmd.(*syntax.CallExpr); r.ok && ok {
		r.call(call, s.Redirs, after)
		return
	}
	r.ok = r.ok && len(s.Redirs) == 0
	switch c := s.Cmd.(type) {
	case *syntax.BinaryCmd:
		r.ok = r.ok && c.Op != syntax.PipeAll
		r.statement(c.X, after)
		r.statement(c.Y, c.Op.String())
	case *syntax.TimeClause:
		if r.ok = r.ok && !c.PosixFormat && c.Stmt != nil; r.ok {
			r.statement(c.Stmt, after)
		}
	default:
		r.ok = false
	}
}

func (r *lineReader) call(c *syntax.CallExpr, redirects []*syntax.Redirect, after string) {
	out := command{after: after}
	for _, a := range c.Assigns {
		r.ok = r.ok && !a.Append && !a.Naked && a.Index == nil
		out.sets = append(out.sets, a.Name.Value+"="+r.word(a.Value))
	}
	for _, w := range c.Args {
		out.words = append(out.words, r.word(w))
	}
	for _, d := range redirects {
		r.ok = r.ok && d.Hdoc == nil && (d.N == nil || d.N.Value == "0" || d.N.Value == "1" || d.N.Value == "2")
		switch to := r.word(d.Word); d.Op {
		case syntax.RdrIn:
			out.redirects = append(out.redirects, redirect{"FILE", to})
		case syntax.RdrOut, syntax.AppOut, syntax.RdrAll:
			out.redirects = append(out.redirects, redirect{"OUT", to})
		case syntax.DplOut:
			r.ok = r.ok && (to == "1" || to == "2") // only another name of a descriptor
		default:
			r.ok = false
		}
	}
	r.ok = r.ok && len(out.words) > 0
	r.commands = append(r.commands, out)
}

// word returns a word as the shell passes it to the program.
func (r *lineReader) word(w *syntax.Word) string {
	var text strings.Builder
	if w == nil {
		return ""
	}
	for _, part := range w.Parts {
		switch p := part.(type) {
		case *syntax.Lit:
			r.ok = r.ok && isBare(p.Value)
			text.WriteString(strings.ReplaceAll(p.Value, "*", star))
		case *syntax.SglQuoted:
			r.ok = r.ok && !p.Dollar
			text.WriteString(p.Value)
		case *syntax.DblQuoted:
			var quoted strings.Builder // a "$" that means nothing may end a part
			for _, inner := range p.Parts {
				if lit, ok := inner.(*syntax.Lit); ok {
					quoted.WriteString(lit.Value)
				}
			}
			bare := strings.TrimSuffix(unescaped.Replace(quoted.String()), "$")
			r.ok = r.ok && !p.Dollar && !strings.ContainsAny(bare, "$`")
			text.WriteString(unescape.Replace(quoted.String()))
		}
	}
	return text.String()
}

// isBare reports whether unquoted text means the same to every shell: letters, digits, "*", marks without a meaning.
// "~", "^" and "=" have a meaning at the beginning, and "~" also after ":" and "=".
func isBare(text string) bool {
	for i, c := range text {
		switch {
		case unicode.IsLetter(c) || unicode.IsDigit(c) || strings.ContainsRune("_./:,@%+-*", c):
		case (c == '^' || c == '=') && i > 0, c == '~' && i > 0 && text[i-1] != ':' && text[i-1] != '=':
		case text == "[" || text == "]": // the program, and its end
		default:
			return false
		}
	}
	return true
}

var (
	// unescape removes the backslashes that a shell removes between double quotes; unescaped has an x for what they are
	// before. A "$" left there has a meaning in some shell unless it is the last character.
	unescape  = strings.NewReplacer(`\\`, `\`, `\"`, `"`, `\$`, "$", "\\`", "`")
	unescaped = strings.NewReplacer(`\\`, "x", `\"`, "x", `\$`, "x", "\\`", "x")
)
