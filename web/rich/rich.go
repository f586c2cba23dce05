// Package rich turns Markdown into elements that a page may show: agents' answers and the help. What there is to show
// is the list of [Node.Tag]; there is no markup in it, neither ours nor the agent's, and nothing of it is loaded.
//
// It must not know the service. It keeps no state, and is safe for concurrent use.
package rich

import (
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

const (
	// maxMarkdown bounds the Markdown that is parsed, in bytes; what comes after it is shown as it is. Some Markdown
	// takes time with the square of its size: of text with more brackets or a longer line, maxHard bytes are parsed.
	maxMarkdown = 32 << 10
	maxHard     = 8 << 10
	maxBrackets = 2000
	maxLine     = 8 << 10 // bytes
	maxDepth    = 24      // of elements in each other; what is deeper is text
	maxLang     = 20      // bytes of a language's name
)

// A Node is a text, or an element with its content.
type Node struct {
	// Tag is one of h1 to h6, p, ul, ol, li, task, blockquote, pre, code, em, strong, del, a, image, br, hr, table, tr,
	// th and td; "": a text. A task is the box of a list item, with "x" as its text if it is done. An image is a link
	// to one, with its description inside.
	Tag   string `json:"tag,omitempty"`
	Text  string `json:"text,omitempty"`  // of a text, a pre or a task
	Href  string `json:"href,omitempty"`  // of a link or an image
	Lang  string `json:"lang,omitempty"`  // of a pre: letters, digits and "+#-" as its author wrote them; "": not told
	Align string `json:"align,omitempty"` // of a th or td: center or right
	Start int    `json:"start,omitempty"` // of an ol that does not begin with 1
	In    []Node `json:"in,omitempty"`
}

// Set once; a parser keeps no state between texts.
var markdown = goldmark.New(goldmark.WithExtensions(
	extension.Table, extension.Strikethrough, extension.Linkify, extension.TaskList,
)).Parser()

// Parse returns the elements of a Markdown text. href returns the address to which a link may lead, or "": it is shown
// as text then. HTML in the text is shown as text, and so is what is longer or nests deeper than is parsed.
func Parse(source string, href func(string) string) []Node {
	source, rest := split(strings.ReplaceAll(strings.ToValidUTF8(source, "\ufffd"), "\x00", "\ufffd"))
	b := builder{[]byte(source), href}
	all := b.inside(markdown.Parse(text.NewReader(b.source)), 0)
	if rest != "" {
		all = append(all, Node{Tag: "pre", Text: rest})
	}
	return all
}

// split divides a text before what is not parsed, at the end of a paragraph or else of a line.
func split(s string) (parsed, rest string) {
	most := maxMarkdown
	if hard(s[:min(len(s), most)]) {
		most = maxHard
	}
	if len(s) <= most {
		return s, ""
	}
	at := strings.LastIndex(s[:most], "\n\n")
	if at < most/2 {
		at = strings.LastIndexByte(s[:most], '\n')
	}
	if at < most/2 {
		for at = most; !utf8.RuneStart(s[at]); at-- {
		}
	}
	return s[:at], strings.TrimLeft(s[at:], "\n")
}

// hard reports whether a text may take long to parse.
func hard(s string) bool {
	for line := range strings.Lines(s) {
		if len(line) > maxLine {
			return true
		}
	}
	return strings.Count(s, "[") > maxBrackets
}

// Web returns an address of the web, http or https, in its plain form; "" for all others, among them addresses with a
// name before the host, which look as if they led elsewhere.
func Web(address string) string {
	odd := func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r) || strings.ContainsRune(`\"<>`, r)
	}
	if strings.ContainsFunc(address, odd) {
		return ""
	}
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil {
		return ""
	}
	return u.String()
}

type builder struct {
	source []byte
	href   func(string) string
}

// inside translates the children of a node.
func (b builder) inside(parent ast.Node, depth int) []Node {
	var all []Node
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		for _, one := range b.node(n, depth+1) {
			if last := len(all) - 1; one.Tag == "" && last >= 0 && all[last].Tag == "" {
				all[last].Text += one.Text
				continue
			}
			all = append(all, one)
		}
	}
	return all
}

