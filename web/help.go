package web

import (
	"embed"
	"net/http"
	"path"
	"slices"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extast "github.com/yuin/goldmark/extension/ast"
	markdown "github.com/yuin/goldmark/text"

	"switchboard/handoff"
)

//go:embed help/*.md
var helpFiles embed.FS

// A helpNode is a part of a help page: a text, or an element with its content. The page makes DOM elements of it. There
// is no HTML, neither ours nor that of the Markdown.
type helpNode struct {
	Tag  string     `json:"tag,omitempty"`
	Text string     `json:"text,omitempty"`
	Href string     `json:"href,omitempty"`
	In   []helpNode `json:"in,omitempty"`
}

// A helpPage is one page of help.
type helpPage struct {
	Name  string     `json:"name"`
	Title string     `json:"title"`
	In    []helpNode `json:"in,omitempty"`
}

// loadHelp reads the pages of help, in the order of their names.
func loadHelp() ([]helpPage, error) {
	entries, err := helpFiles.ReadDir("help")
	if err != nil {
		return nil, err
	}
	parser := goldmark.New(goldmark.WithExtensions(extension.Table)).Parser()
	var pages []helpPage
	for _, e := range entries {
		source, err := helpFiles.ReadFile(path.Join("help", e.Name()))
		if err != nil {
			return nil, err
		}
		h := helper{source}
		p := helpPage{Name: strings.TrimSuffix(e.Name(), ".md"), In: h.inside(parser.Parse(markdown.NewReader(source)))}
		if len(p.In) > 0 && p.In[0].Tag == "h1" {
			p.Title, p.In = plainText(p.In[0]), p.In[1:]
		}
		pages = append(pages, p)
	}
	return pages, nil
}

type helper struct{ source []byte }

// inside translates the children of a node.
func (h helper) inside(parent ast.Node) []helpNode {
	var all []helpNode
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		all = append(all, h.node(n)...)
	}
	return all
}

// node translates a node. For an unknown kind it returns the children.
func (h helper) node(n ast.Node) []helpNode {
	element := func(tag string) []helpNode { return []helpNode{{Tag: tag, In: h.inside(n)}} }
	switch n := n.(type) {
	case *ast.Text:
		words := string(n.Segment.Value(h.source))
		if n.SoftLineBreak() || n.HardLineBreak() {
			words += " "
		}
		return []helpNode{{Text: words}}
	case *ast.String:
		return []helpNode{{Text: string(n.Value)}}
	case *ast.Heading:
		return element("h" + string('0'+rune(min(n.Level, 4))))
	case *ast.Paragraph:
		return element("p")
	case *ast.CodeSpan:
		return element("code")
	case *ast.FencedCodeBlock, *ast.CodeBlock:
		var b strings.Builder
		for _, line := range n.Lines().Sliced(0, n.Lines().Len()) {
			b.Write(line.Value(h.source))
		}
		return []helpNode{{Tag: "pre", Text: b.String()}}
	case *ast.List:
		if n.IsOrdered() {
			return element("ol")
		}
		return element("ul")
	case *ast.ListItem:
		return element("li")
	case *ast.Emphasis:
		if n.Level > 1 {
			return element("strong")
		}
		return element("em")
	case *ast.Link:
		return []helpNode{{Tag: "a", Href: string(n.Destination), In: h.inside(n)}}
	case *extast.Table:
		return element("table")
	case *extast.TableHeader:
		cells := h.inside(n)
		for i := range cells {
			cells[i].Tag = "th"
		}
		return []helpNode{{Tag: "tr", In: cells}}
	case *extast.TableRow:
		return element("tr")
	case *extast.TableCell:
		return element("td")
	case *ast.HTMLBlock, *ast.RawHTML, *ast.Image:
		return nil
	}
	return h.inside(n)
}

func plainText(n helpNode) string {
	var s strings.Builder
	s.WriteString(n.Text)
	for _, c := range n.In {
		s.WriteString(plainText(c))
	}
	return s.String()
}

// helpList lists the pages of help, which are public.
func (p pages) helpList(w http.ResponseWriter, _ *http.Request, _ handoff.Grant) error {
	names := make([]helpPage, 0, len(p.help))
	for _, h := range p.help {
		names = append(names, helpPage{Name: h.Name, Title: h.Title})
	}
	return writeJSON(w, http.StatusOK, listOf(names))
}

// helpPage serves a page of help.
func (p pages) helpPage(w http.ResponseWriter, r *http.Request, _ handoff.Grant) error {
	at := slices.IndexFunc(p.help, func(h helpPage) bool { return h.Name == r.PathValue("name") })
	if at < 0 {
		return handoff.Fault(handoff.CodeNotFound, "page of help with this name", "")
	}
	return writeJSON(w, http.StatusOK, p.help[at])
}
