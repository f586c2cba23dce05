package risk

import (
	"strings"
	"testing"
)

func TestRunsLater(t *testing.T) {
	for _, name := range LaterNames() {
		for _, form := range []string{"%", "vendor/x/%", "%/below", "./%", "/abs/%", "a/../%", "%.", "% /x"} {
			p := strings.Replace(form, "%", name, 1)
			if !RunsLater(p) || !RunsLater(strings.ToUpper(p)) {
				t.Errorf("%s runs later", p)
			}
		}
	}
	for _, p := range []string{
		".envrc", ".vscode/tasks.json", ".husky/pre-commit", ".github/workflows/x.yml", "vendor/x/.git/config", ".git",
		".mcp.json", ".cursor/rules", ".pre-commit-config.yaml", "AGENTS.md", "sub/CLAUDE.md", "GEMINI.md",
		".codex/config.toml", ".claude/settings.json", ".bashrc", ".gitlab-ci.yml",
	} {
		if !RunsLater(p) {
			t.Errorf("%s runs later", p)
		}
	}
	for _, p := range []string{
		"", ".", "src/main.go", "Makefile", "package.json", "git", "x.git", ".gitignore", "src/.cargo/registry",
		"docs/agents.go",
		"claude.md.txt", "config/fish", ".yarn/cache",
	} {
		if RunsLater(p) {
			t.Errorf("%s does not run later", p)
		}
	}
}
