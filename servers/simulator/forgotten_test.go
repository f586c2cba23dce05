package simulator

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// A turn of an earlier world has failed with the error that it was forgotten; nothing else is made up.
func TestTurnsOfAnEarlierWorldAreForgotten(t *testing.T) {
	t.Parallel()
	const auth = "01990000-0000-7000-8000-000000000004"
	before := newID(time.Now().Add(-time.Minute))
	c := connect(t, serve(t, NewWorld(Config{}), "bigpc"))
	turns := func() string {
		return string(c.call("thread/turns/list", fmt.Sprintf(`{"threadId":%q,"limit":100}`, auth)).Result)
	}
	items := func(turn string) {
		c.call("thread/items/list", fmt.Sprintf(`{"threadId":%q,"turnId":%q}`, auth, turn))
	}
	seeds := turns()
	for _, unknown := range []string{newID(time.Now().Add(time.Minute)), "nonsense", missing + "0", ""} {
		if items(unknown); turns() != seeds {
			t.Fatalf("made up a turn %q", unknown)
		}
	}
	items(before)
	items(before)
	got := turns()
	// its id and its root
	if strings.Count(got, before) != 2 || !strings.Contains(got, forgot) || !strings.Contains(got, `"status":"failed"`) {
		t.Fatalf("got %s", got)
	}
	if at, first := strings.Index(got, before), strings.Index(got, `"id":`); at > first+len(before) {
		t.Errorf("it is not the newest: %s", got)
	}
	for range 3 * maxForgotten {
		items(newID(time.Now().Add(-time.Minute)))
	}
	count := func(list string) int { return strings.Count(list, "rootTurnId") }
	if n := count(turns()); n != count(seeds)+maxForgotten {
		t.Errorf("%d turns", n)
	}
}
