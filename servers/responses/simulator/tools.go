package simulator

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"switchboard/handoff"
	"switchboard/servers/responses/workspace"
	machines "switchboard/servers/simulator"
)

// Tools are the tools of an agent on a machine of the built-in world. They look like the real ones, but run, read and
// write nothing.
type Tools struct {
	machine machines.Machine // Set once
	speed   float64          // Set once
}

// NewTools returns the tools of a machine. speed divides all delays; 0 is 1.
func NewTools(m machines.Machine, speed float64) *Tools {
	return &Tools{machine: m, speed: cmp.Or(max(speed, 0), 1)}
}

// Tools returns the tools of a trusted workspace.
func (t *Tools) Tools() []workspace.Tool { return workspace.All() }

// Allowed returns the names of all tools.
func (t *Tools) Allowed() []string {
	var names []string
	for _, tool := range t.Tools() {
		names = append(names, tool.Name)
	}
	return names
}

// Run simulates the use of a tool.
func (t *Tools) Run(ctx context.Context, name string, raw json.RawMessage, call workspace.Call) workspace.Result {
	var args struct {
		Command, Reason, Path, Content string
		Outside                        bool
	}
	if err := json.Unmarshal(raw, &args); err != nil {
		return failed("the arguments do not fit")
	}
	switch name {
	case "exec":
		if args.Outside {
			if no := t.ask(ctx, call, args.Command, args.Reason); no != nil {
				return *no
			}
		}
		return t.command(ctx, machines.Shell(t.machine, args.Command), call.Out)
	case "write_file":
		change := added(args.Path, args.Content)
		_, _ = io.WriteString(call.Out, change.Diff)
		return workspace.Result{Text: "Done.\nA " + args.Path, Changes: []handoff.FileChange{change}}
	}
	return failed("this machine is simulated and has no files")
}

func failed(why string) workspace.Result {
	return workspace.Result{Text: "Error: " + why, Failed: true}
}

// ask asks a person before a command. It returns nil if they accepted, else the result of the call.
func (t *Tools) ask(ctx context.Context, call workspace.Call, command, reason string) *workspace.Result {
	yes, err := call.Ask(ctx, handoff.Question{
		Kind:    handoff.QuestionCommand,
		Text:    "May this command run outside of its sandbox, with the network and all of your files?",
		Command: command, Cwd: t.machine.Dir, Reason: reason, Asked: time.Now(),
		Decisions: []handoff.Decision{handoff.DecisionAccept, handoff.DecisionAcceptForSession, handoff.DecisionDecline,
			handoff.DecisionStop},
	})
	var no workspace.Result
	switch {
	case err != nil:
		no = failed(err.Error())
	case !yes:
		no = failed("declined: the person who was asked said no")
	default:
		return nil
	}
	return &no
}

// command prints the simulated output of a command, with its delays.
func (t *Tools) command(ctx context.Context, run machines.Run, out io.Writer) workspace.Result {
	var all strings.Builder
	for _, line := range run.Lines {
		select {
		case <-time.After(time.Duration(float64(line.After) / t.speed)):
		case <-ctx.Done():
			return failed(context.Cause(ctx).Error())
		}
		_, _ = fmt.Fprintln(io.MultiWriter(out, &all), line.Text)
	}
	return workspace.Result{Text: fmt.Sprintf("Exit code: %d\n%s", run.Exit, all.String()), Exit: &run.Exit,
		Failed: run.Exit != 0}
}

// added returns the change that adds a file.
func added(path, content string) handoff.FileChange {
	c := handoff.FileChange{Path: path, Kind: "add"}
	var lines strings.Builder
	for line := range strings.Lines(content) {
		c.Added++
		lines.WriteString("+" + strings.TrimSuffix(line, "\n") + "\n")
	}
	c.Diff = fmt.Sprintf("@@ -0,0 +1,%d @@\n%s", c.Added, lines.String())
	return c
}
