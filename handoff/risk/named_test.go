package risk

import (
	"strings"
	"testing"
)

// TestNamed holds which words of a command decide what it does.
func TestNamed(t *testing.T) {
	for line, want := range map[string]string{
		"npm install evil":                              "npm install evil",
		"git push upstream main":                        "git push upstream main",
		"/usr/bin/git push --force origin main":         "git push origin main",
		"cat a.sh > gradlew":                            "cat a.sh gradlew",
		"cat < in.txt >> out.txt 2>&1":                  "cat in.txt out.txt",
		`bash -lc "cd src && npm test"`:                 "src npm test",
		"go build -o gradlew ./cmd":                     "go build gradlew ./cmd",
		"go build -o=gradlew":                           "go build gradlew",
		"sort -ogradlew a.txt":                          "sort gradlew a.txt",
		"tool --out=gradlew -la":                        "tool gradlew",
		"CI=1 npm test":                                 "npm test",
		"env CI=1 npm test":                             "env npm test",
		"git fetch origin && git merge origin/main; ls": "git fetch origin git merge origin/main ls",
		`git commit -m "Fix it"`:                        "git commit Fix it",
	} {
		if got, ok := Named(line); !ok || strings.Join(got, " ") != want {
			t.Errorf("%s: %q, %t", line, got, ok)
		}
	}
	for _, line := range []string{"", "echo $(id)", "cat <<E", "a & b", "'"} {
		if got, ok := Named(line); ok {
			t.Errorf("%s: %q", line, got)
		}
	}
}
