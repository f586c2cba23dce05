package host

import (
	"fmt"
	"strings"
	"testing"
)

// TestGateReads: sessions in directories that are not allowed are not listed, read, followed or stopped.
func TestGateReads(t *testing.T) {
	t.Parallel()
	inside, outside := t.TempDir(), t.TempDir()
	g := newGate(Policy{Dirs: []string{inside}, Answers: true})
	ids := 10
	asks := func(id int, method, params string) error {
		_, err := g.fromService(fmt.Appendf(nil, `{"id":%d,"method":%q,"params":%s}`, id, method, params))
		return err
	}
	must(t, asks(1, "thread/list", `{"limit":9}`))
	list := fmt.Sprintf(`{"id":1,"result":{"data":[{"id":"in","cwd":%q},{"id":"out","cwd":%q}],"nextCursor":"c"}}`, inside, outside)
	if got := string(g.fromAgent([]byte(list))); strings.Contains(got, `"out"`) || !strings.Contains(got, `"in"`) ||
		!strings.Contains(got, `"nextCursor":"c"`) {
		t.Errorf("listed %s", got)
	}
	for thread, want := range map[string]error{"in": nil, "out": errElsewhere, "nobody": errUnknown} {
		for _, method := range []string{"thread/turns/list", "thread/items/list", "thread/archive", "turn/interrupt"} {
			ids++
			if err := asks(ids, method, fmt.Sprintf(`{"threadId":%q}`, thread)); err != want {
				t.Errorf("%s of %s: %v, want %v", method, thread, err, want)
			}
		}
		said := fmt.Appendf(nil, `{"method":"item/completed","params":{"threadId":%q}}`, thread)
		if heard := g.fromAgent(said) != nil; heard != (want == nil) {
			t.Errorf("what is said in %s is heard: %v", thread, heard)
		}
	}
	for _, method := range []string{"thread/read", "thread/resume"} {
		must(t, asks(3, method, `{"threadId":"another"}`))
		answer := fmt.Sprintf(`{"id":3,"result":{"thread":{"id":"another","cwd":%q,"turns":["secret"]},"cwd":%[1]q}}`, outside)
		if got := string(g.fromAgent([]byte(answer))); strings.Contains(got, "secret") || !strings.Contains(got, errElsewhere.Error()) {
			t.Errorf("%s was answered %s", method, got)
		}
		delete(g.places, "another")
	}
	if got := g.fromAgent([]byte(`{"method":"account/updated","params":{}}`)); got == nil {
		t.Error("what is of no session is not heard")
	}
	must(t, asks(4, "thread/read", `{"threadId":"yetAnother"}`))
	if err := asks(4, "initialize", `{}`); err != errTwice { // whose answer would come first
		t.Errorf("a number that is in use: %v", err)
	}
	if got := g.fromAgent([]byte(`{"id":5,"result":{"thread":{"turns":["secret"]}}}`)); got != nil {
		t.Errorf("an answer that nobody asked for: %s", got)
	}
}
