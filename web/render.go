package web

import (
	"net/http"

	"switchboard/handoff"
	"switchboard/web/rich"
)

// Bounds of what is rendered in one request.
const (
	maxRender  = 512 << 10 // bytes
	maxRenders = 100       // texts
)

// render gives the elements of texts in Markdown, for pages that show what agents wrote. Links lead to the web alone.
func render(w http.ResponseWriter, r *http.Request, _ handoff.Grant) error {
	var body struct {
		Texts []string `json:"texts"`
	}
	if err := decode(r.Body, &body); err != nil {
		return err
	}
	if len(body.Texts) > maxRenders {
		return handoff.Fault(handoff.CodeTooLarge, "at most 100 texts at once", "")
	}
	out := make([][]rich.Node, len(body.Texts))
	for i, text := range body.Texts {
		out[i] = rich.Parse(text, rich.Web)
	}
	return writeJSON(w, http.StatusOK, listOf(out))
}
