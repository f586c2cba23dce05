package risk

import (
	"strings"
	"unicode"
)

// A shellWord is a word as the shell passes it on.
type shellWord struct {
	text    string // quotes and backslashes taken away
	dynamic bool   // the shell decides what it is: a variable, a substitution, braces
}

// A shellRedirect sends a file in, or output to a file.
type shellRedirect struct {
	reads bool
	to    shellWord
}

// A shellCommand is one command of a line. Substitutions are commands of their own.
type shellCommand struct {
	words     []shellWord
	redirects []shellRedirect
}

// parseShell cuts a line into its commands. It knows less than a shell and says so: ok is false for what
// it cannot be sure of (unclosed quotes, $'…', control characters, functions). Comments are taken for
// words and the body of a here-document for commands, which can only raise the risk.
func parseShell(line string) (commands []shellCommand, ok bool) {
	for _, r := range line {
		if unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Cf, r) || r == unicode.ReplacementChar {
			return nil, false
		}
	}
	p := &shellParser{src: line, ok: true}
	p.list("")
	return p.commands, p.ok && p.at == len(p.src)
}

// maxShellDepth bounds substitutions in substitutions.
const maxShellDepth = 8

// A shellParser reads one line.
type shellParser struct {
	src      string
	at       int
	depth    int
	ok       bool
	commands []shellCommand
}

func (p *shellParser) fail() { p.ok, p.at = false, len(p.src) }

func (p *shellParser) peek(s string) bool { return strings.HasPrefix(p.src[p.at:], s) }

// list reads commands until the end or a closing mark, which it consumes.
func (p *shellParser) list(closing string) {
	if p.depth++; p.depth > maxShellDepth {
		p.fail()
	}
	var c shellCommand
	end := func() {
		if len(c.words) > 0 || len(c.redirects) > 0 {
			p.commands = append(p.commands, c)
		}
		c = shellCommand{}
	}
	for p.ok {
		if p.at == len(p.src) {
			p.ok = p.ok && closing == ""
			break
		}
		if closing != "" && p.peek(closing) {
			p.at += len(closing)
			break
		}
		switch b := p.src[p.at]; {
		case b == ' ' || b == '\t':
			p.at++
		case p.peek("\\\n"):
			p.at += 2
		case p.peek("()"): // a function
			p.fail()
		case p.peek("&>"):
			p.at++
			p.redirect(&c)
		case strings.IndexByte(";|&\n", b) >= 0:
			p.at++
			end()
		case b == '(':
			p.at++
			end()
			p.list(")")
		case b == ')':
			p.fail()
		case b == '<' || b == '>':
			p.redirect(&c)
		default:
			p.argument(&c)
		}
	}
	end()
	p.depth--
}

// argument reads a word; digits before a redirection are its file descriptor.
func (p *shellParser) argument(c *shellCommand) {
	from := p.at
	w := p.word()
	if p.at < len(p.src) && strings.IndexByte("<>", p.src[p.at]) >= 0 && isDigits(p.src[from:p.at]) {
		return
	}
	c.words = append(c.words, w)
}

func isDigits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// redirect reads an operator and its target. Copying a descriptor touches no file.
func (p *shellParser) redirect(c *shellCommand) {
	from := p.at
	for p.at < len(p.src) && strings.IndexByte("<>|&-", p.src[p.at]) >= 0 && p.at-from < 3 {
		if p.src[p.at] == '-' && !strings.HasPrefix(p.src[from:], "<<") {
			break
		}
		p.at++
	}
	op := p.src[from:p.at]
	for p.at < len(p.src) && (p.src[p.at] == ' ' || p.src[p.at] == '\t') {
		p.at++
	}
	if p.at == len(p.src) || strings.IndexByte("\n;|&<>()", p.src[p.at]) >= 0 {
		p.fail()
		return
	}
	to := p.word()
	switch {
	case strings.HasPrefix(op, "<<"): // its body or word is data; the body is read as commands
	case strings.HasSuffix(op, "&") && (isDigits(to.text) || to.text == "-"):
	default:
		c.redirects = append(c.redirects, shellRedirect{reads: op == "<", to: to})
	}
}

// word reads until a blank or an operator.
func (p *shellParser) word() shellWord {
	var w shellWord
	var text strings.Builder
	for p.ok && p.at < len(p.src) && strings.IndexByte(" \t\n;|&<>()", p.src[p.at]) < 0 {
		switch b := p.src[p.at]; {
		case b == '\'':
			p.single(&text)
		case b == '"':
			p.at++
			p.double(&w, &text)
		case b == '\\':
			p.escape(&text)
		case b == '$' || b == '`':
			p.expansion(&w, &text)
		case b == '{' || b == '}': // "{" alone groups commands; in a word it multiplies
			w.dynamic = true
			text.WriteByte(b)
			p.at++
		default:
			text.WriteByte(b)
			p.at++
		}
	}
	w.text = text.String()
	return w
}

func (p *shellParser) single(text *strings.Builder) {
	n := strings.IndexByte(p.src[p.at+1:], '\'')
	if n < 0 {
		p.fail()
		return
	}
	text.WriteString(p.src[p.at+1 : p.at+1+n])
	p.at += n + 2
}

func (p *shellParser) escape(text *strings.Builder) {
	if p.at++; p.at == len(p.src) {
		p.fail()
		return
	}
	if p.src[p.at] != '\n' {
		text.WriteByte(p.src[p.at])
	}
	p.at++
}

func (p *shellParser) double(w *shellWord, text *strings.Builder) {
	for p.ok {
		if p.at == len(p.src) {
			p.fail()
			return
		}
		switch b := p.src[p.at]; b {
		case '"':
			p.at++
			return
		case '\\':
			p.escape(text)
		case '$', '`':
			p.expansion(w, text)
		default:
			text.WriteByte(b)
			p.at++
		}
	}
}

// expansion reads a variable or a substitution; what stands in a substitution is a command too.
func (p *shellParser) expansion(w *shellWord, text *strings.Builder) {
	w.dynamic = true
	switch {
	case p.src[p.at] == '`':
		p.at++
		p.backticks()
	case p.peek("$'"), p.peek(`$"`):
		p.fail()
	case p.peek("$("):
		p.at += 2
		p.list(")")
	case p.peek("${"):
		n := strings.IndexByte(p.src[p.at:], '}')
		if n < 0 || strings.ContainsAny(p.src[p.at+2:p.at+n], "$`\"'({") {
			p.fail()
			return
		}
		text.WriteString(p.src[p.at : p.at+n+1])
		p.at += n + 1
	default:
		text.WriteByte('$')
		p.at++
	}
}

// backticks reads a substitution in the old form. Nested ones are escaped, and not read.
func (p *shellParser) backticks() {
	n := strings.IndexByte(p.src[p.at:], '`')
	if n < 0 || strings.Contains(p.src[p.at:p.at+n], "\\") {
		p.fail()
		return
	}
	inner := &shellParser{src: p.src[p.at : p.at+n], ok: true, depth: p.depth}
	inner.list("")
	p.commands = append(p.commands, inner.commands...)
	p.at += n + 1
	if !inner.ok {
		p.fail()
	}
}
