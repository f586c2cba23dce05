package filter

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

// The item after a deleted one comes after the one before that: a client drops a new item whose previous item it no
// longer has.
func TestPreviousItemAfterADeletion(t *testing.T) {
	added := func(id, previous, item string) string {
		return fmt.Sprintf(`{"type":"conversation.item.added","previous_item_id":%s,"item":{"id":%q,%s}}`, previous, id, item)
	}
	const user, note = `"type":"message","role":"user"`, `"type":"message","role":"system"`
	deleted := func(id string) string { return `{"type":"conversation.item.deleted","item_id":"` + id + `"}` }
	for _, c := range []struct {
		name string
		say  []string
		want string // what the next item stands behind, for the client
	}{
		{"before one of ours",
			[]string{added("u1", "null", user), added("u2", `"u1"`, user), added("sb_m", `"u2"`, note), deleted("u2")}, `"u1"`},
		{"before two of ours", []string{added("u1", "null", user), added("u2", `"u1"`, user), added("sb_n", `"u2"`, note),
			added("sb_m", `"sb_n"`, note), deleted("u2")}, `"u1"`},
		{"between two of ours", []string{added("u1", "null", user), added("sb_n", `"u1"`, note), added("u2", `"sb_n"`, user),
			added("sb_m", `"u2"`, note), deleted("u2")}, `"u1"`},
		{"the first of all", []string{added("u1", "null", user), added("sb_m", `"u1"`, note), deleted("u1")}, `null`},
		{"one after the other", []string{added("u1", "null", user), added("u2", `"u1"`, user), added("u3", `"u2"`, user),
			added("sb_m", `"u3"`, note), deleted("u2"), deleted("u3")}, `"u1"`},
		{"before the model told of ours", []string{added("u1", "null", user), added("u2", `"u1"`, user), deleted("u2"),
			strings.Replace(added("sb_m", "null", note), `"previous_item_id":null,`, "", 1)}, `"u1"`},
		{"ours itself", []string{added("u1", "null", user), added("sb_n", `"u1"`, note), added("sb_m", `"sb_n"`, note),
			deleted("sb_n")}, `"u1"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := newOpenFilter()
			m.Hide("sb_n")
			m.Hide("sb_m")
			for _, event := range c.say {
				m.model(event)
			}
			if got := gjson.Get(m.model(added("new", `"sb_m"`, user)), "previous_item_id").Raw; got != c.want {
				t.Errorf("behind %s, want %s", got, c.want)
			}
		})
	}
}

// Where the items of a client stand is forgotten some time, so that a long call costs no more than a short one.
func TestPlacesAreBounded(t *testing.T) {
	m := newOpenFilter()
	for i := range 2 * maxPlaces {
		m.model(fmt.Sprintf(`{"type":"conversation.item.added","item":{"id":"u%d","type":"message"}}`, i))
	}
	if n := len(m.items.before); n > maxPlaces || m.Full() {
		t.Errorf("%d places", n)
	}
}
