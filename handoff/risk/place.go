package risk

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// whereabouts resolves paths.
type whereabouts struct {
	workspace string   // absolute; "": none
	cwds      []string // the possible current directories: after "cd x; " also the old one
}

// worktrees are directories in which agents keep workspaces, below their own hidden directories.
var worktrees = strings.NewReplacer("/.codex/worktrees/", "/", "/.claude/worktrees/", "/", "/.cursor/worktrees/", "/")

// cleanWorkspace returns the directory, cleaned, or "" if it cannot be a workspace.
func cleanWorkspace(dir string) string {
	dir = path.Clean(dir)
	if !path.IsAbs(dir) || dir == "/" || RunsLater(worktrees.Replace(dir)) {
		return ""
	}
	return dir
}

// inside returns a path relative to the workspace and true if it is there; else the path itself.
func (w whereabouts) inside(full string) (string, bool) {
	if full == w.workspace {
		return ".", full != ""
	}
	if rel, ok := strings.CutPrefix(full, w.workspace+"/"); ok && w.workspace != "" {
		return rel, true
	}
	return full, false
}

// at returns the absolute paths that a path may mean.
func (w whereabouts) at(p string) []string {
	if path.IsAbs(p) {
		return []string{path.Clean(p)}
	}
	var all []string
	for _, cwd := range w.cwds {
		all = append(all, path.Join(cwd, p))
	}
	return all
}

// read returns the risk of reading a path: low in the workspace, medium for system files.
func (w whereabouts) read(p string) Tier {
	if p == "-" || p == "/dev/null" {
		return Low
	}
	if !isPath(p) {
		return High
	}
	risk := Low
	for _, full := range w.at(p) {
		rel, inside := w.inside(full)
		switch {
		case !isOpen(rel) || !hasKnownEnding(full):
			return High
		case inside:
		case systemFiles.MatchString(full):
			risk = max(risk, Medium)
		default:
			return High
		}
	}
	return risk
}

// write returns the risk of writing a file, or running it: medium in the workspace.
func (w whereabouts) write(p string) Tier {
	if !isPath(p) || slices.ContainsFunc(w.at(p), func(full string) bool {
		rel, inside := w.inside(full)
		return !inside || !isOpen(rel)
	}) {
		return High
	}
	return Medium
}

// isPath reports whether a word can be a path, and is no option, home directory or escape.
func isPath(p string) bool {
	return p != "" && p[0] != '-' && p[0] != '~' && !strings.Contains(p, `\`) && !strings.ContainsFunc(p, isUnseen)
}

var (
	// systemFiles are files that every user may read, and that have no data of users.
	systemFiles = regexp.MustCompile(`^/(usr|bin|sbin|lib(32|64)?|opt/homebrew|nix/store)(/|$)` +
		`|^/etc/(hosts|hostname|os-release|timezone|shells)$|^/proc/(cpuinfo|meminfo|version|uptime|loadavg)$`)
	// secrets matches words in the names of credentials, and the endings of their files.
	secrets = regexp.MustCompile(`(?i)(^|[^a-z])(secrets?|credentials?|creds?|passw(or)?ds?|passphrases?|tokens?|` +
		`environ|api[-_]?keys?|private[-_]?keys?|service[-_]?accounts?|keystores?|kubeconfig|auth\.json|` +
		`authorized_keys)([^a-z]|$)|(^|/)id_|\.(env|pem|key|p12|pfx|jks|kdbx|ppk|asc|gpg|tfstate|tfvars|ovpn)([^a-z]|$)`)
)

const (
	// code has the endings of source files: their names may have the words of secrets.
	code = `go py pyi js jsx mjs cjs ts tsx mts cts rs java kt kts c h cc cpp hpp cs rb php swift scala ex exs erl hs ml
		clj lua r jl zig dart vue svelte css scss less htm html proto graphql`
	// data has the endings of other files that usually have no credentials.
	data = `mod sum work sql sh bash zsh fish md mdx rst adoc txt csv tsv json jsonl json5 yml yaml toml xml ini cfg conf
		properties lock log out diff patch example sample template dist tmpl gradle cmake mk bzl nix svg png jpg jpeg gif webp
		ico pdf wasm map snap golden tar tgz gz zip xz bz2 so ipynb tex bib po`
	// hidden has names with a dot in front that are plain files. After the name may come one of endings.
	hidden = `. ... .gitignore .gitkeep .dockerignore .npmignore .helmignore .eslintignore .prettierignore .editorconfig
		.eslintrc .prettierrc .stylelintrc .babelrc .browserslistrc .coveragerc .pylintrc .golangci .node-version
		.python-version .ruby-version .tool-versions .nvmrc .rubocop .flake8 .markdownlint .clang-format .clang-tidy .rustfmt
		.changeset .env.example .env.sample .env.template .env.dist`
	endings = "js cjs mjs ts json yml yaml toml"
)

// ending returns the file name extension of a path, in lower case, without the dot. A dot at the beginning of the name
// does not count.
func ending(p string) string {
	return strings.ToLower(strings.TrimPrefix(path.Ext(strings.TrimPrefix(path.Base(p), ".")), "."))
}

// hasKnownEnding reports whether the last element of a path has no ending, or a known one, so that it is probably no
// file of credentials.
func hasKnownEnding(p string) bool {
	e := ending(p)
	return e == "" || number.MatchString(e) || oneOf(code, e) || oneOf(data, e)
}

// isHidden reports whether an element of a path is hidden, and whether it is a known plain file.
func isHidden(element string) (hiding, known bool) {
	if !strings.HasPrefix(element, ".") {
		return false, false
	}
	stem := element
	if e := ending(element); oneOf(endings, e) {
		stem = element[:len(element)-len(e)-1]
	}
	return true, oneOf(hidden, element) || oneOf(hidden, stem)
}

// isOpen reports whether a path, relative to the workspace or absolute, has no name of a credential, nothing that runs
// later, and nothing hidden that is unknown.
func isOpen(rel string) bool {
	example := false
	for e := range strings.SplitSeq(rel, "/") {
		hiding, known := isHidden(e)
		if hiding && !known {
			return false
		}
		example = known
	}
	return !RunsLater(rel) && (example || oneOf(code, ending(rel)) || !secrets.MatchString(rel))
}
