package risk

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestRiskOfWhatWasOnceTooLow holds lines that an open list of dangers let through.
func TestRiskOfWhatWasOnceTooLow(t *testing.T) {
	for _, command := range commandsOf(t, "once_too_low") {
		if got := riskOfCommand(command); got != High {
			t.Errorf("%q is %s", command, got)
		}
	}
}

// wrappings are forms around a line: separators, comments, here-documents, shells, programs that run others.
var wrappings = linesOf(`
%s
 %s 
%s;
%s ; ls
ls;%s
ls && %s
ls || %s
ls | %s
ls|%s|wc -l
%s && ls
%s || true
%s | head -n 5
%s 2>&1
%s 2>/dev/null
%s > out.txt
2>/dev/null %s
%s &
! %s
time %s
CI=1 %s
env %s
env CI=1 %s
env -i %s
nice %s
nice -n 5 %s
timeout 5 %s
timeout -k 5 5 %s
nohup %s
command %s
exec %s
builtin %s
xargs %s
xargs -n1 %s
xargs -I{} %s
ls | xargs %s
parallel %s
watch %s
find . -exec %s {} +
sudo %s
(%s)
{ %s; }
if true; then %s; fi
while true; do %s; done
for x in a; do %s; done
f() { %s; }; f
case x in x) %s;; esac
$(%s)
echo $(%s)
echo "$(%s)"
cat <(%s)
[[ -n $(%s) ]]
: ${x:-$(%s)}
ls\n%s
%s\nls
ls;\\\n%s
\\\n%s
ls &&\n%s
cat <<EOF\n%s\nEOF
cat <<'EOF'\nx\nEOF\n%s
cat <<EOF | bash\n%s\nEOF
cat <<EOF\n$(%s)\nEOF
bash <<< '%s'
ls # x\n%s
ls # '\n%s # '
ls # "\n%s # "
cd src && %s
cd src; %s
git --no-pager %s
`)

// shells are forms that take a line as one word.
var shells = linesOf(`
bash -c %s
bash -lc %s
sh -c %s
/bin/zsh -lc %s
/usr/bin/bash -c %s
bash -ic %s
bash -c %s x
bash -c ls -c %s
bash -o errexit -c %s
dash -c %s
fish -c %s
eval %s
env bash -c %s
time bash -c %s
bash -c "bash -c "%s
xargs sh -c %s
echo %s | sh
bash <<< %s
su -c %s
python3 -c %s
trap %s EXIT
alias ls=%s
`)

// TestRiskIsNotWrappedAway holds that no form around a line that is high makes it less.
func TestRiskIsNotWrappedAway(t *testing.T) {
	n := 0
	high := func(line string) {
		n++
		if got := riskOfCommand(line); got != High {
			t.Errorf("%q is %s", line, got)
		}
	}
	once := commandsOf(t, "once_too_low")
	for i, command := range append(once, commandsOf(t, "high")...) {
		for j, how := range wrappings {
			if strings.HasSuffix(command, ">") && strings.HasPrefix(how, "%s 2") { // then it has a target
				continue
			}
			if strings.HasPrefix(how, "cd src &&") && strings.Contains(command, "..") { // it is another place
				continue
			}
			if i >= len(once) && (i+j)%3 > 0 { // each form has more than two hundred lines
				continue
			}
			high(strings.Replace(how, "%s", command, 1))
		}
		for j, how := range shells {
			quote := []func(string) string{inSingle, inDouble, inBackslashes}[(i+j)%3]
			high(strings.Replace(how, "%s", quote(command), 1))
		}
		if commands, ok := parseLine(command); ok {
			if len(commands) == 1 {
				requote(commands[0], high)
			}
			high(command + ` # don't`)
			high(command + ` # "`)
			high(command + ` #`)
			high(command + "\\\n")
		}
	}
	t.Logf("%d lines", n)
}

