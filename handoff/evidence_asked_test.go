package handoff

import (
	"slices"
	"testing"
)

// TestAskedAbout holds which words of a question a yes may repeat.
func TestAskedAbout(t *testing.T) {
	for _, tc := range []struct {
		q    Question
		want []string
	}{
		{Question{Kind: QuestionCommand, Command: "npm install zod vite react"}, []string{"npm", "install", "zod", "vite"}},
		{Question{Kind: QuestionCommand, Command: `bash -lc "cd /src && /usr/bin/git push --force origin main"`}, []string{"src", "git", "push", "origin"}},
		{Question{Kind: QuestionCommand, Command: "rm -r build"}, []string{"rm", "build"}},
		{Question{Kind: QuestionFileChange, Changes: []string{"/src/a.go", "b.go", "c.go", "d.go"}}, []string{"edit", "files", "a.go", "b.go", "c.go"}},
		{Question{Kind: QuestionCopy}, []string{"copy", "session"}},
		{Question{Kind: QuestionInput, Text: "Which one?"}, nil},
	} {
		if got := AskedAbout(tc.q, []string{"bigpc"}, "bigpc asks"); !slices.Equal(got.Acts, tc.want) {
			t.Errorf("%v %q: %q, want %q", tc.q.Kind, tc.q.Command, got.Acts, tc.want)
		}
	}
}
