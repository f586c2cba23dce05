package risk

import (
	"regexp"
	"slices"
	"strings"
)

// A tool is a program with subcommands.
type tool struct {
	low, medium map[string]bool // subcommands; the rest is high
	alone       Tier            // without a subcommand
	options     string          // options that make it high
	writes      string          // options that make a low one medium
	inner       map[string]tool // subcommands that have subcommands
	every       bool            // all its words are subcommands
	words       bool            // "-race" is one option, not four
}

var nodeTool = tool{
	low: setOf("test t ls list outdated view info why audit-report"), medium: setOf("install i ci add run run-script up update upgrade dedupe build lint check typecheck format pack"),
	alone: Medium, options: "-g --global --location --prefix --unsafe-perm --script-shell --registry --userconfig --globalconfig --ignore-scripts=false --node-options --cafile --dir -C --cwd",
	inner: map[string]tool{"run": nodeScripts, "run-script": nodeScripts},
}

var nodeScripts = tool{
	low: setOf("test lint typecheck check tsc unit test:unit"), medium: setOf("build format dev start watch compile docs coverage e2e generate storybook fix"),
	alone: Low, options: nodeToolOptions,
}

const nodeToolOptions = "-g --global --prefix --script-shell --node-options"

// knownTools are programs with subcommands that agents often use. Set once.
var knownTools = map[string]tool{
	"go": {
		low: setOf("test vet list version doc help"), medium: setOf("build mod get install fmt work fix tool"), alone: Low,
		options: "-exec --exec -toolexec --toolexec -vettool --vettool -overlay --overlay -modfile --modfile -ldflags --ldflags -gcflags -asmflags -gccgoflags -compiler -w", writes: "-o -coverprofile -cpuprofile -memprofile -json-out -fuzz -c", words: true,
	},
	"npm": nodeTool, "pnpm": nodeTool, "yarn": nodeTool, "bun": nodeTool,
	"pip": pipTool, "pip3": pipTool,
	"uv":     {low: setOf("tree version"), medium: setOf("sync lock add venv pip"), alone: Low, inner: map[string]tool{"pip": pipTool}, options: "--system --target --prefix"},
	"poetry": {low: setOf("show check"), medium: setOf("install add update lock build"), alone: Low},
	"cargo": {
		low: setOf("test t check c clippy tree metadata version help doc"), medium: setOf("build b add fetch install update fmt fix bench generate-lockfile"), alone: Low,
		options: "--config --target-dir --root --manifest-path -Z -C", writes: "--fix",
	},
	"make":   {medium: setOf("test tests check lint vet build all fmt format verify compile typecheck unit"), alone: Medium, options: "-f --file --makefile -C --directory -E --eval -I", every: true},
	"just":   {medium: setOf("test check lint build fmt"), alone: Medium, every: true},
	"mvn":    {low: setOf("test"), medium: setOf("compile package verify validate"), alone: Medium, options: "-f --file -s --settings -D", every: true},
	"gradle": {low: setOf("test check"), medium: setOf("build assemble compileJava"), alone: Medium, options: "-b -c -I --init-script -p -P -D", every: true},
	"docker": dockerTool, "podman": dockerTool,
	"kubectl": {medium: setOf("get describe logs version explain top"), alone: Low, options: "--kubeconfig --token --raw"},
	"brew":    {medium: setOf("install list info search upgrade update outdated deps"), alone: Low},
	"apt":     packageTool, "apt-get": packageTool, "dnf": packageTool, "yum": packageTool, "apk": {medium: setOf("add info search update list"), alone: Low},
	"gem": {low: setOf("list"), medium: setOf("install fetch search"), alone: Low}, "bundle": {low: setOf("list"), medium: setOf("install update check"), alone: Medium},
	"composer": {low: setOf("show"), medium: setOf("install update require"), alone: Low},
	"gh": {
		medium: setOf("pr issue run repo release"), alone: Low, inner: map[string]tool{
			"pr": {medium: setOf("list view status diff checks create checkout comment"), alone: Medium}, "issue": {medium: setOf("list view status create comment"), alone: Medium},
			"run": {medium: setOf("list view watch"), alone: Medium}, "repo": {medium: setOf("view list clone"), alone: Medium}, "release": {medium: setOf("list view"), alone: Medium},
		},
	},
}

var pipTool = tool{
	low: setOf("list show freeze check"), medium: setOf("install download wheel"), alone: Low,
	options: "--target -t --prefix --root --user --break-system-packages --config-settings --global-option --install-option --python --index-url -i --extra-index-url",
}

var packageTool = tool{medium: setOf("install update list search show info policy"), alone: Low, options: "-o --option -c --config-file --installroot"}

var dockerTool = tool{
	medium: setOf("ps images logs version info build pull compose inspect top stats"), alone: Low, options: "-H --host --config --context -v --volume --mount --privileged --secret --ssh --output -o",
	inner: map[string]tool{"compose": {medium: setOf("ps logs up build pull config start"), alone: Medium, options: "-f --file --env-file --project-directory"}},
}

