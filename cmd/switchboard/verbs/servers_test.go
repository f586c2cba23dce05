package verbs

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
)

// A session is listed by its title, else by what tells it from others, and by no state where its agent knows none.
func TestWriteSessions(t *testing.T) {
	var found sessionPage
	if err := json.Unmarshal([]byte(`{"items":[
		{"id":"01a2183f-fabe-7008-98f2-e2c6818aa405","label":"01a2183f-fabe-7008-98f2-e2c6818aa405","title":"Publish the notes","server":"bigpc","status":"waiting"},
		{"id":"01990000-0000-7000-8000-000000000004","label":"auth refactor","title":"Auth refactor","server":"bigpc","status":"unknown"},
		{"id":"01990000-0000-7000-8000-000000000005","label":"auth refactor, yesterday","title":"Auth refactor","server":"bigpc","status":"idle"}
	]}`), &found); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := (&Terminal{Out: &out}).writeSessions(found); err != nil {
		t.Fatal(err)
	}
	rows := strings.Split(out.String(), "\n")[1:]
	for i, want := range []string{
		"bigpc Publish the notes [01a2183f-fabe] waiting ", "bigpc Auth refactor - ", "bigpc auth refactor, yesterday idle ",
	} {
		if got := strings.Join(strings.Fields(rows[i]), " "); !strings.HasPrefix(got, want) {
			t.Errorf("row %q, want %q", got, want)
		}
	}
}

// TestWatchServers: the list is printed again only when it has changed, a service that is away is told and looked for,
// and who may not see the machines is told at once.
func TestWatchServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		of := func(health string) http.HandlerFunc {
			return says(200, `{"items":[{"name":"bigpc","health":"`+health+`"}]}`)
		}
		away := says(503, `{"error":{"code":"shutdown","message":"Switchboard is shutting down."}}`)
		last := func(w http.ResponseWriter, r *http.Request) {
			of("down")(w, r)
			cancel()
		}
		var out, errs bytes.Buffer
		machines := says(200, `{"items":[]}`)
		f := &far{t: t, paths: map[string][]http.HandlerFunc{
			"GET /fleet/servers":  {of("up"), of("up"), away, away, of("down"), of("down"), last},
			"GET /fleet/machines": {machines, machines, machines, machines, machines},
		}}
		if err := f.terminal(&out, &errs).watchServers(ctx); err != nil {
			t.Error(err)
		}
		text := out.String()
		if strings.Count(text, "bigpc") != 2 || strings.Count(text, "shutting down") != 1 || strings.Index(text, "up") > strings.Index(text, "shutting") {
			t.Errorf("it prints %q", text)
		}
		f = &far{t: t, paths: map[string][]http.HandlerFunc{"GET /fleet/servers": {says(403, `{"error":{"code":"not_granted","message":"No."}}`)}}}
		if err := f.terminal(&out, &errs).watchServers(t.Context()); err == nil || err.Error() != "No." {
			t.Errorf("who may not: %v", err)
		}
	})
}
