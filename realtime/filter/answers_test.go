package filter

import (
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

// A model may answer several updates at once. The client's is answered all the same, and once.
func TestCoalescedAnswer(t *testing.T) {
	const mine = `{"type":"session.update","event_id":"e","session":{"type":"realtime","instructions":"mine",` +
		`"tools":[{"type":"function","name":"w"}]}}`
	session := func(instructions, tools string) string {
		return `{"type":"session.updated","session":{"type":"realtime","instructions":"` + instructions + `","tools":[` +
			tools + `]}}`
	}
	ours := allCalled()
	for _, c := range []struct {
		name    string
		answers []string
		shown   []int // how many events the client sees of each
		left    bool  // an update is unanswered
	}{
		{"one for each", []string{session(guide, ours), session(guide, ours), session("mine", `{"name":"w"},`+ours)},
			[]int{0, 0, 1}, false},
		{"one for all", []string{session("mine", `{"name":"w"},`+ours)}, []int{1}, false},
		{"one for ours, one for the client's", []string{session(guide, ours), session("mine", `{"name":"w"},`+ours)},
			[]int{0, 1}, false},
		{"one for ours", []string{session(guide, ours)}, []int{0}, true},
		{"one that says nothing", []string{`{"type":"session.updated","session":{"type":"realtime"}}`}, []int{0}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := newTestFilter()
			m.FromModel("session.created", []byte(freshSession))
			m.client(mine)
			for i, answer := range c.answers {
				got := m.model(answer)
				if strings.Count(got, "session.updated") != c.shown[i] || got != "" && toolNames(got, "session.tools") != `["w"]` {
					t.Errorf("answer %d shows %s", i, got)
				}
			}
			if m.Confirmed() == c.left {
				t.Error("an update is left, or none")
			}
		})
	}
}

// A model that answers nothing leaves nothing open for ever, and what it answers late is not answered twice.
func TestOverdueAnswers(t *testing.T) {
	m := newTestFilter()
	m.FromModel("session.created", []byte(freshSession))
	m.client(`{"type":"session.update","event_id":"e","session":{"type":"realtime","instructions":"mine"}}`)
	asked := m.Overdue()
	if len(asked) != 1 || gjson.Get(asked[0], "instructions").String() != "mine" || !m.Configured() {
		t.Errorf("overdue %s", asked)
	}
	for range 3 {
		if got := m.model(`{"type":"session.updated","session":{"instructions":"mine"}}`); got != "" {
			t.Errorf("late %s", got)
		}
	}
	if got := m.model(`{"type":"session.updated","session":{"instructions":"mine"}}`); got == "" {
		t.Error("what the model tells by itself is not seen")
	}
}

// A call of ours is recognised in whatever order the model applies updates that remove our tools and add them again,
// also if these are overdue; and nothing of ours is shown.
func TestOursBetweenUpdates(t *testing.T) {
	for _, late := range []bool{false, true} {
		m := newOpenFilter()
		m.client(`{"type":"session.update","session":{"type":"realtime","tool_choice":"required"}}`)
		m.model(`{"type":"session.updated","session":{"tool_choice":"required","tools":[]}}`)
		for _, choice := range []string{"auto", "required"} {
			m.client(`{"type":"session.update","session":{"type":"realtime","tool_choice":"` + choice + `"}}`)
		}
		if late {
			m.Overdue()
		}
		m.model(began("r1", ""))
		if got := m.model(itemDone("r1", callItem("k1", "c1", "list_servers", "completed"))); got != "" {
			t.Errorf("late %t: the client sees %s", late, got)
		}
		if late {
			m.client(`{"type":"session.update","session":{"type":"realtime","tools":[{"type":"function","name":"weather"}]}}`)
			got := m.model(`{"type":"session.updated","session":{"instructions":"` + guide +
				`","tools":[{"type":"function","name":"list_servers"}]}}`)
			if strings.Contains(got, "list_servers") || strings.Contains(got, guide) {
				t.Errorf("a late answer shows %s", got)
			}
		}
	}
}
