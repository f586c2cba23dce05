package risk

import (
	"path"
	"regexp"
	"strings"
)

// whereabouts resolves paths.
type whereabouts struct {
	workspace string   // absolute; "": none
	cwds      []string // the possible current directories: after "cd x; " also the old one
}

// worktrees matches directories in which agents keep workspaces, below their own hidden directories.
var worktrees = re(`/\.[\w-]+/worktrees/`)

// cleanWorkspace returns the directory, cleaned, or "" if it cannot be a workspace.
func cleanWorkspace(dir string) string {
	dir = path.Clean(dir)
	if !path.IsAbs(dir) || dir == "/" || isHidden(worktrees.ReplaceAllString(dir, "/")) {
		return ""
	}
	return dir
}

// at returns the absolute paths that a path may mean.
func (w *whereabouts) at(p string) []string {
	var all []string
	for _, cwd := range w.cwds {
		if path.IsAbs(p) {
			cwd = "/"
		}
		all = append(all, path.Join(cwd, p))
	}
	return all
}

// each returns the highest risk of what a path may mean, each relative to the workspace. Outside of it all is high.
func (w *whereabouts) each(p string, judge func(rel string) Tier) Tier {
	if w.workspace == "" || p == "" || strings.ContainsAny(p[:1], "-~@") || strings.ContainsAny(p, `\:`) ||
		strings.ContainsFunc(strings.ReplaceAll(p, star, ""), isUnseen) {
		return High
	}
	risk := Low
	if strings.HasPrefix(p, star) { // a name in the directory may look like a flag
		risk = Medium
	}
	for _, full := range w.at(p) {
		rel, inside := strings.CutPrefix(full+"/", w.workspace+"/")
		if !inside {
			return High
		}
		risk = max(risk, judge(path.Clean(rel)))
	}
	return risk
}

// isHidden reports whether an element of a path is hidden, and the path no file with a listed name.
func isHidden(p string) bool {
	dir, name := path.Split(p)
	for e := range strings.SplitSeq(dir, "/") {
		if strings.HasPrefix(e, ".") && e != "." && e != "..." {
			return true
		}
	}
	return strings.HasPrefix(name, ".") && name != "." && name != "..." && !isFamiliar(name)
}

// isFamiliar reports whether a file has a listed name.
func isFamiliar(p string) bool { return oneOf(familiar, strings.ToLower(path.Base(p))) }

// list returns the risk of showing that a file is there, its size or its lines.
func list(rel string) Tier {
	if secret(rel) && !isFamiliar(rel) && !oneOf(code, ending(rel)) {
		return max(Medium, build(rel))
	}
	return build(rel)
}

// read returns the risk of showing what is in a file, or with a star in many.
func read(rel string) Tier {
	e, many := ending(rel), strings.Contains(rel, star)
	switch {
	case isFamiliar(rel):
		return build(rel)
	case isHidden(rel), !oneOf(code+prose+data, e), secretFile.MatchString(strings.ReplaceAll(rel, star, "")),
		secret(rel) && !oneOf(code, e),
		oneOf(data, e) && (many || private.MatchString(rel)):
		return High
	case many, oneOf(data, e), secret(rel), oneOf(code, e) && tuned.MatchString(kebab(rel)),
		oneOf(prose, e) && private.MatchString(rel):
		return Medium
	}
	return Low
}

// work returns the risk of letting a listed program work on a file or directory: only what is hidden or secret is high.
func work(rel string) Tier {
	if !isFamiliar(rel) && secret(rel) && !oneOf(code, ending(rel)) {
		return High
	}
	return build(rel)
}

// build returns the risk of building what is in a directory, whatever its name.
func build(rel string) Tier {
	if isHidden(rel) {
		return High
	}
	return Low
}

// rev returns the risk of a word that Git takes as a revision, a range of these, or a path. A revision has no ending.
func rev(rel string) Tier {
	e := ending(rel[strings.LastIndex(".."+rel, ".."):])
	if e != "" && (e[0] < '0' || e[0] > '9') && read(rel) == High {
		return High
	}
	return work(rel)
}

// edit returns the risk of writing a file: medium for source, prose and plain text that configures nothing and is not
// run by itself. Prose in capitals that is not listed may be what agents obey.
func edit(rel string) Tier {
	base, e := path.Base(rel), ending(rel)
	stem, name := strings.TrimSuffix(base, path.Ext(base)), kebab(base)
	switch {
	case strings.HasPrefix(base, "."), isHidden(rel), toolPlace.MatchString(rel), strings.Contains(rel, star), secret(rel) && !oneOf(code, e):
		return High
	case oneOf(code, e) && !toolFile.MatchString(name), oneOf(familiar, strings.ToLower(stem)) && oneOf(prose, e),
		oneOf(prose, e) && !obeyed.MatchString(name) && (stem == strings.ToLower(stem) || stem != strings.ToUpper(stem)),
		oneOf(plain, e) && !toolText.MatchString(name):
		return Medium
	}
	return High
}

// out returns the risk of writing what a program prints to a file: it may be no source.
func out(rel string) Tier {
	if oneOf(code, ending(rel)) {
		return High
	}
	return edit(rel)
}

