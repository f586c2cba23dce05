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

	"switchboard/cmd/switchboard/verbs"
	"switchboard/handoff"
	"switchboard/handoff/wording"
	"switchboard/sessions"
	"switchboard/sessions/redis"
	"switchboard/web"
)

// doctorWithin bounds all that the doctor asks.
const doctorWithin = 45 * time.Second

// A doctor looks at everything that could keep somebody from talking to their machines, in the order in which it is to
// be mended: what comes later often needs what comes before. It takes no lock and writes nothing, so it may look beside
// a service that runs.
type doctor struct {
	out   io.Writer                    // Set once
	env   func(string) string          // Set once
	look  func(string) (string, error) // Set once: finds a program
	s     *settings                    // Set by settings
	state string                       // Set by directory
	here  *verbs.Client                // Set by directory: the service that runs with it; nil: none does
	wrong int
}

// errMend is what the doctor ends with when something needs mending.
var errMend = errors.New("something needs mending")

// doctorVerb looks, says what it found, and returns [errMend] where not all is well.
func doctorVerb(ctx context.Context, o *options, env func(string) string, stdout io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, doctorWithin)
	defer cancel()
	d := &doctor{out: stdout, env: env, look: exec.LookPath}
	d.ok("program", "%s", thisBuild())
	if d.settings(o); d.directory() {
		d.keys(ctx)
		d.port(ctx)
		d.certificate(time.Now())
		d.store(ctx)
		d.instances(ctx)
		d.programs()
		d.voice(ctx)
		d.voiceEnds(time.Now())
		d.language()
		d.machines(ctx)
		d.microphone()
		d.webhook(ctx)
	}
	switch d.wrong {
	case 0:
		_, _ = fmt.Fprintln(stdout, "\nnothing needs mending")
		return nil
	case 1:
		_, _ = fmt.Fprintln(stdout, "\n1 thing needs mending")
	default:
		_, _ = fmt.Fprintf(stdout, "\n%d things need mending; begin with the first\n", d.wrong)
	}
	return errMend
}

// language says in which language callers are told and asked, where the settings name one.
func (d *doctor) language() {
	if l := wording.Language(d.s.Speech.Language); !l.IsEnglish() {
		d.ok("language", "%s; no native speaker has read its sentences, which are in handoff/wording/languages/%s.txt",
			l.Name(), l)
	}
}

// ok says that something is well.
func (d *doctor) ok(about, format string, args ...any) {
	_, _ = fmt.Fprintf(d.out, "ok    %-14s %s\n", about, verbs.Plain(fmt.Sprintf(format, args...)))
}

// mend says what is wrong, and what to do about it; next may be "".
func (d *doctor) mend(about, text, next string) {
	d.wrong++
	_, _ = fmt.Fprintf(d.out, "mend  %-14s %s\n", about,
		strings.ReplaceAll(strings.TrimSpace(verbs.Plain(text)), "\n", "\n      "))
	if next != "" {
		_, _ = fmt.Fprintf(d.out, "%21s→ %s\n", "", verbs.Plain(next))
	}
}

// mendError says an error in the words that it has everywhere.
func (d *doctor) mendError(about string, err error, command string) {
	if fault, ok := errors.AsType[*verbs.Fault](err); ok {
		d.mend(about, cmp.Or(fault.Why, fault.Message), cmp.Or(command, fault.Next))
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
	s, err := loadSettings(o, d.env)
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

// directory looks at the state directory, and whether a service runs with it. false: what comes after cannot be looked
// at.
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

// keys tells what each key may, one a line: those of the settings, and those that were made.
func (d *doctor) keys(ctx context.Context) {
	made, err := d.made(ctx)
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // which the start makes
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

// made are the keys that were made. Nothing is moved where several instances have them: that is for who writes.
func (d *doctor) made(ctx context.Context) ([]madeKey, error) {
	own, err := keysFile(d.state).read(ctx)
	if !d.s.Peers.set() {
		return own, err
	}
	records, done, err := redis.OpenRecords(ctx, redis.Config{URL: d.s.Redis.Reveal()})
	if err != nil {
		return own, nil // the store is told of apart
	}
	defer done()
	shared, err := keyRecords{records}.read(ctx)
	return append(own, shared...), err
}

// whatMay words what a key may.
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

// allOr lists names; nil is all there are.
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

// bounds words limits; 0 is none.
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
