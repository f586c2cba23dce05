package risk

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// binaries are the directories of the system's programs.
var binaries = []string{"/bin/", "/usr/bin/", "/usr/local/bin/", "/opt/homebrew/bin/"}

// wrapper matches the shell with which agents run a line, as its last argument.
var wrapper = regexp.MustCompile(`^(/(usr/)?bin/)?(sh|bash|zsh)$`)

// wrapped returns the line that a command runs in a shell, if the command does nothing else.
func (c command) wrapped() (string, bool) {
	if len(c.words) != 3 || !wrapper.MatchString(c.words[0]) || len(c.sets)+len(c.redirects) > 0 {
		return "", false
	}
	return c.words[2], c.words[1] == "-c" || c.words[1] == "-lc"
}

// lineRisk returns the highest risk of the commands of a line. One shell around the line, which the agent adds, is
// ignored.
func lineRisk(line string, place whereabouts) Tier {
	commands, ok := parseLine(line)
	if ok && len(commands) == 1 {
		if inner, found := commands[0].wrapped(); found {
			commands, ok = parseLine(inner)
		}
	}
	if !ok {
		return High
	}
	risk := Low
	for _, c := range commands {
		risk = max(risk, place.command(c))
	}
	return risk
}

// command returns the risk of one command. "cd" changes the directories in which the next may run.
func (w *whereabouts) command(c command) Tier {
	if w.write(".") == High { // it may run outside of the workspace
		return High
	}
	risk := Low
	for _, r := range c.redirects {
		if r.reads {
			risk = max(risk, w.operand("read", r.path))
		} else {
			risk = max(risk, w.operand("out", r.path))
		}
	}
	for _, set := range c.sets {
		risk = max(risk, w.operand("setting", set))
	}
	words := c.words
	if dir, name := path.Split(words[0]); slices.Contains(binaries, dir) {
		words = append([]string{name}, words[1:]...)
	}
	switch {
	case words[0] == "cd":
		return max(risk, w.change(words[1:]))
	case words[0] == "git":
		return max(risk, w.git(words))
	case words[0] == "env" || words[0] == "timeout" || words[0] == "nice":
		return max(risk, w.prefixed(words))
	}
	return max(risk, w.listed(words))
}

// change handles "cd". If "cd" fails, a command after it runs in the old directory, so that stays possible.
func (w *whereabouts) change(args []string) Tier {
	if len(args) != 1 || args[0] == "-" || w.operand("in", args[0]) == High {
		return High
	}
	w.cwds = append(slices.Clone(w.cwds), w.at(args[0])...)
	slices.Sort(w.cwds)
	w.cwds = slices.Compact(w.cwds)
	if len(w.cwds) > maxCommands {
		return High
	}
	return Low
}

// git returns the risk of a Git command. In another directory than the workspace itself, files may look like a
// repository whose settings run programs, so nothing is low there.
func (w *whereabouts) git(words []string) Tier {
	place := *w
	for len(words) > 1 {
		switch {
		case words[1] == "--no-pager":
			words = append([]string{"git"}, words[2:]...)
			continue
		case words[1] == "-C" && len(words) > 2:
			if place.change(words[2:3]) == High {
				return High
			}
			words = append([]string{"git"}, words[3:]...)
			continue
		}
		break
	}
	risk := place.listed(words)
	if !slices.Equal(place.cwds, []string{place.workspace}) {
		risk = max(risk, Medium)
	}
	return risk
}

// prefixed returns the risk of "env CI=1", "timeout 60" and "nice -n 5" together with the command after them.
func (w *whereabouts) prefixed(words []string) Tier {
	risk, rest := Low, words[1:]
	for words[0] == "env" && len(rest) > 0 && strings.Contains(rest[0], "=") {
		risk, rest = max(risk, w.operand("setting", rest[0])), rest[1:]
	}
	if words[0] == "nice" && len(rest) > 0 && rest[0] == "-n" {
		rest = rest[1:]
	}
	if words[0] == "timeout" || len(rest) < len(words)-1 && words[0] == "nice" {
		if len(rest) == 0 || w.operand("num", rest[0]) == High {
			return High
		}
		rest = rest[1:]
	}
	if len(rest) == 0 { // "env" alone prints all variables
		return High
	}
	return max(risk, w.command(command{words: rest}))
}

// listed returns the lowest risk of the rows that accept a command; without such a row, high.
func (w *whereabouts) listed(words []string) Tier {
	risk := High
	for _, r := range table {
		if args, ok := r.names(words); ok {
			risk = min(risk, max(r.tier, r.arguments(w, args)))
		}
	}
	return risk
}
