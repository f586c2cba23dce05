package risk

import (
	"cmp"
	"path"
	"regexp"
	"strings"

	"switchboard/handoff"
)

// Risk says how a question may be answered: low and medium ones by a plain yes that is heard, high ones
// by a tap on the page only.
type Tier int

// The tiers.
const (
	Low    Tier = iota // reads, inside the workspace
	Medium             // installs, fetches, ordinary pushes, edits in the workspace, unknown programs
	High               // root, outside, credentials, deleting, code that is not shown, what cannot be read
)

var riskNames = [...]string{"low", "medium", "high"}

// String returns the tier as settings and the audit name it.
func (r Tier) String() string { return riskNames[r] }

// Bounds of a command that is judged at all; a larger one is high.
const (
	maxRiskBytes = 4096
	maxRiskDepth = 4  // shells in shells
	maxRiskParts = 32 // commands of one line
)

// Of tells how risky a question is, from its structure: the command as a shell reads it, the paths of
// an edit. The workspace is the absolute directory where the thread works; without one nothing is inside.
// It fails closed: only what is known to be harmless is low, and what cannot be read is high. Paths are
// judged by their names; links are not followed. Whether the sandbox would stop a command does not count.
func Of(q handoff.Question, workspace string) Tier {
	if q.Beyond != "" {
		return High
	}
	workspace = cleanWorkspace(workspace)
	place := whereabouts{workspace: workspace, cwds: []string{path.Clean(cmp.Or(q.Cwd, workspace))}}
	switch q.Kind {
	case handoff.QuestionCommand:
		return commandRisk(q.Command, place, 0)
	case handoff.QuestionFileChange:
		return changesRisk(q.Changes, place)
	case handoff.QuestionCopy: // what then runs in it asks by itself
		return Low
	}
	return High
}

func cleanWorkspace(dir string) string {
	if !path.IsAbs(dir) || path.Clean(dir) == "/" {
		return ""
	}
	return path.Clean(dir)
}

// changesRisk judges an edit: each path is named, or nobody knows what is edited.
func changesRisk(paths []string, place whereabouts) Tier {
	risk := Medium
	if len(paths) == 0 {
		return High
	}
	for _, p := range paths {
		risk = max(risk, place.write(shellWord{text: p}))
	}
	return risk
}

// whereabouts knows where paths lie.
type whereabouts struct {
	workspace string   // "" when there is none
	cwds      []string // where a relative path may begin: it is inside only if it is from each
	lost      bool     // the directory was changed to somewhere unknown
}

// inside tells whether a path lies in the workspace, wherever it begins.
func (w whereabouts) inside(p string) bool {
	if w.workspace == "" || w.lost || strings.HasPrefix(p, "~") || strings.ContainsAny(p, "\x00") {
		return false
	}
	for _, cwd := range w.cwds {
		full := p
		if !path.IsAbs(p) {
			full = path.Join(cwd, p)
		}
		if full = path.Clean(full); full != w.workspace && !strings.HasPrefix(full, w.workspace+"/") {
			return false
		}
	}
	return true
}

// harmlessDevices swallow or are the command's own output.
var harmlessDevices = setOf("/dev/null /dev/stdout /dev/stderr /dev/stdin /dev/fd/1 /dev/fd/2")

// read is the risk of reading a path.
func (w whereabouts) read(word shellWord) Tier {
	switch {
	case isSecret(word.text):
		return High
	case harmlessDevices[word.text]:
		return Low
	case word.dynamic, !w.inside(word.text):
		return Medium
	}
	return Low
}

// write is the risk of writing to a path. What Git, the agent or a pipeline runs by itself later counts
// as outside.
func (w whereabouts) write(word shellWord) Tier {
	switch {
	case isSecret(word.text):
		return High
	case harmlessDevices[word.text]:
		return Low
	case word.text == "", word.dynamic, !w.inside(word.text), runsLater.MatchString(strings.ToLower(word.text)):
		return High
	}
	return Medium
}

var runsLater = regexp.MustCompile(`(^|/)(\.git|\.github|\.gitlab-ci\.yml|\.husky|\.codex|\.claude|\.circleci|\.envrc|\.vscode|\.devcontainer|\.gitmodules|\.gitattributes|agents\.md)(/|$)`)

