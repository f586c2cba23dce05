package risk

import (
	"os"
	"strings"
	"testing"

	"switchboard/handoff"
)

const riskWorkspace = "/home/me/src/api"

func riskOfCommand(command string) Tier {
	return Of(handoff.Question{Kind: handoff.QuestionCommand, Command: command, Cwd: riskWorkspace}, riskWorkspace)
}

// TestRiskTable holds the commands of testdata to the tier that their file is named after.
func TestRiskTable(t *testing.T) {
	n := 0
	for _, want := range []Tier{Low, Medium, High} {
		for _, command := range commandsOf(t, want.String()) {
			n++
			if got := riskOfCommand(command); got != want {
				t.Errorf("%-60q %s, want %s", command, got, want)
			}
		}
	}
	if n < 900 {
		t.Errorf("only %d commands", n)
	}
}

// TestBlind holds the figures of lines whose author saw neither the table nor the code. They are not tuned to.
func TestBlind(t *testing.T) {
	for name, most := range map[string]map[Tier]int{
		"blind_dangerous": {Low: 0, Medium: 0},
		"blind_everyday":  {High: 3},
	} {
		n := map[Tier]int{}
		for _, command := range commandsOf(t, name) {
			n[riskOfCommand(command)]++
		}
		for tier, most := range most {
			if n[tier] > most {
				t.Errorf("%s: %d are %s, at most %d were", name, n[tier], tier, most)
			}
		}
	}
}

// commandsOf are the commands of a file of testdata.
func commandsOf(t testing.TB, name string) []string {
	t.Helper()
	list, err := os.ReadFile("testdata/" + name + ".txt")
	if err != nil {
		t.Fatal(err)
	}
	return linesOf(string(list))
}

// escapes are how a list writes what a line of it cannot hold or show.
var escapes = strings.NewReplacer(`\\n`, `\n`, `\n`, "\n", `\r`, "\r", `\u00a0`, "\u00a0", `\u3000`, "\u3000",
	`\u0455`, "\u0455",
	`\u202e`, "\u202e", `\u200b`, "\u200b")

// linesOf are the commands of a list, one a line, with their escapes: "\n" is a new line of the command, "\\n" a
// backslash and an n.
func linesOf(list string) []string {
	var out []string
	for line := range strings.Lines(list) {
		if line = strings.TrimSuffix(line, "\n"); line != "" {
			out = append(out, escapes.Replace(line))
		}
	}
	return out
}

// removals are ways to delete everything, behind or around another command.
var removals = []string{
	"%s; rm -rf /", "%s ; 'rm' -rf /", "%s && \"rm\" -rf /", "%s || r\\m -rf /", "%s | xargs rm -rf", "%s & rm -rf /",
	"%s\nrm -rf /", "%s $(rm -rf /)",
	"%s `rm -rf /`", "%s \"$(rm -rf /)\"", "%s <(rm -rf /)", "%s; bash -c 'rm -rf /'", "%s; bash -lc \"rm -rf /\"",
	"%s; env A=1 rm -rf /", "%s; /bin/rm -rf /", "%s; sudo rm -rf /",
	"rm -rf /; %s", "(rm -rf /); %s", "{ rm -rf /; }; %s", "A=$(rm -rf /) %s", "time rm -rf / && %s",
	"if true; then rm -rf /; fi; %s", "cd /; rm -rf .; %s", "%s; command rm -rf /", "%s; eval rm -rf /",
	"%s; find / -delete", "%s; git clean -fdx", "%s > /etc/passwd", "%s >> ~/.bashrc", "%s | sh", "%s | sudo tee /etc/x",
	"%s; python3 -c 'import os'", "%s # ; \n rm -rf /",
}

// TestRiskRemovals holds that deleting is high behind every harmless command, however it is written.
func TestRiskRemovals(t *testing.T) {
	for _, tier := range []Tier{Low, Medium} {
		for _, command := range commandsOf(t, tier.String()) {
			for _, how := range removals {
				if line := strings.Replace(how, "%s", command, 1); riskOfCommand(line) != High {
					t.Errorf("%q is %s", line, riskOfCommand(line))
				}
			}
		}
	}
}

