package workspace

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// The marks of a patch, in the form that models of OpenAI are trained to write.
const (
	beginPatch = "*** Begin Patch"
	endPatch   = "*** End Patch"
	addFile    = "*** Add File: "
	deleteFile = "*** Delete File: "
	updateFile = "*** Update File: "
	moveTo     = "*** Move to: "
	endOfFile  = "*** End of File"
)

// A section is the change of one file in a patch.
type section struct {
	verb  string // addFile, deleteFile or updateFile
	path  string
	move  string   // new path; "" if it is not moved
	added []string // lines of a new file
	hunks []hunk
}

// A hunk changes one place of a file.
type hunk struct {
	above string // a line above the place; "" for none
	lines []hunkLine
	atEnd bool // the place is the end of the file
}

// A hunkLine is a line of a hunk.
type hunkLine struct {
	mark byte // a space for a line that stays, - or +
	text string
}

// parsePatch parses a patch.
func parsePatch(patch string) ([]section, error) {
	all := strings.Split(strings.TrimSpace(strings.ReplaceAll(patch, "\r\n", "\n")), "\n")
	if len(all) < 2 || strings.TrimSpace(all[0]) != beginPatch || strings.TrimSpace(all[len(all)-1]) != endPatch {
		return nil, fmt.Errorf("a patch begins with the line %q and ends with the line %q", beginPatch, endPatch)
	}
	var sections []section
	for i, line := range all[1 : len(all)-1] {
		if verb, path, ok := head(line); ok {
			sections = append(sections, section{verb: verb, path: path})
			continue
		}
		if len(sections) == 0 {
			return nil, fmt.Errorf("line %d of the patch belongs to no file: %q", i+2, line)
		}
		if err := sections[len(sections)-1].take(line); err != nil {
			return nil, fmt.Errorf("line %d of the patch: %w: %q", i+2, err, line)
		}
	}
	if len(sections) == 0 {
		return nil, errors.New("the patch changes nothing")
	}
	return sections, nil
}

// head parses the line that begins a section.
func head(line string) (verb, path string, ok bool) {
	for _, verb := range []string{addFile, deleteFile, updateFile} {
		if path, ok := strings.CutPrefix(line, verb); ok {
			return verb, strings.TrimSpace(path), true
		}
	}
	return "", "", false
}

// take adds a line to a section.
func (s *section) take(line string) error {
	switch {
	case s.verb == addFile && strings.HasPrefix(line, "+"):
		s.added = append(s.added, line[1:])
		return nil
	case s.verb == addFile:
		return errors.New("lines of a new file begin with +")
	case s.verb == deleteFile:
		return errors.New("a file that is deleted has no lines")
	case strings.HasPrefix(line, moveTo) && len(s.hunks) == 0:
		s.move = strings.TrimSpace(line[len(moveTo):])
		return nil
	case strings.HasPrefix(line, "@@"):
		s.hunks = append(s.hunks, hunk{above: strings.TrimSpace(line[2:])})
		return nil
	}
	if len(s.hunks) == 0 {
		s.hunks = []hunk{{}}
	}
	h := &s.hunks[len(s.hunks)-1]
	switch {
	case strings.TrimSpace(line) == endOfFile:
		h.atEnd = true
	case line == "":
		h.lines = append(h.lines, hunkLine{mark: ' '})
	case line[0] == ' ' || line[0] == '-' || line[0] == '+':
		h.lines = append(h.lines, hunkLine{line[0], line[1:]})
	default:
		return errors.New("lines of a hunk begin with a space, - or +")
	}
	return nil
}

// apply returns the new text of a file.
func (s *section) apply(old string) (string, error) {
	if n := strings.Count(old, "\n"); n > 0 && n == strings.Count(old, "\r\n") {
		made, err := s.apply(strings.ReplaceAll(old, "\r\n", "\n"))
		return strings.ReplaceAll(made, "\n", "\r\n"), err
	}
	var file, out []string
	if old != "" {
		file = strings.Split(strings.TrimSuffix(old, "\n"), "\n")
	}
	out = append(out, s.added...)
	at := 0
	for i, h := range s.hunks {
		found, err := h.find(file, at)
		if err != nil {
			return "", fmt.Errorf("hunk %d: %w", i+1, err)
		}
		out = append(out, file[at:found]...)
		at = found
		for _, l := range h.lines {
			switch {
			case l.mark == '+':
				out = append(out, l.text)
			case l.mark == ' ':
				out = append(out, file[at]) // as in the file, whose spaces may differ from the patch
				at++
			default:
				at++
			}
		}
	}
	if out = append(out, file[at:]...); len(out) == 0 {
		return "", nil
	}
	return strings.Join(out, "\n") + "\n", nil
}

// find returns the line at which a hunk begins, at or after the line from. A hunk that only adds goes below the line
// that it names, or to the end.
func (h *hunk) find(file []string, from int) (int, error) {
	if h.above != "" {
		above := seek(file, []string{h.above}, from, false)
		if above < 0 {
			return 0, fmt.Errorf("there is no line %q below line %d", h.above, from)
		}
		from = above + 1
	}
	var wanted []string
	for _, l := range h.lines {
		if l.mark != '+' {
			wanted = append(wanted, l.text)
		}
	}
	switch {
	case len(wanted) > 0:
	case h.above != "":
		return from, nil
	default:
		return len(file), nil
	}
	found := seek(file, wanted, from, h.atEnd)
	// An empty line at the end may only separate the hunk from the next part of the patch.
	if last := len(h.lines) - 1; found < 0 && len(wanted) > 1 && h.lines[last] == (hunkLine{mark: ' '}) {
		h.lines = h.lines[:last]
		return h.find(file, from)
	}
	if found < 0 {
		return 0, fmt.Errorf("these lines do not stand below line %d:\n%s", from, strings.Join(wanted, "\n"))
	}
	return found, nil
}

// seek returns where lines stand in a file, at or after the line from, or -1. It compares them exactly, then without
// spaces at their ends, then without spaces around them.
func seek(file, wanted []string, from int, atEnd bool) int {
	for _, plain := range []func(string) string{
		func(s string) string { return s },
		func(s string) string { return strings.TrimRight(s, " \t\r") },
		strings.TrimSpace,
	} {
		for i := from; i+len(wanted) <= len(file); i++ {
			if atEnd && i+len(wanted) < len(file) {
				continue
			}
			if slices.EqualFunc(file[i:i+len(wanted)], wanted, func(a, b string) bool { return plain(a) == plain(b) }) {
				return i
			}
		}
	}
	return -1
}
