package evidence

import (
	"slices"
	"testing"

	"switchboard/handoff"
)

// TestAskedAbout holds which words of a question a yes may repeat.
func TestAskedAbout(t *testing.T) {
	for _, tc := range []struct {
		q    handoff.Question
		want []string
	}{
		{handoff.Question{Kind: handoff.QuestionCommand, Command: "npm install zod vite react"},
			[]string{"npm", "install", "zod", "vite", "react"}},
		{handoff.Question{Kind: handoff.QuestionCommand,
			Command: `bash -lc "cd /src && /usr/bin/git push --force origin main"`},
			[]string{"src", "git", "push", "origin", "main"}},
		{handoff.Question{Kind: handoff.QuestionCommand, Command: "rm -r build"}, []string{"rm", "build"}},
		{handoff.Question{Kind: handoff.QuestionFileChange, Changes: []string{"/src/a.go", "b.go", "c.go", "d.go"}},
			[]string{"edit", "files"}},
		{handoff.Question{Kind: handoff.QuestionCopy}, []string{"copy"}},
		{handoff.Question{Kind: handoff.QuestionInput, Text: "Which one?"}, nil},
	} {
		if got := AskedAbout(tc.q, []string{"bigpc"}, "api", "bigpc asks"); !slices.Equal(got.Acts, tc.want) {
			t.Errorf("%v %q: %q, want %q", tc.q.Kind, tc.q.Command, got.Acts, tc.want)
		}
	}
}