// TestRiskQuoting holds that quotes and backslashes around or inside of a program's name change nothing.
func TestRiskQuoting(t *testing.T) {
	for _, command := range []string{"rm -rf build", "sudo ls", "chmod 777 x", "dd if=a of=b", "kill 1"} {
		name, rest, _ := strings.Cut(command, " ")
		for i := range len(name) {
			for _, form := range []string{name[:i] + `""` + name[i:], name[:i] + `''` + name[i:], name[:i] + `\` + name[i:],
				name[:i] + "\\\n" + name[i:], name[:i] + `"` + name[i:] + `"`, name[:i] + "'" + name[i:i+1] + "'" + name[i+1:]} {
				if got := riskOfCommand(form + " " + rest); got != High {
					t.Errorf("%q is %s", form+" "+rest, got)
				}
			}
		}
	}
}

func TestRiskOfOtherQuestions(t *testing.T) {
	tests := []struct {
		name      string
		q         handoff.Question
		workspace string
		want      Tier
	}{
		{"an edit inside", handoff.Question{Kind: handoff.QuestionFileChange,
			Changes: []string{"src/a.go", riskWorkspace + "/b.go"}}, riskWorkspace, Medium},
		{"one of them outside", handoff.Question{Kind: handoff.QuestionFileChange, Changes: []string{"src/a.go", "../b.go"}},
			riskWorkspace, High},
		{"a hook", handoff.Question{Kind: handoff.QuestionFileChange, Changes: []string{".git/hooks/pre-commit"}},
			riskWorkspace, High},
		{"a secret", handoff.Question{Kind: handoff.QuestionFileChange, Changes: []string{".env"}}, riskWorkspace, High},
		{"nobody knows what", handoff.Question{Kind: handoff.QuestionFileChange}, riskWorkspace, High},
		{"an edit without a workspace", handoff.Question{Kind: handoff.QuestionFileChange, Changes: []string{"a.go"}}, "",
			High},
		{"permissions", handoff.Question{Kind: handoff.QuestionPermissions, Command: "ls"}, riskWorkspace, High},
		{"elicitation", handoff.Question{Kind: handoff.QuestionElicitation}, riskWorkspace, High},
		{"a new kind", handoff.Question{Kind: "telepathy", Command: "ls"}, riskWorkspace, High},
		{"no command", handoff.Question{Kind: handoff.QuestionCommand}, riskWorkspace, High},
		{"reading without a workspace", handoff.Question{Kind: handoff.QuestionCommand, Command: "cat a.go"}, "", High},
		{"the whole disk is no workspace", handoff.Question{Kind: handoff.QuestionCommand, Command: "touch /etc/x"}, "/",
			High},
		{"a relative workspace is none", handoff.Question{Kind: handoff.QuestionCommand, Command: "touch x"}, "src", High},
		{"run elsewhere", handoff.Question{Kind: handoff.QuestionCommand, Command: "touch x", Cwd: "/etc"}, riskWorkspace,
			High},
		{"read elsewhere", handoff.Question{Kind: handoff.QuestionCommand, Command: "cat x", Cwd: "/opt"}, riskWorkspace,
			High},
		{"below the workspace", handoff.Question{Kind: handoff.QuestionCommand, Command: "cat ../x.go",
			Cwd: riskWorkspace + "/src"}, riskWorkspace, Low},
		{"Git below it", handoff.Question{Kind: handoff.QuestionCommand, Command: "git status", Cwd: riskWorkspace + "/src"},
			riskWorkspace, Medium},
		{"in what runs later", handoff.Question{Kind: handoff.QuestionCommand, Command: "ls", Cwd: riskWorkspace + "/.git"},
			riskWorkspace, High},
		{"a workspace that runs later", handoff.Question{Kind: handoff.QuestionFileChange, Changes: []string{"config"}},
			"/home/me/api/.git", High},
		{"a tree of an agent's own", handoff.Question{Kind: handoff.QuestionFileChange, Changes: []string{"a.go"}},
			"/home/me/.codex/worktrees/1/api", Medium},
		{"an edit of what agents obey",
			handoff.Question{Kind: handoff.QuestionFileChange, Changes: []string{"web/CLAUDE.md"}}, riskWorkspace, High},
		{"an edit of a page with brackets",
			handoff.Question{Kind: handoff.QuestionFileChange, Changes: []string{"app/[id]/page.tsx"}}, riskWorkspace, Medium},
		{"an edit at home", handoff.Question{Kind: handoff.QuestionFileChange, Changes: []string{"~/x.go"}}, riskWorkspace,
			High},
		{"an edit of a name that cannot be seen",
			handoff.Question{Kind: handoff.QuestionFileChange, Changes: []string{"a\u200b.go"}}, riskWorkspace, High},
		{"an edit of a hidden file", handoff.Question{Kind: handoff.QuestionFileChange, Changes: []string{".inputrc"}},
			riskWorkspace, High},
		{"an edit of one that may be read", handoff.Question{Kind: handoff.QuestionFileChange,
			Changes: []string{".gitignore"}}, riskWorkspace, High},
		{"an edit by another system's path",
			handoff.Question{Kind: handoff.QuestionFileChange, Changes: []string{`src\..\.git\config`}}, riskWorkspace, High},
		{"more than the command", handoff.Question{Kind: handoff.QuestionCommand, Command: "ls", Beyond: "the network"},
			riskWorkspace, High},
		{"a copy", handoff.Question{Kind: handoff.QuestionCopy}, riskWorkspace, Low},
		{"too long to be told", handoff.Question{Kind: handoff.QuestionCommand,
			Command: "echo " + strings.Repeat("x", 5000)}, riskWorkspace, High},
	}
	for _, tt := range tests {
		if got := Of(tt.q, tt.workspace); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

// TestRiskOfEdits holds that only listed kinds of plain files may be edited by a spoken yes.
func TestRiskOfEdits(t *testing.T) {
	for want, names := range map[Tier]string{
		Medium: `a.go src/a.ts src/token.go app/[id]/page.tsx src/hooks/useAuth.ts src/__init__.py tests/test_a.py
			src/settings.py web/index.html README.md docs/setup.md NOTES.md notes.txt data.csv build.log`,
		High: `gradlew mise.toml .mise.toml opencode.json opencode.jsonc evil.pth venv/evil.py bin/activate bin/x.py Makefile
			GNUmakefile package.json tsconfig.json pyproject.toml Cargo.toml go.mod Dockerfile compose.yaml Procfile Justfile
			Taskfile.yml Jenkinsfile lefthook-local.yml .pre-commit-config.yaml .githooks/pre-commit hooks/pre-commit .pdbrc
			.gdbinit a.code-workspace .github/a.md .vscode/tasks.json .envrc .npmrc .gitignore .env .env.example deploy.sh
			conftest.py setup.py sitecustomize.py noxfile.py manage.py build.rs Package.swift build.gradle build.gradle.kts
			gulpfile.js Gruntfile.js vite.config.ts jest.setup.ts karma.conf.js eslint.config.mjs setupTests.ts
			scripts/release.py ci/run.py node_modules/a/index.js vendor/a/a.go requirements.txt CMakeLists.txt crontab a.service
			CLAUDE.md claude.md AGENTS.md docs/AGENTS.override.md WARP.md SKILL.md .cursor/rules/a.md secrets.txt tokens.md
			id_rsa awsCredentials.json a .. / ~/a.go ../a.go a.go~ a.GO.sh README.sh`,
	} {
		for name := range strings.FieldsSeq(names) {
			q := handoff.Question{Kind: handoff.QuestionFileChange, Changes: []string{name}}
			if got := Of(q, riskWorkspace); got != want {
				t.Errorf("%s: %s, want %s", name, got, want)
			}
		}
	}
}

// FuzzRisk holds that any command is judged without trouble, and that nothing can hide behind one that may pass.
func FuzzRisk(f *testing.F) {
	for _, tier := range []Tier{Low, Medium, High} {
		for _, command := range commandsOf(f, tier.String()) {
			f.Add(command)
		}
	}
	f.Fuzz(func(t *testing.T, command string) {
		if riskOfCommand(command) == High {
			return
		}
		for _, how := range removals {
			if line := strings.Replace(how, "%s", command, 1); riskOfCommand(line) != High {
				t.Errorf("%q is %s", line, riskOfCommand(line))
			}
		}
	})
}
