package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"time"

	"switchboard/cmd/switchboard/cli"
	"switchboard/cmd/switchboard/verbs"
	"switchboard/handoff"
	"switchboard/handoff/wording"
	"switchboard/sessions"
	"switchboard/web"
)

// doctorWithin bounds all checks together.
const doctorWithin = 45 * time.Second

// A doctor checks everything that a caller needs to talk to their machines. It goes in the order of repair, since later
// checks often depend on earlier ones. It takes no lock and writes nothing, so it can run beside a service.
type doctor struct {
	out   io.Writer                    // Set once
	env   func(string) string          // Set once
	look  func(string) (string, error) // Set once: finds a program
	s     *settings                    // Set by settings
	state string                       // Set by directory
	here  *verbs.Client                // Set by directory: the service that runs with it, or nil
	wrong int                          // problems that were printed
}

// errMend is the error of the doctor when something needs mending.
var errMend = errors.New("something needs mending")

// doctorVerb is the verb that checks everything that Switchboard needs.
func doctorVerb(c *console) *cli.Verb {
	return &cli.Verb{
		Name: "doctor", Help: "Check everything that Switchboard needs, and say what to fix, in order.",
		Run: func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, doctorWithin)
			defer cancel()
			return (&doctor{out: c.stdout, env: c.env, look: exec.LookPath}).all(ctx, &c.options)
		},
	}
}

// all runs all checks, prints their results, and returns [errMend] if there is a problem.
func (d *doctor) all(ctx context.Context, o *options) error {
	d.ok("program", "%s", thisBuild())
	if d.settings(o); d.directory() {
		d.keys(ctx)
		d.port(ctx)
		d.certificate(time.Now())
		d.store(ctx)
		d.codex()
		d.voice(ctx)
		d.voiceEnds(time.Now())
		d.language()
		d.machines(ctx)
		d.microphone()
		d.webhook(ctx)
	}
	switch d.wrong {
	case 0:
		_, _ = fmt.Fprintln(d.out, "\nnothing needs mending")
		return nil
	case 1:
		_, _ = fmt.Fprintln(d.out, "\n1 thing needs mending")
	default:
		_, _ = fmt.Fprintf(d.out, "\n%d things need mending; begin with the first\n", d.wrong)
	}
	return errMend
}

// language prints the language of the settings, unless it is English.
func (d *doctor) language() {
	if l := wording.Language(d.s.Speech.Language); !l.IsEnglish() {
		d.ok("language", "%s; no native speaker has read its sentences, which are in handoff/wording/languages/%s.txt",
			l.Name(), l)
	}
}

// ok prints that a check found no problem.
func (d *doctor) ok(about, format string, args ...any) {
	_, _ = fmt.Fprintf(d.out, "ok    %-14s %s\n", about, verbs.Plain(fmt.Sprintf(format, args...)))
}

// mend prints and counts a problem, and what to do about it; next may be "".
func (d *doctor) mend(about, text, next string) {
	d.wrong++
	_, _ = fmt.Fprintf(d.out, "mend  %-14s %s\n", about,
		strings.ReplaceAll(strings.TrimSpace(verbs.Plain(text)), "\n", "\n      "))
	if next != "" {
		_, _ = fmt.Fprintf(d.out, "%21s→ %s\n", "", verbs.Plain(next))
	}
}

// mendError prints an error as a problem, in the words that the page and the verbs use. command, if it is not "", says
// what to do instead of the error's own next step.
func (d *doctor) mendError(about string, err error, command string) {
	if fault, ok := errors.AsType[*verbs.Fault](err); ok {
		d.mend(about, cmp.Or(fault.Why, fault.What()), cmp.Or(command, fault.Next))
		return
	}
	text, next := words(err), ""
	if e, ok := errors.AsType[*handoff.Error](err); ok {
		if next = e.NextStep(); e.Why != "" {
			if text = e.Why; !strings.Contains(text, e.Detail) {
				text += " (" + e.Detail + ")"
			}
		}
	}
	d.mend(about, text, cmp.Or(command, next))
}

