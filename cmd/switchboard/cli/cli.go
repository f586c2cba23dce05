// Package cli reads command lines: the verbs of a program, each with its flags and arguments. It also prints their
// help, and words what is wrong in a command line. It must not know what a verb does.
//
// A verb is one [Verb]: its flags, its help, and the function that runs it. Values are stored through pointers of known
// types, without reflection: a library that calls methods by name would keep every method of the program in the binary.
package cli

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A Program is a program with verbs.
type Program struct {
	Name    string
	About   string              // the beginning of its help
	Version string              // what --version prints
	Flags   []Flag              // those of all verbs
	Verbs   []*Verb             // the first one runs if none is named
	Env     func(string) string // the environment
}

// A Verb is a verb of a program.
type Verb struct {
	Name, Alias string
	Group       string // the heading that it is listed under; ""
	Help        string // a sentence
	Args        []Arg
	Flags       []Flag
	Uses        []string // the program's flags that its help shows; nil: all
	Examples    []string // command lines
	More        string   // what its help says after the examples
	Run         func(context.Context) error
}

// An Arg is an argument of a verb.
type Arg struct {
	Name     string
	Into     any // *string, or *[]string for all that follow
	Optional bool
	Help     string
}

// A Flag is a flag.
type Flag struct {
	Name, Short string
	Env         string // the variable that sets it too; only for a *[Text]
	Value       string // what its help calls its value, such as FILE
	Into        any    // *string, *[Text], *int, *float64, *bool for a switch, or *[]string if it may be given again
	Commas      bool   // its values are separated by commas, too
	Not         string // the name of the flag that does not go with it; ""
	Hidden      bool   // its help does not show it
	Help        string
}

// A Text is the value of a flag or of a variable.
type Text struct {
	Text string
	From string // the flag or variable that set it, such as --listen; "": it is not set
}

// A Mistake is an error in a command line, in words.
type Mistake string

// Error returns the words.
func (m Mistake) Error() string { return string(m) }

// Mistyped returns a [Mistake].
func Mistyped(format string, args ...any) error { return Mistake(fmt.Sprintf(format, args...)) }

// A line is a command line that is being read.
type line struct {
	*Program
	verb   *Verb
	named  bool     // the line names the verb
	given  []string // the flags of the line, by name
	values []string // the arguments
}

// Parse reads the arguments of a program, and stores the values of flags and arguments. It returns the verb, or nil and
// the text that was asked for: the help or the version. Its error is a [Mistake].
func (p *Program) Parse(args []string) (v *Verb, text string, err error) {
	l := &line{Program: p, verb: p.Verbs[0]}
	if err := l.read(args); err != nil {
		next := "--help tells what there is"
		if l.named {
			next = fmt.Sprintf("`%s %s --help` tells how", p.Name, l.verb.Name)
		}
		return nil, "", Mistyped("%v; %s", err, next)
	}
	switch {
	case slices.Contains(l.given, "help") && l.named:
		return nil, p.helpOf(l.verb), nil
	case slices.Contains(l.given, "help"):
		return nil, p.help(), nil
	case slices.Contains(l.given, "version"):
		return nil, p.Version + "\n", nil
	}
	return l.verb, "", nil
}

func (l *line) read(args []string) error {
	onlyValues := false
	for len(args) > 0 {
		word := args[0]
		args = args[1:]
		switch {
		case onlyValues || word == "-" || !strings.HasPrefix(word, "-"):
			if err := l.value(word); err != nil {
				return err
			}
		case word == "--":
			onlyValues = true
		default:
			taken, err := l.flag(word, args)
			if err != nil {
				return err
			}
			args = args[taken:]
		}
	}
	for _, f := range l.Flags {
		if text, ok := f.Into.(*Text); ok && text.From == "" && f.Env != "" && l.Env(f.Env) != "" {
			*text = Text{l.Env(f.Env), f.Env}
		}
	}
	if slices.Contains(l.given, "help") || slices.Contains(l.given, "version") {
		return nil
	}
	return l.arguments()
}

// value takes the name of the verb, or an argument.
func (l *line) value(word string) error {
	if l.named {
		l.values = append(l.values, word)
		return nil
	}
	var names []string
	for _, v := range l.Verbs {
		names = append(names, v.Name)
		if word == v.Name || v.Alias != "" && word == v.Alias {
			l.verb, l.named = v, true
			return nil
		}
	}
	return Mistyped("there is no verb %s%s", word, meant(word, names))
}

// flag takes a flag, and returns how many of the words after it are its value.
func (l *line) flag(word string, after []string) (taken int, err error) {
	name, value, has := strings.Cut(strings.TrimPrefix(word, "--"), "=")
	if !strings.HasPrefix(word, "--") { // a short flag; its value may follow without a space
		name, value, has = word[1:2], strings.TrimPrefix(word[2:], "="), len(word) > 2
	}
	var help, version bool
	all := slices.Concat(l.Flags, l.verb.Flags, []Flag{
		{Name: "help", Short: "h", Into: &help}, {Name: "version", Into: &version},
	})
	var names []string
	i := slices.IndexFunc(all, func(f Flag) bool {
		names = append(names, "--"+f.Name)
		return word[:2] == "--" && name == f.Name || word[:2] != "--" && name == f.Short
	})
	if i < 0 {
		flag, _, _ := strings.Cut(word, "=")
		return 0, Mistyped("unknown flag %s%s", flag, meant(flag, names))
	}
	f := all[i]
	_, isSwitch := f.Into.(*bool)
	switch {
	case isSwitch && !has:
		value = "true"
	case !has && (len(after) == 0 || after[0] != "-" && strings.HasPrefix(after[0], "-")):
		return 0, Mistyped("--%s needs a value", f.Name)
	case !has:
		value, taken = after[0], 1
	}
	if err := f.set(value); err != nil {
		return 0, Mistyped("--%s %v", f.Name, err)
	}
	for _, other := range all {
		if slices.Contains(l.given, other.Name) && (other.Not == f.Name || f.Not == other.Name) {
			return 0, Mistyped("--%s and --%s can't be used together", other.Name, f.Name)
		}
	}
	l.given = append(l.given, f.Name)
	return taken, nil
}

// set stores the value of a flag.
func (f Flag) set(text string) error {
	var err error
	switch into := f.Into.(type) {
	case *string:
		*into = text
	case *Text:
		*into = Text{text, "--" + f.Name}
	case *[]string:
		words := []string{text}
		if f.Commas {
			words = strings.Split(text, ",")
		}
		*into = append(*into, words...)
	case *int:
		if *into, err = strconv.Atoi(text); err != nil {
			return Mistyped("needs a whole number, not %q", text)
		}
	case *float64:
		if *into, err = strconv.ParseFloat(text, 64); err != nil {
			return Mistyped("needs a number, not %q", text)
		}
	case *bool:
		if *into = text == "true"; !*into && text != "false" {
			return Mistyped("stands alone, or is true or false, not %q", text)
		}
	}
	return nil
}

// arguments stores the arguments.
func (l *line) arguments() error {
	values := l.values
	for i, a := range l.verb.Args {
		if len(values) == 0 {
			if a.Optional {
				return nil
			}
			return Mistyped("needs %s", summary(l.verb.Args[i:]))
		}
		switch into := a.Into.(type) {
		case *string:
			*into, values = values[0], values[1:]
		case *[]string:
			*into, values = values, nil
		}
	}
	if len(values) > 0 {
		return Mistyped("%s is too much", values[0])
	}
	return nil
}
