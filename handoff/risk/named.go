package risk

import (
	"path"
	"strings"
)

// Named returns the words of a command line that decide what it does, in order: of each command the program and every
// operand, the values of flags, and the file of each redirect. Flags are left out, as are settings and a shell around
// the line. It returns false for a line that cannot be taken apart.
func Named(line string) ([]string, bool) {
	commands, ok := unwrapped(line)
	var named []string
	for _, c := range commands {
		for i, word := range c.words {
			word = strings.ReplaceAll(word, star, "*")
			switch {
			case word == "cd" && i == 0, c.words[0] == "env" && strings.Contains(word, "="):
			case i == 0:
				named = append(named, path.Base(word))
			case strings.HasPrefix(word, "-"):
				named = append(named, valueOf(word)...)
			default:
				named = append(named, word)
			}
		}
		for _, r := range c.redirects {
			named = append(named, r.path)
		}
	}
	return named, ok
}

// valueOf returns the value that is written to a flag: "x" of "--out=x", "-o=x" and "-osome/x". Letters after one dash
// that are more than a cluster of flags may be one.
func valueOf(flag string) []string {
	_, value, attached := strings.Cut(flag, "=")
	switch letters := strings.TrimPrefix(flag, "-"); {
	case attached:
		return []string{value}
	case !strings.HasPrefix(letters, "-") && (len(letters) > 3 || strings.ContainsAny(letters, "./")):
		return []string{letters[1:]}
	}
	return nil
}
