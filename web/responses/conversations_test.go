package responses

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/handoff"
)

// inTalk returns a request in a conversation.
func inTalk(talk map[string]any, more string) string {
	return fmt.Sprintf(`{"model":"bigpc","input":"hi","conversation":%q%s}`, talk["id"], more)
}

// TestConversationItems: the agent gets the items with which a conversation was created until it has a session with
// them, and not after.
func TestConversationItems(t *testing.T) {
	inWorld(t, func(w *world) {
		_, talk := w.ask(http.MethodPost, "/v1/conversations",
			`{"metadata":{"a":"b"},"items":[{"role":"system","content":"brief"},{"role":"user","content":"I like tea"}]}`)
		for n, c := range []struct {
			turn bool
			told string
		}{{false, "user: I like tea|brief"}, {true, "user: I like tea|brief"}, {true, ""}} {
			w.mu.Lock()
			w.hold = !c.turn
			w.mu.Unlock()
			a := w.begun(inTalk(talk, `,"background":true`))
			w.ends(n+1, handoff.OutcomeFailed, "")
			synctest.Wait()
			told := []string{}
			for _, beside := range w.run(n + 1).req.Context {
				told = append(told, beside.Value)
			}
			if got := strings.Join(told, "|"); got != c.told {
				t.Errorf("%d %s: run %d is told %q, want %q", a.Code, a.Body, n+1, got, c.told)
			}
		}
		_, got := w.ask(http.MethodGet, fmt.Sprint("/v1/conversations/", talk["id"]), "")
		if fmt.Sprint(got) != fmt.Sprint(talk) || fmt.Sprint(got["metadata"]) != "map[a:b]" || got["object"] != "conversation" {
			t.Errorf("it is %v, and was %v", got, talk)
		}
		for body, want := range map[string]string{
			`{"items":[{"type":"wizard"}]}`: "invalid_value", `{"items":7}`: "invalid_type", `{"metadata":7}`: "invalid_type",
			`{"items":[{"role":"user","content":"` + strings.Repeat("x", maxConversation) + `"}]}`: "",
		} {
			if status, got := w.ask(http.MethodPost, "/v1/conversations", body); w.refusal(status, got) != want || status != 400 {
				t.Errorf("%.80s: %d %v", body, status, got)
			}
		}
	})
}

// TestConversationCatchesUp: a conversation goes on in the session of a response that an earlier process began, even if
// nobody has read that response, it was deleted, or the store did not take the conversation as it began.
func TestConversationCatchesUp(t *testing.T) {
	for _, c := range []string{"restart", "end", "end restart", "end delete", "end restart delete", "hesitates end restart"} {
		inWorld(t, func(w *world) {
			_, talk := w.ask(http.MethodPost, "/v1/conversations", "")
			if strings.HasPrefix(c, "hesitates") {
				w.refuses = fmt.Sprint("owner ", talk["id"])
			}
			w.begun(inTalk(talk, `,"background":true`))
			w.refuses = ""
			for act := range strings.FieldsSeq(c) {
				switch act {
				case "restart":
					w.begin()
				case "end":
					w.ends(1, handoff.OutcomeResult, "hello")
					synctest.Wait()
				case "delete":
					if status, got := w.ask(http.MethodDelete, "/v1/responses/resp_r1", ""); status != http.StatusOK {
						t.Errorf("%s: %d %v", c, status, got)
					}
				}
			}
			w.ends(1, handoff.OutcomeResult, "hello")
			a := w.begun(inTalk(talk, ""))
			w.ends(2, handoff.OutcomeResult, "fine")
			if got := a.object(); got["status"] != completed || w.run(2).req.Target.Thread != "thread1" {
				t.Errorf("%s: it goes on as %v in %+v", c, got, w.run(2).req.Target)
			}
		})
	}
}

// TestConversationStaysDeleted: a conversation that is deleted while its response runs or ends stays deleted, and the
// response has its end.
func TestConversationStaysDeleted(t *testing.T) {
	for at := range 6 { // while the end of the response is stored, and after that
		inWorld(t, func(w *world) {
			_, talk := w.ask(http.MethodPost, "/v1/conversations", "")
			path := fmt.Sprint("/v1/conversations/", talk["id"])
			w.begun(inTalk(talk, `,"background":true`))
			w.slows(20 * time.Millisecond)
			w.ends(1, handoff.OutcomeResult, "hello")
			time.Sleep(time.Duration(at)*10*time.Millisecond - time.Millisecond)
			if status, got := w.ask(http.MethodDelete, path, ""); status != http.StatusOK || got["deleted"] != true {
				t.Errorf("after %d0 ms: %d %v", at, status, got)
			}
			time.Sleep(time.Second)
			if status, got := w.ask(http.MethodGet, path, ""); status != http.StatusNotFound {
				t.Errorf("deleted after %d0 ms: %d %v", at, status, got)
			}
			if _, got := w.ask(http.MethodGet, "/v1/responses/resp_r1", ""); got["status"] != completed {
				t.Errorf("deleted after %d0 ms: its response is %v", at, got)
			}
		})
	}
}
