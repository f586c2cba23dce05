package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Columns of the help.
const (
	width    = 80
	maxLeft  = 30 // of the left column; what is as wide has a line of its own
	between  = 4
	indented = "  "
)

// help returns the help of the program.
func (p *Program) help() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Usage: %s <command> [flags]\n\n%s\n", p.Name, p.About)
	p.writeFlags(&b, nil)
	var groups []string // in the order of the verbs
	verbs := map[string][][2]string{}
	for _, v := range p.Verbs {
		if verbs[v.Group] == nil {
			groups = append(groups, v.Group)
		}
		name := v.Name
		if v.Alias != "" {
			name += " (" + v.Alias + ")"
		}
		verbs[v.Group] = append(verbs[v.Group], [2]string{name, v.Help})
	}
	for _, group := range groups {
		writeColumns(&b, cmp.Or(group, "Commands:"), verbs[group])
	}
	fmt.Fprintf(&b, "\nRun \"%s <command> --help\" for more information on a command.\n", p.Name)
	return b.String()
}

// helpOf returns the help of a verb.
func (p *Program) helpOf(v *Verb) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Usage: %s [flags]\n\n%s\n", strings.TrimSpace(p.Name+" "+v.Name+" "+summary(v.Args)), v.Help)
	if len(v.Examples) > 0 {
		fmt.Fprintf(&b, "\nExamples:\n\n    %s\n", strings.Join(v.Examples, "\n\n    "))
	}
	if v.More != "" {
		fmt.Fprintf(&b, "\n%s\n", strings.Join(wrap(v.More, width), "\n"))
	}
	var args [][2]string
	for _, a := range v.Args {
		args = append(args, [2]string{summary([]Arg{a}), a.Help})
	}
	if len(args) > 0 {
		writeColumns(&b, "Arguments:", args)
	}
	p.writeFlags(&b, v)
	return b.String()
}

// summary returns arguments as a usage line shows them; all after an optional one are optional, too.
func summary(args []Arg) string {
	if len(args) == 0 {
		return ""
	}
	text := "<" + args[0].Name + ">"
	if _, all := args[0].Into.(*[]string); all {
		text += " ..."
	}
	rest := summary(args[1:])
	if text = strings.TrimSpace(text + " " + rest); args[0].Optional {
		text = "[" + text + "]"
	}
	return text
}

// writeFlags writes the flags of a verb; nil: those of the program.
func (p *Program) writeFlags(b *strings.Builder, v *Verb) {
	rows := [][2]string{{"-h, --help", "Show context-sensitive help."}}
	add := func(f Flag) {
		name := "    --" + f.Name
		if f.Short != "" {
			name = "-" + f.Short + ", --" + f.Name
		}
		if f.Value != "" {
			name += "=" + f.Value
		}
		help := f.Help
		if f.Env != "" {
			help += " ($" + f.Env + ")"
		}
		if !f.Hidden {
			rows = append(rows, [2]string{name, help})
		}
	}
	for _, f := range p.Flags {
		if v == nil || v.Uses == nil || slices.Contains(v.Uses, f.Name) {
			add(f)
		}
	}
	if v == nil || v.Uses == nil {
		add(Flag{Name: "version", Help: "say which version this is"})
	}
	if v != nil && len(v.Flags) > 0 {
		rows = append(rows, [2]string{})
		for _, f := range v.Flags {
			add(f)
		}
	}
	writeColumns(b, "Flags:", rows)
}

// writeColumns writes rows of two columns under a title.
func writeColumns(b *strings.Builder, title string, rows [][2]string) {
	left := 0
	for _, row := range rows {
		if len(row[0]) < maxLeft {
			left = max(left, len(row[0]))
		}
	}
	fmt.Fprintf(b, "\n%s\n", title)
	margin := strings.Repeat(" ", left+between)
	for _, row := range rows {
		lines := wrap(row[1], width-len(indented)-len(margin))
		first := row[0]
		if len(first) <= left && len(lines) > 0 {
			first, lines = fmt.Sprintf("%-*s%s", len(margin), first, lines[0]), lines[1:]
		}
		b.WriteString(strings.TrimRight(indented+first, " ") + "\n")
		for _, line := range lines {
			b.WriteString(indented + margin + line + "\n")
		}
	}
}

// wrap breaks a text into lines of at most so many columns, between its words.
func wrap(text string, columns int) (lines []string) {
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && len(line)+1+len(word) > columns {
			lines, line = append(lines, line), ""
		}
		line = strings.TrimSpace(line + " " + word)
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}
