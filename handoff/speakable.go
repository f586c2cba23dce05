package handoff

import (
	"regexp"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/text"
)

// restOnPage ends a text that was cut.
const restOnPage = "The rest is on the page."

// Speakable turns an agent's Markdown into what is fit to be said: meaning only. Code blocks, tables,
// links' addresses, long paths and hashes are left out; the text is cut at a sentence end below limit
// bytes, and says so.
func Speakable(markdown string, limit int) string {
	source := []byte(markdown)
	doc := goldmark.DefaultParser().Parse(text.NewReader(source))
	var out strings.Builder
	cut := false
	_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		switch n := n.(type) {
		case *ast.FencedCodeBlock, *ast.CodeBlock, *ast.HTMLBlock, *ast.RawHTML, *ast.Image:
			cut = cut || entering
			return ast.WalkSkipChildren, nil
		case *ast.AutoLink:
			return ast.WalkSkipChildren, nil
		case *ast.Text:
			if entering {
				out.Write(n.Segment.Value(source))
				if n.SoftLineBreak() || n.HardLineBreak() {
					out.WriteByte(' ')
				}
			}
		case *ast.String:
			if entering {
				out.Write(n.Value)
			}
		default:
			if !entering && n.Type() == ast.TypeBlock {
				endSentence(&out)
			}
		}
		return ast.WalkContinue, nil
	})
	spoken := plainWords(out.String())
	if len(spoken) > limit {
		spoken, cut = cutSentence(spoken, limit), true
	}
	if cut {
		spoken = strings.TrimSpace(spoken + " " + restOnPage)
	}
	return spoken
}

// endSentence closes a block, so that headings and list entries do not run together when spoken.
func endSentence(out *strings.Builder) {
	s := strings.TrimRight(out.String(), " ")
	if s == "" {
		return
	}
	switch s[len(s)-1] {
	case '.', '!', '?', ':', ';', ',':
		out.WriteByte(' ')
	default:
		out.WriteString(". ")
	}
}

var (
	hashes = regexp.MustCompile(`\b[0-9a-f]*[0-9][0-9a-f]*[a-f][0-9a-f]{5,}\b|\b[0-9a-f]{8}-[0-9a-f-]{27}\b`)
	paths  = regexp.MustCompile(`(?:[A-Za-z]:)?[~.]?(?:[/\\][\w.@+-]+){2,}[/\\]?|(?:[\w.@+-]+/){2,}[\w.@+-]+`)
	urls   = regexp.MustCompile(`\b[a-z][a-z0-9+.-]*://\S+`)
	spaces = regexp.MustCompile(`\s+`)
)

// plainWords replaces what nobody wants to hear: addresses are dropped, paths become their last name.
func plainWords(s string) string {
	s = urls.ReplaceAllString(s, "")
	s = hashes.ReplaceAllString(s, "")
	s = paths.ReplaceAllStringFunc(s, func(p string) string {
		parts := strings.FieldsFunc(p, func(r rune) bool { return r == '/' || r == '\\' })
		return parts[len(parts)-1]
	})
	return strings.TrimSpace(spaces.ReplaceAllString(s, " "))
}

// cutSentence shortens to the last sentence end below limit; without one, to the last word.
func cutSentence(s string, limit int) string {
	head := clip(s, limit)
	head = strings.TrimSuffix(head, "…")
	if i := strings.LastIndexAny(head, ".!?"); i > limit/4 {
		return head[:i+1]
	}
	if i := strings.LastIndexByte(head, ' '); i > 0 {
		return head[:i] + "…"
	}
	return head
}