// tool judges a program by its subcommand. Options before it may take it as their value, so then every
// word counts as the subcommand, and nothing is low.
func (j commandJudge) tool(t tool, args []shellWord) Tier {
	given := hasOption
	if t.words {
		given = hasWholeOption
	}
	if given(args, t.options) {
		return High
	}
	risk := Low
	if given(args, t.writes) || !j.place.inside(".") {
		risk = Medium
	}
	for i, a := range args {
		if a.dynamic {
			return High
		}
		if p, ok := pathIn(a); (ok && strings.ContainsAny(p.text, "/~") || strings.HasPrefix(a.text, "..")) && !j.place.inside(trimPackage(p.text)) {
			risk = High
		}
		if variable, _, ok := strings.Cut(a.text, "="); ok && isVariable(variable) && i < 2 {
			risk = max(risk, variableRisk(variable, ""))
		}
	}
	return max(risk, j.subcommand(t, args))
}

// trimPackage leaves the path of "./..." and takes the scheme of an address, which is none.
func trimPackage(p string) string {
	if strings.Contains(p, "://") && !strings.HasPrefix(strings.ToLower(p), "file:") {
		return "."
	}
	return strings.TrimSuffix(p, "...")
}

func (j commandJudge) subcommand(t tool, args []shellWord) Tier {
	other := func(a shellWord) bool { return !isOption(a) && !t.low[a.text] && !t.medium[a.text] }
	if t.every {
		if slices.ContainsFunc(args, other) {
			return High
		}
		return t.alone
	}
	for i, a := range args {
		if isOption(a) {
			continue
		}
		risk := High
		switch {
		case t.low[a.text]:
			risk = Low
		case t.medium[a.text]:
			risk = Medium
		}
		if inner, ok := t.inner[a.text]; ok {
			risk = j.tool(inner, args[i+1:])
		}
		if i > 0 { // an option came first
			risk = max(risk, Medium)
			if slices.ContainsFunc(args[i+1:], other) {
				risk = High
			}
		}
		return risk
	}
	return t.alone
}

const sedLines = `([0-9]+|\$|/[^/\n]*/)(,(\+?[0-9]+|\$|/[^/\n]*/))?`

var (
	sedPrints = regexp.MustCompile(`^` + sedLines + `p(;` + sedLines + `p)*$`)
	sedDrops  = regexp.MustCompile(`^` + sedLines + `d$`)
	sedWhere  = regexp.MustCompile(`^` + sedLines)
	sedFlags  = regexp.MustCompile(`^[gIip0-9]*$`)
)

// sedReplaces tells whether a script is one replacement and nothing else: "s/a/b/g". The flags e and w
// run and write.
func sedReplaces(script string) bool {
	script = script[len(sedWhere.FindString(script)):]
	if len(script) < 4 || script[0] != 's' || strings.IndexByte("/|#,:@!", script[1]) < 0 || strings.Contains(script, "\n") {
		return false
	}
	mark, marks := script[1], 0
	for i := 1; i < len(script); i++ {
		switch script[i] {
		case '\\':
			i++
		case mark:
			if marks++; marks == 3 {
				return sedFlags.MatchString(script[i+1:])
			}
		}
	}
	return false
}

// sed judges an edit: printing lines reads, a plain replacement edits, everything else may run code.
func (j commandJudge) sed(args []shellWord) Tier {
	script, edits, scripted := "", false, false
	var files []shellWord
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case a.dynamic:
			return High
		case a.text == "-n", a.text == "-E", a.text == "-r", a.text == "-s":
		case a.text == "-i", a.text == "--in-place", strings.HasPrefix(a.text, "-i") && strings.Trim(a.text[2:], ".bakorig~") == "":
			edits = true
			if i+1 < len(args) && args[i+1].text == "" { // the BSD form
				i++
			}
		case a.text == "-e" && i+1 < len(args) && !scripted:
			i++
			script, scripted = args[i].text, true
		case isOption(a):
			return High
		case !scripted:
			script, scripted = a.text, true
		default:
			files = append(files, a)
		}
	}
	if !sedPrints.MatchString(script) && !sedDrops.MatchString(script) && !sedReplaces(script) {
		return High
	}
	if edits {
		return max(Medium, j.writer("cp", files))
	}
	return j.reader("cat", files)
}

var awkPrints = regexp.MustCompile(`^(/[\w .:=-]*/ ?)?(NR ?[=<>]=? ?[0-9]+ ?)?\{ ?print( ?[$][0-9]+| ?[$]NF| ?,| ?" ")* ?\}$`)

// awk judges a program in its language: only printing fields is known to run nothing.
func (j commandJudge) awk(args []shellWord) Tier {
	for len(args) > 0 && strings.HasPrefix(args[0].text, "-F") && len(args[0].text) < 5 && !args[0].dynamic {
		if args[0].text == "-F" && len(args) > 1 {
			args = args[1:]
		}
		args = args[1:]
	}
	if len(args) == 0 || args[0].dynamic || !awkPrints.MatchString(args[0].text) {
		return High
	}
	return j.reader("cat", args[1:])
}

var pythonModules = map[string]Tier{"pytest": Low, "unittest": Low, "mypy": Low, "flake8": Low, "pylint": Low, "venv": Medium, "compileall": Medium, "black": Medium, "ruff": Medium}

// python judges an interpreter: its version and known modules only.
func (j commandJudge) python(args []shellWord) Tier {
	if onlyAsksVersion(args) {
		return Low
	}
	if len(args) < 2 || args[0].text != "-m" {
		return High
	}
	if module := args[1].text; module == "pip" {
		return j.tool(pipTool, args[2:])
	} else if risk, ok := pythonModules[module]; ok && !args[1].dynamic {
		if risk == Low {
			return j.reader("pytest", args[2:])
		}
		return max(risk, j.writer(module, args[2:]))
	}
	return High
}
