package responses

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"switchboard/handoff"
)

// TestConversationItems: what is put into a conversation between responses is told to the agent with the next one,
// once; what it was told stays, and the rest can be taken away.
func TestConversationItems(t *testing.T) {
	inWorld(t, func(w *world) {
		_, talk := w.ask(http.MethodPost, "/v1/conversations", `{"items":[{"role":"user","content":"I like tea"}]}`)
		path := fmt.Sprintf("/v1/conversations/%s/items", talk["id"])
		body := fmt.Sprintf(`{"model":"bigpc","input":"hi","conversation":%q}`, talk["id"])
		said := func(n int) string {
			a := w.begun(body)
			w.ends(n, handoff.OutcomeResult, "hello")
			a.object()
			for _, c := range w.run(n).req.Context {
				if c.Key == "conversation_so_far" {
					return c.Value
				}
			}
			return ""
		}
		if got := said(1); got != "user: I like tea" {
			t.Errorf("the first is told %q", got)
		}
		status, added := w.ask(http.MethodPost, path, `{"items":[{"role":"user","content":"no, coffee"},{"role":"user","content":"or milk"}]}`)
		data, _ := added["data"].([]any)
		if status != http.StatusOK || len(data) != 2 || added["object"] != "list" || added["has_more"] != false {
			t.Fatalf("%d %v", status, added)
		}
		last := fmt.Sprint(added["last_id"])
		if status, got := w.ask(http.MethodGet, path+"/"+last, ""); status != http.StatusOK || got["id"] != last || got["type"] != "message" {
			t.Errorf("%d %v", status, got)
		}
		if status, got := w.ask(http.MethodDelete, path+"/"+last, ""); status != http.StatusOK || got["id"] != talk["id"] {
			t.Errorf("%d %v", status, got)
		}
		if got := said(2); got != "user: no, coffee" {
			t.Errorf("the second is told %q", got)
		}
		if got := said(3); got != "" {
			t.Errorf("the third is told %q again", got)
		}
		for c, want := range map[string]int{"DELETE /" + fmt.Sprint(added["first_id"]): 400, "GET /nobody": 404, "DELETE /nobody": 404, "POST  {}": 400, `POST  {"items":[{"type":"wizard"}]}`: 400} {
			part := strings.SplitN(c, " ", 3)
			status, got := w.ask(part[0], path+part[1], strings.Join(part[2:], ""))
			if w.refusal(status, got); status != want {
				t.Errorf("%s: %d, want %d", c, status, want)
			}
		}
		_, all := w.ask(http.MethodGet, path+"?order=asc", "")
		var texts []string
		for _, it := range all["data"].([]any) {
			content := fmt.Sprint(it.(map[string]any)["content"])
			_, text, _ := strings.Cut(content, "text:")
			text, _, _ = strings.Cut(text, " type:")
			texts = append(texts, text)
		}
		if want := []string{"I like tea", "hi", "hello", "no, coffee", "hi", "hello", "hi", "hello"}; !slices.Equal(texts, want) {
			t.Errorf("in it are %q", texts)
		}
	})
}
