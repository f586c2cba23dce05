package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"text/tabwriter"
	"time"

	"switchboard/handoff"
	"switchboard/sessions"
)

// auditFlags are the flags and arguments of the verb audit.
type auditFlags struct {
	Dirs []string `arg:"" optional:"" name:"dir" help:"State directories of several instances. Usually this machine's."`
	Show bool     `help:"Show the decisions of all of them, oldest first, with the instance that took each."`
}

// auditVerb checks the audits of state directories, each of which is a chain of its own, and with --show prints their
// decisions. It reads all of them before it fails.
func auditVerb(state string, f auditFlags, stdout io.Writer) error {
	dirs := f.Dirs
	if len(dirs) == 0 {
		dirs = []string{state}
	}
	var all []handoff.AuditRecord
	var wrong error
	for _, dir := range dirs {
		lines, err := sessions.ReadAuditDir(dir)
		if err != nil { // the error says which line of which file was changed
			wrong = errors.Join(wrong, fmt.Errorf("the audit in %s is not as it was written: %w", dir, err))
			continue
		}
		in := ""
		if len(dirs) > 1 {
			in = dir + ": "
		}
		line := in + "no decisions yet"
		if n := len(lines); n > 0 {
			line = fmt.Sprintf("%sdecisions %d to %d are as they were written", in, lines[0].N, lines[n-1].N)
		}
		if _, err := fmt.Fprintln(stdout, line); err != nil {
			return err
		}
		for _, l := range lines {
			all = append(all, l.Record)
		}
	}
	if !f.Show || len(all) == 0 {
		return wrong
	}
	slices.SortStableFunc(all, func(a, b handoff.AuditRecord) int { return a.At.Compare(b.At) })
	return errors.Join(wrong, showAudit(all, stdout))
}

// showAudit prints decisions. Those of an instance without peers name no instance.
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