var (
	secretPaths = regexp.MustCompile(`(^|[/=:@~])\.(ssh|aws|gnupg|gpg|kube|azure|netrc|pgpass|npmrc|pypirc|git-credentials|docker/config\.json|config/gh|config/gcloud|vault-token|password-store|env|envrc|htpasswd)(/|$|\.[a-z]+$|\*)` +
		`|(^|[/=:@])id_(rsa|dsa|ecdsa|ed25519)|(^|[/=:@])\.?(secrets?|credentials?|passwords?|passwd|tokens?|api_?keys?|service[_-]account)(\.(json|ya?ml|txt|toml|ini|env|enc|cfg|conf))?$` +
		`|\.(pem|key|p12|pfx|jks|keystore|kdbx|token|ppk|asc)$|/etc/(shadow|sudoers|passwd|ssl/private)|keychain|(^|/)auth\.json$|/proc/[^/]*/environ`)
	secretSamples = regexp.MustCompile(`\.env\.(example|sample|template|dist|test)$`)
	secretNames   = regexp.MustCompile(`\$\{?[a-z0-9_]*(token|secret|passw|passwd|api_?key|apikey|private|credential|auth|_key)`)
)

// isSecret tells whether a word names a credential.
func isSecret(text string) bool {
	text = strings.ToLower(text)
	return secretPaths.MatchString(text) && !secretSamples.MatchString(text) || secretNames.MatchString(text)
}

// commandRisk is the highest risk of the commands of a line.
func commandRisk(line string, place whereabouts, depth int) Tier {
	if len(line) > maxRiskBytes || depth > maxRiskDepth {
		return High
	}
	commands, ok := parseShell(line)
	if !ok || len(commands) == 0 || len(commands) > maxRiskParts {
		return High
	}
	risk := Low
	for _, c := range commands {
		judge := commandJudge{place: &place, depth: depth}
		if risk = max(risk, judge.command(c)); risk == High {
			return High
		}
	}
	return risk
}

// A commandJudge judges one command of a line.
type commandJudge struct {
	place *whereabouts // shared by the line: "cd" changes it
	depth int
}

func (j commandJudge) command(c shellCommand) Tier {
	risk := Low
	for _, r := range c.redirects {
		if r.reads {
			risk = max(risk, j.place.read(r.to))
		} else {
			risk = max(risk, j.place.write(r.to))
		}
	}
	words := c.words
	for len(words) > 0 {
		name, value, found := strings.Cut(words[0].text, "=")
		if !found || !isVariable(name) {
			break
		}
		risk = max(risk, variableRisk(name, value))
		words = words[1:]
	}
	if len(words) == 0 {
		return risk
	}
	return max(risk, j.program(words))
}

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func isVariable(name string) bool { return variableName.MatchString(strings.TrimSuffix(name, "+")) }

var (
	harmlessVariables  = setOf("CI DEBUG NODE_ENV LANG LC_ALL TZ FORCE_COLOR NO_COLOR TERM GOOS GOARCH CGO_ENABLED RUST_BACKTRACE PORT VERBOSE GOMAXPROCS PYTHONUNBUFFERED COLUMNS LINES")
	dangerousVariables = regexp.MustCompile(`^(PATH|IFS|ENV|BASH_ENV|SHELL|SHELLOPTS|PS4|PROMPT_COMMAND|HOME|EDITOR|VISUAL|PAGER|MANPAGER|BROWSER|LESSOPEN|LD_.*|DYLD_.*|GIT_.*|SSH_.*|PYTHON.*|NODE_OPTIONS|NODE_PATH|PERL.*|RUBY.*|GOFLAGS|GOPROXY|GONOSUM.*|CC|CXX|RUSTC.*|CARGO_.*|MAKEFLAGS|JAVA_TOOL_OPTIONS|npm_config_.*|NPM_CONFIG_.*|PIP_.*|.*_PROXY|.*_proxy)\+?$`)
)

// variableRisk judges a variable that is set for a command.
func variableRisk(name, value string) Tier {
	switch {
	case dangerousVariables.MatchString(name), isSecret("$" + name), isSecret(value):
		return High
	case harmlessVariables[name]:
		return Low
	}
	return Medium
}

func setOf(list string) map[string]bool {
	set := map[string]bool{}
	for w := range strings.FieldsSeq(list) {
		set[w] = true
	}
	return set
}
