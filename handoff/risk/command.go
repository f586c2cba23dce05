package risk

import "slices"

// binaries matches the directories of the system's programs.
var binaries = re(`^(/usr(/local)?|/opt/homebrew)?/bin/`)

// unwrapped returns the commands of a line. One shell around the line, which the agent adds, is ignored.
func unwrapped(line string) ([]command, bool) {
	commands, ok := parseLine(line)
	if !ok || len(commands) != 1 {
		return commands, ok
	}
	c := commands[0]
	if len(c.words) == 3 && len(c.sets)+len(c.redirects) == 0 && oneOf("-c -lc", c.words[1]) &&
		oneOf("sh bash zsh", binaries.ReplaceAllString(c.words[0], "")) {
		return parseLine(c.words[2])
	}
	return commands, ok
}

// line returns the highest risk of the commands of a line. A command after "cd" runs there only if "&&" joins all of
// them; else it may also run in the directory before.
func (w *whereabouts) line(line string) Tier {
	commands, ok := unwrapped(line)
	if !ok {
		return High
	}
	risk, exact := Low, !slices.ContainsFunc(commands[1:], func(c command) bool { return c.after != "&&" })
	for _, c := range commands {
		after, tier := w.command(c)
		if !exact {
			after = append(after, w.cwds...)
		}
		slices.Sort(after)
		w.cwds = slices.Compact(after)
		if risk = max(risk, tier); risk == High || len(w.cwds) > maxCommands {
			return High
		}
	}
	return risk
}

// command returns where the shell is after a command that succeeded, and the risk of the command.
func (w *whereabouts) command(c command) ([]string, Tier) {
	risk := w.each(".", build) // it may run outside of the workspace
	for _, r := range c.redirects {
		risk = max(risk, w.operand(r.kind, r.path))
	}
	for _, set := range c.sets {
		risk = max(risk, w.operand("SET", set))
	}
	words := append([]string{binaries.ReplaceAllString(c.words[0], "")}, c.words[1:]...)
	switch {
	case words[0] != "cd":
		return slices.Clone(w.cwds), max(risk, w.program(words))
	case len(words) != 2:
		return nil, High
	}
	return w.at(words[1]), max(risk, w.operand("PKG", words[1]))
}

// program returns the risk of a program with its arguments. Git's options before the subcommand are not in the table.
// In another directory than the workspace itself, files may look like a repository whose settings run programs, so
// nothing of Git is low there.
func (w *whereabouts) program(words []string) Tier {
	if words[0] != "git" {
		return w.listed(words, "CMD")
	}
	place, risk := *w, Low
	for len(words) > 1 && words[1] == "--no-pager" {
		words = slices.Delete(slices.Clone(words), 1, 2)
	}
	if len(words) > 3 && words[1] == "-C" {
		risk = place.operand("PKG", words[2])
		place.cwds, words = place.at(words[2]), slices.Delete(slices.Clone(words), 1, 3)
	}
	if !slices.Equal(place.cwds, []string{place.workspace}) {
		risk = max(risk, Medium)
	}
	return max(risk, place.listed(words, "CMD"))
}
