package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"switchboard/handoff"
	"switchboard/web"
)

// keys tells what each key may, one a line: those of the settings, and those that were made.
func (d *doctor) keys() {
	made, err := readMadeKeys(d.state)
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

// whatMay words what a key may.
func whatMay(k web.Key) string {
	parts := []string{
		"machines " + allOr(k.Servers), "tools " + allOr(k.Tools), "approve " + k.Approve.String(),
		"instructions " + yesNo(k.Instructions), "metrics " + yesNo(k.Metrics), "each caller " + bounds(k.Limits),
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
	return fmt.Sprintf("%s calls, %s minutes a day, %s handoffs a minute", number(l.Calls), number(l.MinutesPerDay),
		number(l.HandoffsPerMinute))
}
