package risk

import (
	"path"
	"slices"
	"strings"
)

// later has the names of files and directories that other programs run or obey by themselves, later and outside of a
// sandbox: to write them is to act without a question. A name of two elements is a file in a directory. Build files
// that people run knowingly and edit all day (Makefile, package.json, Dockerfile, conftest.py) are not among them. Set
// once.
var later = strings.Fields(`
	.git .gitmodules .gitattributes .gitconfig .config/git .hg .husky .lefthook lefthook.yml .lefthook.yml
	.pre-commit-config.yaml
	.github .gitlab-ci.yml .gitlab .circleci .travis.yml .buildkite .drone.yml .woodpecker .woodpecker.yml
	Jenkinsfile azure-pipelines.yml bitbucket-pipelines.yml
	.vscode .idea .zed .fleet .devcontainer .devcontainer.json .exrc .vimrc .nvimrc .nvim.lua .dir-locals.el
	.envrc .npmrc .yarnrc .yarnrc.yml .yarn/releases .yarn/plugins .pnpmfile.cjs .cargo/config .cargo/config.toml .bazelrc
	AGENTS.md AGENTS.override.md CLAUDE.md CLAUDE.local.md GEMINI.md copilot-instructions.md .agents .codex
	.claude .gemini .opencode opencode.json .mcp.json .cursor .cursorrules .windsurf .windsurfrules .clinerules
	.roo .roomodes .kiro .junie .amazonq .continue .aider.conf.yml .goosehints
	.bashrc .bash_profile .bash_login .bash_logout .bash_aliases .profile .zshrc .zshenv .zprofile .zlogin .zlogout
	.xprofile .xinitrc .config/fish .config/autostart .config/systemd .local/bin .ssh`)

// laterLines has the names in lower case, one on each line.
var laterLines = "\n" + strings.ToLower(strings.Join(later, "\n")) + "\n"

// LaterNames returns the names that [RunsLater] knows: of files and directories at any depth, some of two elements with
// a slash between. Everything below such a directory counts, too.
func LaterNames() []string { return slices.Clone(later) }

// RunsLater reports whether a path with slashes is, or is below, something that other programs run or obey by
// themselves: hooks, pipelines, settings of editors, shells and agents. It looks at every element, so paths should be
// relative to the workspace. Case is ignored, and so are dots and blanks at the end of an element, since some file
// systems ignore them.
func RunsLater(p string) bool {
	before := ""
	for e := range strings.SplitSeq(strings.ToLower(path.Clean(p)), "/") {
		e = strings.TrimRight(e, ". ")
		if strings.Contains(laterLines, "\n"+e+"\n") || strings.Contains(laterLines, "\n"+before+"/"+e+"\n") {
			return true
		}
		before = e
	}
	return false
}
