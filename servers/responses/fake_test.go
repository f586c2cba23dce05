package responses

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"

	"switchboard/servers/responses/simulator"
)

// A fake is a simulated Responses API on loopback. A request that the real one would refuse fails the test.
type fake struct {
	*simulator.API
	server *httptest.Server
}

func newFake(t testing.TB, script func(simulator.Request) simulator.Reply) *fake {
	api := simulator.New(newID("fake"), 0, script)
	f := &fake{API: api, server: httptest.NewServer(api)}
	t.Cleanup(func() {
		for _, why := range api.Wrong() {
			t.Error(why)
		}
	})
	t.Cleanup(f.server.Close)
	t.Cleanup(api.Release)
	return f
}

// pictures counts the pictures in items.
func pictures(items []json.RawMessage) int {
	n := 0
	for _, it := range items {
		n += strings.Count(string(it), `"input_image"`)
	}
	return n
}

// must ends a test that cannot go on after err.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
