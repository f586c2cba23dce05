package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"text/tabwriter"
	"time"

	"switchboard/cmd/switchboard/cli"
	"switchboard/handoff"
	"switchboard/sessions"
)

// auditVerb is the verb that verifies the audits of state directories, and shows their decisions.
func auditVerb(c *console) *cli.Verb {
	var dirs []string
	var show bool
	return &cli.Verb{
		Name: "audit", Help: "Verify the audit of decisions, and show it.", Uses: onlyConfig,
		Args: []cli.Arg{{Name: "dir", Into: &dirs, Optional: true,
			Help: "State directories of several instances. Usually this machine's."}},
		Flags: []cli.Flag{{Name: "show", Into: &show,
			Help: "Show the decisions of all of them, oldest first, with the instance that took each."}},
		Run: func(context.Context) error {
			if len(dirs) == 0 {
				_, state, err := c.here()
				if err != nil {
					return err
				}
				dirs = []string{state}
			}
			return audit(dirs, show, c.stdout)
		},
	}
}

// audit verifies the audit of each directory. A failure in one does not stop the others.
func audit(dirs []string, show bool, stdout io.Writer) error {
	var all []handoff.AuditRecord
	var wrong error
	for _, dir := range dirs {
		lines, err := sessions.ReadAuditDir(dir)
		if err != nil { // the error says which line of which file was changed, or what cannot be read
			wrong = errors.Join(wrong, fmt.Errorf("cannot verify the audit in %s: %w", dir, err))
			continue
		}
		prefix := ""
		if len(dirs) > 1 {
			prefix = dir + ": "
		}
		line := prefix + "no decisions yet"
		if n := len(lines); n > 0 {
			line = fmt.Sprintf("%sdecisions %d to %d are as they were written", prefix, lines[0].N, lines[n-1].N)
		}
		if _, err := fmt.Fprintln(stdout, line); err != nil {
			return errors.Join(wrong, err)
		}
		for _, l := range lines {
			all = append(all, l.Record)
		}
	}
	if !show || len(all) == 0 {
		return wrong
	}
	slices.SortStableFunc(all, func(a, b handoff.AuditRecord) int { return a.At.Compare(b.At) })
	return errors.Join(wrong, showAudit(all, stdout))
}

// showAudit prints decisions as a table. A decision of an instance without peers has no instance, shown as "-".
func showAudit(all []handoff.AuditRecord, stdout io.Writer) error {
	w := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "WHEN\tINSTANCE\tEPOCH\tWHO\tSERVER\tWHAT\tBY") // Flush returns the error
	for _, r := range all {
		epoch := "-"
		if r.Epoch != 0 {
			epoch = strconv.FormatInt(r.Epoch, 10)
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", r.At.UTC().Format(time.RFC3339), cmp.Or(r.Instance, "-"),
			epoch, cmp.Or(r.Who, "-"), cmp.Or(r.Server, "-"), cmp.Or(r.Act, string(r.Decision), "-"), cmp.Or(r.By, "-"))
	}
	return w.Flush()
}