// settings reads the configuration as the service does.
func (d *doctor) settings(o *options) {
	s, err := loadSettings(o, d.env, nil)
	wrong, ok := errors.AsType[problems](err)
	switch {
	case ok:
		for _, p := range wrong {
			d.mend("configuration", problems{p}.Error(), "")
		}
	case err != nil:
		d.mend("configuration", err.Error(), "")
	case s.File == "":
		d.ok("configuration", "there is no file, and none is needed; `switchboard init` writes one")
	default:
		d.ok("configuration", "%s", s.File)
	}
	d.s = s
}

// directory checks the state directory, and whether a service runs with it. It returns false if the later checks are
// impossible.
func (d *doctor) directory() bool {
	state, err := sessions.StatePath(d.env)
	if err == nil {
		err = sessions.LookDir(state)
	}
	if err != nil {
		d.mend("state", err.Error(), "")
		return false
	}
	d.state = state
	if serving(state) {
		d.here = hereClient(state, "")
		d.ok("state", "%s, in use by the Switchboard that runs", state)
	} else if _, err := os.Stat(state); err != nil {
		d.ok("state", "%s, which the start makes", state)
	} else {
		d.ok("state", "%s", state)
	}
	return d.s != nil
}

// keys prints a line for each key of the settings and each made key: what its holder may do.
func (d *doctor) keys(ctx context.Context) {
	made, err := d.made(ctx)
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // the start makes a missing state directory
		d.mend("key", err.Error(), "")
		return
	}
	all := d.s.withMade(made)
	for i, k := range all {
		about := fmt.Sprintf("%s %x", k.Principal, k.Sum[:6])
		switch {
		case k.Sum == [sha256.Size]byte{}:
			about = k.Principal + ", by `switchboard login` and the verbs here"
		case i >= len(all)-len(made):
			about += ", made by `switchboard key`"
		case k.NamesCallers:
			about += ", for the callers it names"
		}
		d.ok("key", "%s: %s", about, whatMay(k))
	}
}

// made returns the made keys.
func (d *doctor) made(ctx context.Context) ([]madeKey, error) {
	keys, done, err := openMadeKeys(ctx, d.s, d.state)
	if err != nil { // the check of the store reports it
		keys, done = madeKeys{file: keysFile(d.state)}, func() {}
	}
	defer done()
	return keys.read(ctx)
}

// whatMay describes what the holder of a key may do, for people.
func whatMay(k web.Key) string {
	may := "machines " + allOr(k.Servers)
	if len(k.Barred) > 0 {
		may += " but " + strings.Join(k.Barred, ", ")
	}
	parts := []string{
		may, "tools " + allOr(k.Tools), "approve " + k.Approve.String(),
		"instructions " + k.Instructions.String(), "metrics " + yesNo(k.Metrics), "each caller " + bounds(k.Limits),
	}
	if k.KeyLimits != k.Limits {
		parts = append(parts, "all together "+bounds(k.KeyLimits))
	}
	return strings.Join(parts, "; ")
}

// allOr lists names; nil means all.
func allOr(names []string) string {
	switch {
	case names == nil:
		return "all"
	case len(names) == 0:
		return "none"
	}
	return strings.Join(names, ", ")
}

func yesNo(yes bool) string {
	if yes {
		return "yes"
	}
	return "no"
}

// bounds describes limits for people; 0 means no limit.
func bounds(l handoff.Limits) string {
	number := func(n int) string {
		if n == 0 {
			return "any number of"
		}
		return fmt.Sprint(n)
	}
	text := fmt.Sprintf("%s calls, %s minutes a day, %s handoffs a minute", number(l.Calls), number(l.MinutesPerDay),
		number(l.HandoffsPerMinute))
	if l.DollarsPerDay > 0 {
		text += fmt.Sprintf(", $%.2f a day", l.DollarsPerDay)
	}
	if l.DollarsPerCall > 0 {
		text += fmt.Sprintf(", $%.2f a call", l.DollarsPerCall)
	}
	return text
}
