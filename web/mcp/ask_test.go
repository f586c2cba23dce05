package mcp

import (
	"encoding/json"
	"fmt"
	"testing"

	"switchboard/handoff"
)

// TestFormOf: a question of several fields is one form, which says what has to be filled, and is read field by field.
func TestFormOf(t *testing.T) {
	q := handoff.RecordQuestion{Words: true, Asks: []handoff.Ask{
		{Text: "Where?", Options: []string{"here", "in the sandbox"}, Only: true},
		{Text: "Which?", Options: []string{"api", "web"}, Only: true, Many: true},
		{Text: "Why?", Optional: true},
	}}
	const want = `{"properties":{"answer":{"enum":["here","in the sandbox"],"title":"Where?","type":"string"},` +
		`"answer2":{"description":"api, web","title":"Which?","type":"string"},` +
		`"answer3":{"title":"Why?","type":"string"}},"required":["answer","answer2"],"type":"object"}`
	if got, _ := json.Marshal(formOf(q, true)); string(got) != want {
		t.Errorf("the form is %s", got)
	}
	for _, tc := range []struct {
		content map[string]any
		want    string
	}{
		{
			map[string]any{"answer": "here", "answer2": "web, api", "answer3": "it is late"},
			"[[here] [web api] [it is late]] ",
		},
		{map[string]any{"answer": "in the sandbox", "answer2": "api"}, "[[in the sandbox] [api] []] "},
		{map[string]any{"answer": "elsewhere", "answer2": "api"}, "[] malformed"},
		{map[string]any{"answer": "here", "answer2": "api and mobile"}, "[[here]] malformed"},
		{map[string]any{"answer": 1, "answer2": "api"}, "[] malformed"},
	} {
		r, err := replyOf(q, tc.content)
		if got := fmt.Sprint(r.Answers, " ", handoff.CodeOf(err)); got != tc.want {
			t.Errorf("%v: %s, want %s", tc.content, got, tc.want)
		}
	}
	one := handoff.RecordQuestion{Words: true}
	if r, err := replyOf(one, map[string]any{"answer": "2.4"}); r.Words != "2.4" || err != nil {
		t.Errorf("one field: %+v, %v", r, err)
	}
}
