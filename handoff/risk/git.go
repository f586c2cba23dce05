package risk

import (
	"slices"
	"strings"
)

var (
	gitReads = setOf("status diff log show rev-parse ls-files ls-tree blame describe shortlog grep cat-file merge-base name-rev count-objects " +
		"whatchanged rev-list diff-tree show-ref for-each-ref check-ignore version help var")
	gitWrites = setOf("add commit push pull fetch merge switch checkout branch tag stash cherry-pick revert rebase reset restore init clone remote worktree mv am apply submodule format-patch notes")
	// gitHigh are options that lose work, change what is already elsewhere, or run something.
	gitHigh = map[string]string{
		"":     "--upload-pack --receive-pack --exec --ext-diff --textconv --output --open-files-in-pager --template --config --no-index",
		"push": "--force --force-with-lease --force-if-includes --mirror --delete --prune -f -d --repo --all", "reset": "--hard --merge --keep", "checkout": "--force -f --ours --theirs -p",
		"switch": "--force -f --discard-changes", "branch": "-D -d -M -C -f --delete --force", "tag": "-d --delete -f --force -u -s", "rebase": "--exec -x -s --strategy",
		"grep": "-O --open-files-in-pager", "commit": "-F --file --template -t", "clone": "-c --config --upload-pack -u --template --reference", "pull": "--force -f --upload-pack -s", "fetch": "--force -f --prune -p --upload-pack --prune-tags",
		"merge": "-s --strategy -X", "am": "--exec", "apply": "--unsafe-paths --directory", "format-patch": "-o --output-directory", "stash": "", "add": "", "init": "--template --separate-git-dir", "worktree": "--force -f", "submodule": "--force -f", "restore": "",
	}
	// gitHighWords are the same as words of a subcommand.
	gitHighWords = map[string]string{
		"stash": "drop clear pop-force", "remote": "add set-url remove rm prune rename set-head", "worktree": "remove prune move", "submodule": "foreach deinit add set-url",
		"checkout": ". -- :/ *", "bisect": "run", "notes": "remove prune", "show-ref": "", "branch": "", "reset": "",
	}
)

// git judges a command by its subcommand. Options before it can define aliases and run programs.
func (j commandJudge) git(args []shellWord) Tier {
	for len(args) > 0 && isOption(args[0]) {
		switch {
		case args[0].text == "--no-pager" || args[0].text == "--no-optional-locks" || args[0].text == "--literal-pathspecs":
			args = args[1:]
		case args[0].text == "--version" && len(args) == 1:
			return Low
		case args[0].text == "-C" && len(args) > 1 && !args[1].dynamic && j.place.inside(args[1].text):
			args = args[2:]
		default:
			return High
		}
	}
	if len(args) == 0 {
		return Low
	}
	sub, rest := args[0], args[1:]
	reads, writes := gitReads[sub.text], gitWrites[sub.text]
	if sub.dynamic || !reads && !writes && !(sub.text == "config" || sub.text == "reflog") || hasOption(rest, gitHigh[""]) || hasOption(rest, gitHigh[sub.text]) || hasWord(rest, gitHighWords[sub.text]) {
		return High
	}
	for _, a := range rest { // "ext::" runs a program, "+ref" and ":ref" force and delete
		if strings.Contains(a.text, "::") || sub.text == "push" && (strings.HasPrefix(a.text, "+") || strings.HasPrefix(a.text, ":") || a.dynamic) {
			return High
		}
		if sub.text == "push" && (strings.Contains(a.text, "://") || strings.Contains(a.text, "@")) || sub.text == "checkout" && strings.Contains(a.text, ".") && !hasOption(rest, "-b") {
			return High // to somewhere else; a file, whose edits are lost
		}
	}
	return max(j.gitPlain(sub.text, rest, writes), j.gitPaths(rest, writes))
}

// gitPlain judges a subcommand without options that are dangerous.
func (j commandJudge) gitPlain(sub string, rest []shellWord, writes bool) Tier {
	switch {
	case sub == "config" && (hasOption(rest, "--get --list -l") && operands(rest) <= 1 && !hasOption(rest, "--unset --add --replace-all --edit -e --remove-section")):
		return Low
	case sub == "reflog" && len(rest) == 0, sub == "branch" && operands(rest) == 0, sub == "tag" && operands(rest) == 0, sub == "remote" && operands(rest) == 0,
		sub == "stash" && len(rest) == 1 && rest[0].text == "list", sub == "worktree" && len(rest) == 1 && rest[0].text == "list":
		return Low
	case sub == "config", sub == "reflog":
		return High
	case sub == "restore" && !hasWord(rest, "--staged"): // throws edits away
		return High
	case sub == "checkout" && operands(rest) > 1 && !hasOption(rest, "-b"):
		return High
	case writes:
		return Medium
	}
	return Low
}

func (j commandJudge) gitPaths(rest []shellWord, writes bool) Tier {
	risk := Low
	if !j.place.inside(".") {
		risk = Medium
		if writes {
			risk = High
		}
	}
	for _, a := range rest {
		p, ok := pathIn(a)
		switch {
		case !ok || strings.Contains(p.text, "://") || strings.HasPrefix(p.text, "git@"):
		case a.dynamic && writes:
			risk = max(risk, Medium)
		case writes && !j.place.inside(p.text):
			risk = High
		default:
			risk = max(risk, j.place.read(p))
		}
	}
	return risk
}

func hasWord(args []shellWord, list string) bool {
	set := setOf(list)
	return slices.ContainsFunc(args, func(a shellWord) bool { return set[a.text] })
}
