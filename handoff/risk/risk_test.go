package risk

import (
	"strings"
	"testing"

	"switchboard/handoff"
)

const riskWorkspace = "/home/me/src/api"

func riskOfCommand(command string) Tier {
	return Of(handoff.Question{Kind: handoff.QuestionCommand, Command: command, Cwd: riskWorkspace}, riskWorkspace)
}

func TestRiskTable(t *testing.T) {
	n := 0
	for want, list := range riskTable {
		for line := range strings.Lines(list) {
			line = strings.TrimSuffix(line, "\n")
			if line == "" {
				continue
			}
			n++
			command := strings.NewReplacer(`\n`, "\n", `\r`, "\r").Replace(line)
			if got := riskOfCommand(command); got != want {
				t.Errorf("%-60q %s, want %s", command, got, want)
			}
		}
	}
	if n < 150 {
		t.Errorf("only %d commands", n)
	}
}

// commandsOf are the commands of the table, by tier.
func commandsOf(tier Tier) []string {
	var out []string
	for line := range strings.Lines(riskTable[tier]) {
		if line = strings.TrimSuffix(line, "\n"); line != "" {
			out = append(out, strings.NewReplacer(`\n`, "\n", `\r`, "\r").Replace(line))
		}
	}
	return out
}

// removals are ways to delete everything, behind or around another command.
var removals = []string{
	"%s; rm -rf /", "%s ; 'rm' -rf /", "%s && \"rm\" -rf /", "%s || r\\m -rf /", "%s | xargs rm -rf", "%s & rm -rf /", "%s\nrm -rf /", "%s $(rm -rf /)",
	"%s `rm -rf /`", "%s \"$(rm -rf /)\"", "%s <(rm -rf /)", "%s; bash -c 'rm -rf /'", "%s; bash -lc \"rm -rf /\"", "%s; env A=1 rm -rf /", "%s; /bin/rm -rf /", "%s; sudo rm -rf /",
	"rm -rf /; %s", "(rm -rf /); %s", "{ rm -rf /; }; %s", "A=$(rm -rf /) %s", "time rm -rf / && %s", "if true; then rm -rf /; fi; %s", "cd /; rm -rf .; %s", "%s; command rm -rf /", "%s; eval rm -rf /",
	"%s; find / -delete", "%s; git clean -fdx", "%s > /etc/passwd", "%s >> ~/.bashrc", "%s | sh", "%s | sudo tee /etc/x", "%s; python3 -c 'import os'", "%s # ; \n rm -rf /",
}

// TestRiskRemovals holds that deleting is high behind every harmless command, however it is written.
func TestRiskRemovals(t *testing.T) {
	for _, tier := range []Tier{Low, Medium} {
		for _, command := range commandsOf(tier) {
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
			for _, form := range []string{name[:i] + `""` + name[i:], name[:i] + `''` + name[i:], name[:i] + `\` + name[i:], name[:i] + "\\\n" + name[i:], name[:i] + `"` + name[i:] + `"`, name[:i] + "'" + name[i:i+1] + "'" + name[i+1:]} {
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
		{"an edit inside", handoff.Question{Kind: handoff.QuestionFileChange, Changes: []string{"src/a.go", riskWorkspace + "/b.go"}}, riskWorkspace, Medium},
		{"one of them outside", handoff.Question{Kind: handoff.QuestionFileChange, Changes: []string{"src/a.go", "../b.go"}}, riskWorkspace, High},
		{"a hook", handoff.Question{Kind: handoff.QuestionFileChange, Changes: []string{".git/hooks/pre-commit"}}, riskWorkspace, High},
		{"a secret", handoff.Question{Kind: handoff.QuestionFileChange, Changes: []string{".env"}}, riskWorkspace, High},
		{"nobody knows what", handoff.Question{Kind: handoff.QuestionFileChange}, riskWorkspace, High},
		{"an edit without a workspace", handoff.Question{Kind: handoff.QuestionFileChange, Changes: []string{"a.go"}}, "", High},
		{"permissions", handoff.Question{Kind: handoff.QuestionPermissions, Command: "ls"}, riskWorkspace, High},
		{"elicitation", handoff.Question{Kind: handoff.QuestionElicitation}, riskWorkspace, High},
		{"a new kind", handoff.Question{Kind: "telepathy", Command: "ls"}, riskWorkspace, High},
		{"no command", handoff.Question{Kind: handoff.QuestionCommand}, riskWorkspace, High},
		{"reading without a workspace", handoff.Question{Kind: handoff.QuestionCommand, Command: "cat a.go"}, "", Medium},
		{"the whole disk is no workspace", handoff.Question{Kind: handoff.QuestionCommand, Command: "touch /etc/x"}, "/", High},
		{"a relative workspace is none", handoff.Question{Kind: handoff.QuestionCommand, Command: "touch x"}, "src", High},
		{"run elsewhere", handoff.Question{Kind: handoff.QuestionCommand, Command: "touch x", Cwd: "/etc"}, riskWorkspace, High},
		{"read elsewhere", handoff.Question{Kind: handoff.QuestionCommand, Command: "cat x", Cwd: "/opt"}, riskWorkspace, Medium},
		{"too long to be told", handoff.Question{Kind: handoff.QuestionCommand, Command: "echo " + strings.Repeat("x", 5000)}, riskWorkspace, High},
	}
	for _, tt := range tests {
		if got := Of(tt.q, tt.workspace); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

// FuzzRisk holds that any command is judged without trouble, and that one more command never lowers it.
func FuzzRisk(f *testing.F) {
	for tier := range riskTable {
		for _, command := range commandsOf(tier) {
			f.Add(command)
		}
	}
	f.Fuzz(func(t *testing.T, command string) {
		before := riskOfCommand(command)
		if strings.HasSuffix(command, `\`) { // joins what follows
			return
		}
		for _, how := range []string{"%s; rm -rf /", "%s\n rm -rf /", "%s ; 'rm' -rf / ;"} {
			line := strings.Replace(how, "%s", command, 1)
			if after := riskOfCommand(line); after < before {
				t.Errorf("%q is %s, with a removal %s", command, before, after)
			}
		}
	})
}