const (
	// code and prose have the endings of files that anybody may read: of source, and of text for people.
	code = `go rs c h cc cpp hpp java kt scala js jsx ts tsx mjs cjs mts cts vue svelte css scss less html htm py pyi rb php
		cs fs swift dart ex exs erl hs ml clj lua r jl zig proto graphql `
	prose = `md mdx rst adoc tex `
	// data has the endings of other files that usually have no credentials, plain those that may be written.
	data = `txt csv tsv json jsonl yml yaml toml xml ini cfg lock log out diff patch sh bash sql kts gradle cmake mk svg tmpl
		snap golden ipynb po sum mod map `
	plain = `txt log out csv tsv png jpg jpeg gif webp`
	// familiar has the names of files that anybody may read, in lower case.
	familiar = `readme license changelog contributing notice notes roadmap security todo version codeowners makefile dockerfile justfile rakefile
		gemfile cmakelists.txt go.mod go.sum go.work package.json package-lock.json yarn.lock pnpm-lock.yaml
		pnpm-workspace.yaml tsconfig.json jsconfig.json cargo.toml cargo.lock pyproject.toml requirements.txt poetry.lock
		uv.lock gemfile.lock pom.xml composer.json pytest.ini tox.ini .gitignore .gitattributes .dockerignore .editorconfig
		.nvmrc .node-version .python-version .tool-versions .prettierrc .eslintrc.json .env.example .env.sample .env.template`
)

// ending returns the file name extension of a path, in lower case, without the dot.
func ending(p string) string {
	return strings.ToLower(strings.TrimPrefix(path.Ext(strings.TrimPrefix(path.Base(p), ".")), "."))
}

var humps = re(`([a-z0-9])([A-Z])`)

// kebab returns words in lower case, with a hyphen before each hump.
func kebab(s string) string { return strings.ToLower(humps.ReplaceAllString(s, "$1-$2")) }

// secret reports whether a path or a pattern has a word by which secrets are called.
func secret(s string) bool { return secrets.MatchString(kebab(s)) }

var (
	secrets = words(`\w*passw\w* secrets? credentials? creds? pass pwd pw passphrases? tokens? private vault wallets? env pem
		(api|access|private|public|ssh|host|master|deploy|signing)?keys? keystores? keyring environ kubeconfig cookies? jwt
		htpasswd netrc shadow mnemonic recovery authorized id_\w+ p12 pfx tfstate tfvars ovpn wg`)
	// secretFile matches source files that have nothing but secrets.
	secretFile = re(`(?i)(^|/)((secret|credential|password)s?|creds|tokens|(api[-_]?)?keys|env|wp-config|local[-_]?settings)\.\w+$`)
	// tuned matches source files that settings are kept in.
	tuned = words(`config(uration)? conf settings? local environments? prod(uction)? staging database db wp connections?
		seeds? fixtures?`)
	// private matches names of data that concern people or lead into other systems.
	private = parts(`secret token cred pass auth cert key login account session sso ldap saml kube aws gcp azure firebase
		google admin dump backup bak prod live stag customer client user people payroll salar employee billing payment card
		personal pii patient medical tax identit seed 2fa otp mfa database mysql postgres redis mongo smtp mail vpn wg[0-9]
		ssh rsa pgp gpg hosts inventory terraform ansible rclone heroku stripe twilio slack discord telegram hook bot history
		local contact export connect dsn access sa\.json phrase wrangler sign`)
	// These match places, source and text that tools run by themselves, and prose that agents obey.
	toolPlace = re(`(?i)(^|/)(node_modules|vendor|v?env|virtualenv|(site|dist)-packages|s?bin|git-?hooks|scripts?|ci|` +
		`deploy(ment)?|cron[.\w]*)/|^hooks/`)
	toolFile = re(`\.(config|conf|rc|setup|mix|preset|workspace)\.|^(conftest|setup(-tests?)?|(site|user)-?customize|` +
		`(ember-cli-)?build|make|package|mix|manage|tasks?|dodo|wsgi|asgi|deploy|release|publish|web-?pack|rollup|` +
		`(gulp|grunt|jake|nox|fab|pnp)-?file)\.`)
	toolText = parts(`requirements constraints cmake-?lists cron`)
	obeyed   = words(`agents? claude gemini copilot cursor codex skills? prompts? rules? instructions? memory conventions qwen
		warp crush goose junie kiro cline windsurf aider opencode llms?`)
)

// words returns what matches one of a list, in lower case, between other characters than letters; parts also elsewhere.
func words(list string) *regexp.Regexp {
	return re(`(^|[^a-z])(` + strings.Join(strings.Fields(list), "|") + `)([^a-z]|$)`)
}

func parts(list string) *regexp.Regexp { return re(`(?i)` + strings.Join(strings.Fields(list), "|")) }

// oneOf reports whether a word is in a list whose words are separated by blanks.
func oneOf(list, word string) bool {
	for w := range strings.FieldsSeq(list) {
		if w == word {
			return true
		}
	}
	return false
}
