package web

import (
	"embed"
	"net/http"
	"path"
	"slices"
	"strings"

	"switchboard/handoff"
	"switchboard/web/rich"
)

//go:embed help/*.md
var helpFiles embed.FS

// A helpPage is one page of help.
type helpPage struct {
	Name  string      `json:"name"`
	Title string      `json:"title"`
	In    []rich.Node `json:"in,omitempty"`
}

// loadHelp reads the pages of help, in the order of their names.
func loadHelp() ([]helpPage, error) {
	entries, err := helpFiles.ReadDir("help")
	if err != nil {
		return nil, err
	}
	var pages []helpPage
	for _, e := range entries {
		source, err := helpFiles.ReadFile(path.Join("help", e.Name()))
		if err != nil {
			return nil, err
		}
		own := func(href string) string { return href } // the pages are ours
		p := helpPage{Name: strings.TrimSuffix(e.Name(), ".md"), In: rich.Parse(string(source), own)}
		p.In = slices.DeleteFunc(p.In, func(n rich.Node) bool { return strings.HasPrefix(rich.Words(n), "<!--") })
		if len(p.In) > 0 && p.In[0].Tag == "h1" {
			p.Title, p.In = rich.Words(p.In[0]), p.In[1:]
		}
		pages = append(pages, p)
	}
	return pages, nil
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