// node translates a node. Of an unknown kind there is what it has inside.
func (b builder) node(n ast.Node, depth int) []Node {
	if depth > maxDepth {
		return []Node{{Text: b.flat(n)}}
	}
	switch n := n.(type) {
	case *ast.Text:
		return b.text(n)
	case *ast.String:
		return []Node{{Text: string(n.Value)}}
	case *ast.FencedCodeBlock:
		return []Node{{Tag: "pre", Text: b.lines(n), Lang: language(string(n.Language(b.source)))}}
	case *ast.CodeBlock:
		return []Node{{Tag: "pre", Text: b.lines(n)}}
	case *ast.HTMLBlock:
		html := b.lines(n)
		if n.HasClosure() {
			html += string(n.ClosureLine.Value(b.source))
		}
		return []Node{{Tag: "p", In: []Node{{Text: strings.TrimRight(html, "\n")}}}}
	case *ast.RawHTML:
		return []Node{{Text: string(n.Segments.Value(b.source))}}
	case *ast.ThematicBreak:
		return []Node{{Tag: "hr"}}
	case *ast.Image:
		return b.link("image", string(n.Destination), b.inside(n, depth))
	case *ast.Link:
		return b.link("a", string(n.Destination), b.inside(n, depth))
	case *ast.AutoLink:
		return b.link("a", string(n.URL(b.source)), []Node{{Text: string(n.Label(b.source))}})
	case *extast.TaskCheckBox:
		return []Node{{Tag: "task", Text: map[bool]string{true: "x"}[n.IsChecked]}}
	case *extast.TableHeader:
		return []Node{{Tag: "tr", In: b.cells(n, "th", depth)}}
	case *extast.TableRow:
		return []Node{{Tag: "tr", In: b.cells(n, "td", depth)}}
	}
	made := Node{Tag: tagOf(n), In: b.inside(n, depth)}
	if list, ok := n.(*ast.List); ok && list.IsOrdered() && list.Start != 1 {
		made.Start = list.Start
	}
	if made.Tag == "" {
		return made.In
	}
	return []Node{made}
}

// tagOf returns the tag of an element that is no more than its content; "" of all others.
func tagOf(n ast.Node) string {
	switch n := n.(type) {
	case *ast.Heading:
		return "h" + string('0'+rune(n.Level))
	case *ast.Paragraph:
		return "p"
	case *ast.Blockquote:
		return "blockquote"
	case *ast.CodeSpan:
		return "code"
	case *ast.List:
		if n.IsOrdered() {
			return "ol"
		}
		return "ul"
	case *ast.ListItem:
		return "li"
	case *ast.Emphasis:
		if n.Level > 1 {
			return "strong"
		}
		return "em"
	case *extast.Strikethrough:
		return "del"
	case *extast.Table:
		return "table"
	}
	return ""
}

// text translates a text; Markdown leaves escapes and entities to whoever shows it.
func (b builder) text(n *ast.Text) []Node {
	plain := n.Segment.Value(b.source)
	if _, code := n.Parent().(*ast.CodeSpan); !code && !n.IsRaw() {
		plain = util.ResolveEntityNames(util.ResolveNumericReferences(util.UnescapePunctuations(plain)))
	}
	switch {
	case n.HardLineBreak():
		return []Node{{Text: string(plain)}, {Tag: "br"}}
	case n.SoftLineBreak():
		return []Node{{Text: string(plain) + " "}}
	}
	return []Node{{Text: string(plain)}}
}

// link is a link to where it may lead, or else what it says.
func (b builder) link(tag, to string, in []Node) []Node {
	to = b.href(to)
	if len(in) == 0 {
		in = []Node{{Text: to}}
	}
	if to == "" {
		return in
	}
	return []Node{{Tag: tag, Href: to, In: in}}
}

func (b builder) cells(row ast.Node, tag string, depth int) []Node {
	var all []Node
	for c := row.FirstChild(); c != nil; c = c.NextSibling() {
		made := Node{Tag: tag, In: b.inside(c, depth+1)}
		if cell, ok := c.(*extast.TableCell); ok && (cell.Alignment == extast.AlignCenter || cell.Alignment == extast.AlignRight) {
			made.Align = cell.Alignment.String()
		}
		all = append(all, made)
	}
	return all
}

// lines is the text of a block of code or HTML.
func (b builder) lines(n ast.Node) string {
	var s strings.Builder
	for _, line := range n.Lines().Sliced(0, n.Lines().Len()) {
		s.Write(line.Value(b.source))
	}
	return s.String()
}

// flat is all text below a node, whatever it is in.
func (b builder) flat(n ast.Node) string {
	var s strings.Builder
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // never fails
		switch n := n.(type) {
		case *ast.Text:
			if entering {
				s.Write(n.Segment.Value(b.source))
			}
		case *ast.FencedCodeBlock, *ast.CodeBlock, *ast.HTMLBlock:
			if entering {
				s.WriteString(b.lines(n))
			}
		default:
			if !entering && n.Type() == ast.TypeBlock {
				s.WriteByte(' ')
			}
		}
		return ast.WalkContinue, nil
	})
	return s.String()
}

// language is the name of a language, as far as it is one.
func language(name string) string {
	odd := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("+#-", r)
	}
	if len(name) > maxLang || strings.ContainsFunc(name, odd) {
		return ""
	}
	return name
}

// Words returns the text of a node and of all that is in it.
func Words(n Node) string {
	var s strings.Builder
	s.WriteString(n.Text)
	for _, c := range n.In {
		s.WriteString(Words(c))
	}
	return s.String()
}
