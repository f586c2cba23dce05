package speakable

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"switchboard/handoff"
)

// RestOnPage ends a text that was cut.
const RestOnPage = "The rest is on the page."

const (
	// maxText bounds the text, and maxMarkdown the Markdown that is parsed, without code, in bytes. Nobody hears more
	// of it, and nested Markdown takes time with the square of its size.
	maxText     = 128 << 10
	maxMarkdown = 4 << 10
	// maxListItems bounds the items of a list that are said; of the others, only the number is.
	maxListItems = 6
	// maxCodeWords and maxCodeSize (in bytes) bound a code span that is said as it is: a name, a short command.
	maxCodeWords = 4
	maxCodeSize  = 48
)

// markdown is the parser. Set once; it keeps no state between texts.
var markdown = goldmark.New(goldmark.WithExtensions(
	extension.Table, extension.Strikethrough, extension.Linkify, extension.TaskList,
)).Parser()

// Speakable turns an agent's Markdown into text for speech. It leaves out code, tables, diffs, stack traces, addresses,
// hashes, keys and emojis, shortens paths to their last name, and counts the end of long lists. The text is cut at a
// sentence end below limit bytes. If something is missing, a last sentence says so, which may exceed the limit.
func Speakable(md string, limit int) string {
	source, cut := prose(escapes.ReplaceAllString(strings.ToValidUTF8(handoff.Clip(md, maxText), ""), ""))
	cut = cut || len(md) > maxText || len(source) > maxMarkdown
	s := speaker{source: []byte(handoff.Clip(source, maxMarkdown))}
	_ = ast.Walk(markdown.Parse(text.NewReader(s.source)), s.visit) // visit never fails
	said := plainWords(s.out.String())
	if len(said) > limit {
		said, s.cut = CutSentence(said, limit), true
	}
	if cut || s.cut {
		said = strings.TrimSpace(said + " " + RestOnPage)
	}
	return said
}

// A speaker turns a document into text.
type speaker struct {
	source []byte
	out    strings.Builder
	cut    bool // something was left out
}

func (s *speaker) visit(n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		if n.Type() == ast.TypeBlock {
			s.endSentence()
		}
		return ast.WalkContinue, nil
	}
	switch n := n.(type) {
	case *ast.FencedCodeBlock, *ast.CodeBlock, *ast.HTMLBlock, *ast.Image, *extast.Table:
		s.cut = true
		return ast.WalkSkipChildren, nil
	case *ast.RawHTML:
		s.out.WriteByte(' ')
		return ast.WalkSkipChildren, nil
	case *ast.AutoLink, *extast.Strikethrough:
		return ast.WalkSkipChildren, nil
	case *ast.CodeSpan:
		s.out.WriteString(spokenCode(s.inside(n)))
		return ast.WalkSkipChildren, nil
	case *extast.TaskCheckBox:
		if n.IsChecked {
			s.out.WriteString("done: ")
		} else {
			s.out.WriteString("open: ")
		}
	case *ast.ListItem:
		return s.listItem(n), nil
	case *ast.Text:
		plain := util.ResolveNumericReferences(util.UnescapePunctuations(n.Segment.Value(s.source)))
		s.out.Write(util.ResolveEntityNames(plain)) // Markdown leaves escapes and entities to the renderer
		switch {
		case n.HardLineBreak(), n.SoftLineBreak() && signed(s.source[n.Segment.Stop:]):
			s.endSentence()
		case n.SoftLineBreak():
			s.out.WriteByte(' ')
		}
	case *ast.String:
		s.out.Write(n.Value)
	}
	return ast.WalkContinue, nil
}

// inside returns the text of a code span.
func (s *speaker) inside(span *ast.CodeSpan) string {
	var code strings.Builder
	for c := span.FirstChild(); c != nil; c = c.NextSibling() {
		if t, ok := c.(*ast.Text); ok {
			code.Write(t.Segment.Value(s.source))
		}
	}
	return code.String()
}

// listItem skips all but the first items of a list. If only one would be skipped, it is said, too: "one more" is not
// shorter.
func (s *speaker) listItem(n *ast.ListItem) ast.WalkStatus {
	index, count := 0, n.Parent().ChildCount()
	for p := n.PreviousSibling(); p != nil && index <= maxListItems; p = p.PreviousSibling() {
		index++
	}
	if index < maxListItems || count <= maxListItems+1 {
		return ast.WalkContinue
	}
	if index == maxListItems {
		s.out.WriteString("And " + CountWord(count-maxListItems, false) + " more.")
		s.cut = true
	}
	return ast.WalkSkipChildren
}

// signed reports whether a line begins with an emoji, as a list item may.
func signed(rest []byte) bool {
	first, _ := utf8.DecodeRune(bytes.TrimLeft(rest, " \t\r\n"))
	return unicode.Is(unicode.So, first)
}

// endSentence ends a block with a stop, so that headings and list items do not run together in speech.
func (s *speaker) endSentence() {
	said := strings.TrimRight(s.out.String(), " ")
	last, _ := utf8.DecodeLastRuneInString(said)
	switch {
	case said == "":
	case strings.ContainsRune(".!?:;,…。！？：", last):
		s.out.WriteByte(' ')
	default:
		s.out.WriteString(". ")
	}
}
