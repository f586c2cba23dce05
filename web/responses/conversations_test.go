package responses

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/handoff"
)

// TestConversationItems: the agent gets items that were added between responses with the next response, once. Those
// items stay; others can be deleted.
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
		status, added := w.ask(
			http.MethodPost, path, `{"items":[{"role":"user","content":"no, coffee"},{"role":"user","content":"or milk"}]}`,
		)
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

// TestConversationCatchesUp: the output of a response that an earlier process began is added to its conversation once,
// when the conversation is read, even if nobody has read the response, and even if only the response's end was stored.
func TestConversationCatchesUp(t *testing.T) {
	for _, stored := range []bool{false, true} {
		inWorld(t, func(w *world) {
			_, talk := w.ask(http.MethodPost, "/v1/conversations", "")
			id := fmt.Sprint(talk["id"])
			w.begun(strings.TrimSuffix(backgroundPost, "}") + fmt.Sprintf(`,"conversation":%q}`, id))
			w.mu.Lock()
			left := w.docs["owner "+id]
			w.mu.Unlock()
			if !stored {
				w.begin()
			}
			w.ends(1, handoff.OutcomeResult, "hello")
			synctest.Wait()
			if stored {
				w.begin()
				w.mu.Lock()
				w.docs["owner "+id] = left
				w.mu.Unlock()
			}
			for range 2 {
				if _, got := w.ask(http.MethodGet, "/v1/conversations/"+id+"/items", ""); len(got["data"].([]any)) != 2 {
					t.Errorf("stored %t: %v", stored, got)
				}
			}
			a := w.begun(fmt.Sprintf(`{"model":"bigpc","input":"and?","conversation":%q}`, id))
			w.ends(2, handoff.OutcomeResult, "fine")
			if got := a.object(); got["status"] != completed || w.run(2).req.Target.Thread != "thread1" {
				t.Errorf("stored %t: it goes on as %v in %+v", stored, got, w.run(2).req.Target)
			}
		})
	}
}

// TestConversationIsChangedByOneAtATime: items of a response and metadata that a client sets at the same moment are
// both kept, and a conversation that is deleted at that moment stays deleted.
func TestConversationIsChangedByOneAtATime(t *testing.T) {
	for _, deleted := range []bool{false, true} {
		for at := range 6 { // while the response is stored, and then its conversation
			inWorld(t, func(w *world) {
				_, talk := w.ask(http.MethodPost, "/v1/conversations", "")
				path := fmt.Sprint("/v1/conversations/", talk["id"])
				w.begun(strings.TrimSuffix(backgroundPost, "}") + fmt.Sprintf(`,"conversation":%q}`, talk["id"]))
				w.slow = 20 * time.Millisecond
				w.ends(1, handoff.OutcomeResult, "hello")
				time.Sleep(time.Duration(at)*10*time.Millisecond - time.Millisecond)
				method, body := http.MethodPost, `{"metadata":{"a":"b"}}`
				if deleted {
					method, body = http.MethodDelete, ""
				}
				if status, got := w.ask(method, path, body); status != http.StatusOK {
					t.Errorf("%s after %d0 ms: %d %v", method, at, status, got)
				}
				time.Sleep(time.Second)
				status, got := w.ask(http.MethodGet, path, "")
				if deleted {
					if status != http.StatusNotFound {
						t.Errorf("deleted after %d0 ms: %d %v", at, status, got)
					}
					return
				}
				if set, _ := got["metadata"].(map[string]any); set["a"] != "b" {
					t.Errorf("set after %d0 ms: %v", at, got)
				}
				if _, got := w.ask(http.MethodGet, path+"/items", ""); len(got["data"].([]any)) != 2 {
					t.Errorf("set after %d0 ms: its items are %v", at, got)
				}
			})
		}
	}
}
