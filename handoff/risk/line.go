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

// A command is a simple command of a line, all of it literal.
type command struct {
	sets      []string // "NAME=value" before the program
	words     []string // without quotes
	redirects []redirect
}

// A redirect reads input from a file, or writes output to one.
type redirect struct {
	reads bool
	path  string
}

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
		r.statement(s)
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

func (r *lineReader) statement(s *syntax.Stmt) {
	if !r.ok || s.Negated || s.Background || s.Coprocess || s.Disown {
		r.ok = false
		return
	}
	switch c := s.Cmd.(type) {
	case *syntax.BinaryCmd:
		r.ok = len(s.Redirs) == 0 && c.Op != syntax.PipeAll
		r.statement(c.X)
		r.statement(c.Y)
	case *syntax.TimeClause:
		if r.ok = len(s.Redirs) == 0 && !c.PosixFormat && c.Stmt != nil; r.ok {
			r.statement(c.Stmt)
		}
	case *syntax.CallExpr:
		r.call(c, s.Redirs)
	default:
		r.ok = false
	}
}

func (r *lineReader) call(c *syntax.CallExpr, redirects []*syntax.Redirect) {
	var out command
	for _, a := range c.Assigns {
		if a.Append || a.Naked || a.Index != nil || a.Array != nil || a.Name == nil {
			r.ok = false
			return
		}
		value := ""
		if a.Value != nil {
			value = r.word(a.Value)
		}
		out.sets = append(out.sets, a.Name.Value+"="+value)
	}
	for _, w := range c.Args {
		out.words = append(out.words, r.word(w))
	}
	for _, d := range redirects {
		if to := r.word(d.Word); d.Hdoc != nil || d.N != nil && d.N.Value != "0" && d.N.Value != "1" && d.N.Value != "2" {
			r.ok = false
		} else if d.Op == syntax.DplOut && (to == "1" || to == "2") { // only another name of a descriptor
			continue
		} else {
			out.redirects = append(out.redirects, redirect{d.Op == syntax.RdrIn, to})
			r.ok = r.ok && (d.Op == syntax.RdrIn || d.Op == syntax.RdrOut || d.Op == syntax.AppOut || d.Op == syntax.RdrAll)
		}
	}
	r.ok = r.ok && len(out.words) > 0
	r.commands = append(r.commands, out)
}

// word returns a word as the shell passes it to the program.
func (r *lineReader) word(w *syntax.Word) string {
	var text strings.Builder
	for _, part := range w.Parts {
		switch p := part.(type) {
		case *syntax.Lit:
			r.ok = r.ok && isBare(p.Value)
			text.WriteString(p.Value)
		case *syntax.SglQuoted:
			r.ok = r.ok && !p.Dollar
			text.WriteString(p.Value)
		case *syntax.DblQuoted:
			r.ok = r.ok && !p.Dollar
			var quoted strings.Builder // a "$" that means nothing may end a part
			for _, inner := range p.Parts {
				lit, ok := inner.(*syntax.Lit)
				if r.ok = r.ok && ok; !r.ok {
					return ""
				}
				quoted.WriteString(lit.Value)
			}
			text.WriteString(r.unescape(quoted.String()))
		default:
			r.ok = false
		}
	}
	return text.String()
}

// isBare reports whether unquoted text means the same to every shell: letters, digits, and marks without a meaning.
// "~", "^" and "=" have a meaning at the beginning, and "~" also after ":" and "=".
func isBare(text string) bool {
	for i, c := range text {
		switch {
		case unicode.IsLetter(c) || unicode.IsDigit(c) || strings.ContainsRune("_./:,@%+-", c):
		case (c == '^' || c == '=') && i > 0, c == '~' && i > 0 && text[i-1] != ':' && text[i-1] != '=':
		case text == "[" || text == "]": // the program, and its end
		default:
			return false
		}
	}
	return true
}

// unescape removes the backslashes that a shell removes between double quotes. An unescaped "$" has a meaning in some
// shell unless it is the last character.
func (r *lineReader) unescape(s string) string {
	var out strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\' && i+1 < len(s) && strings.IndexByte("$`\"\\", s[i+1]) >= 0:
			i++
		case s[i] == '`' || s[i] == '$' && i+1 < len(s):
			r.ok = false
		}
		out.WriteByte(s[i])
	}
	return out.String()
}
