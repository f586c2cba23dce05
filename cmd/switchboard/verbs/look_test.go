package verbs

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
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