// requote quotes the words of a command in every way, and breaks its line.
func requote(c command, high func(string)) {
	var rest strings.Builder
	for _, r := range c.redirects {
		rest.WriteString(map[string]string{"FILE": " < ", "OUT": " > "}[r.kind] + inSingle(r.path))
	}
	words := append(append([]string{}, c.sets...), c.words...)
	for _, quote := range []func(string) string{inSingle, inDouble, inBackslashes, inPieces} {
		var line strings.Builder
		for i, w := range words {
			if i < len(c.sets) {
				line.WriteString(w + " ")
				continue
			}
			line.WriteString(quote(w) + " ")
		}
		high(line.String() + rest.String())
		high(strings.Replace(line.String(), " ", " \\\n", 1) + rest.String())
	}
}

func inSingle(s string) string { return "'" + strings.ReplaceAll(s, "'", `'"'"'`) + "'" }

func inDouble(s string) string {
	return `"` + strings.NewReplacer(`"`, `\"`, `\`, `\\`, "$", `\$`, "`", "\\`").Replace(s) + `"`
}

func inBackslashes(s string) string {
	var out strings.Builder
	for _, c := range s {
		out.WriteString(`\` + string(c))
	}
	return out.String()
}

func inPieces(s string) string {
	out := strings.Builder{}
	if s == "" {
		return `""''`
	}
	for i, c := range s {
		out.WriteString([]func(string) string{inSingle, inDouble}[i%2](string(c)))
	}
	return out.String()
}

// TestWordsAreTheShells holds that what passes has the words that a shell makes of it.
func TestWordsAreTheShells(t *testing.T) {
	lines := append(commandsOf(t, "low"), commandsOf(t, "medium")...)
	var script, want strings.Builder
	for _, line := range lines {
		commands, ok := parseLine(line)
		if !ok {
			t.Fatalf("%q is not read", line)
		}
		if c := commands[0]; len(commands) == 1 && len(c.sets)+len(c.redirects) == 0 && !strings.HasPrefix(line, "time ") {
			script.WriteString("printf '<%s>' " + line + "; echo\n")
			want.WriteString("<" + strings.ReplaceAll(strings.Join(c.words, "><"), star, "*") + ">\n")
		}
	}
	for _, shell := range []string{"sh", "bash"} {
		run := exec.CommandContext(t.Context(), shell, "-c", script.String())
		run.Dir = t.TempDir() // there, stars match nothing
		out, err := run.CombinedOutput()
		if err != nil || string(out) != want.String() {
			t.Errorf("%s: %v\n%s", shell, err, out)
		}
	}
}

// TestTableIsWhole holds that each row names kinds that there are, and no flag twice, and that none that writes is low.
func TestTableIsWhole(t *testing.T) {
	for _, r := range table {
		kinds, seen := slices.Clone(r.operands), map[string]bool{}
		for _, f := range r.flags {
			names, kind, takes := strings.Cut(strings.TrimPrefix(f, "+"), ":")
			if takes {
				kinds = append(kinds, kind)
			}
			for name := range strings.FieldsSeq(strings.TrimSuffix(names, "=")) {
				if seen[name] || !strings.HasPrefix(name, "-") {
					t.Errorf("%s: %s twice, or no flag", r.program, name)
				}
				seen[name] = true
			}
		}
		if r.tier < Low || len(r.program) == 0 || strings.Contains(strings.Join(r.program, ""), "@") {
			t.Errorf("%s: %v", r.program, r.tier)
		}
		for _, kind := range kinds {
			kind = strings.TrimRight(kind, "?*")
			if !oneOf("-- BLOB "+runs, kind) && paths[kind] == nil && patterns[kind] == nil {
				t.Errorf("%s: no kind %q", r.program, kind)
			}
			if r.tier == Low && oneOf("EDIT OUT", kind) {
				t.Errorf("%s writes, and is low", r.program)
			}
		}
	}
}
