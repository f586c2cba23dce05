package verbs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"switchboard/cmd/switchboard/cli"
	"switchboard/handoff"
)

// Servers is the verb that shows the machines.
func Servers(dial Dialer) *cli.Verb {
	var watch bool
	return dial.verb(cli.Verb{
		Name: "servers", Alias: "machines", Help: "Show your machines and their state.",
		Flags: []cli.Flag{{Name: "watch", Short: "w", Into: &watch,
			Help: "Show them again whenever something changes, until Ctrl-C."}},
		Examples: []string{"switchboard servers", "switchboard machines --watch", "switchboard servers --json",
			"switchboard servers --url https://bigpc.tail1234.ts.net --key-file ~/.switchboard.key"},
	}, func(ctx context.Context, t *Terminal) error {
		if watch {
			return t.watchServers(ctx)
		}
		return t.servers(ctx)
	})
}

// servers lists the machines.
func (t *Terminal) servers(ctx context.Context) error {
	var found struct{ Items []handoff.ServerInfo }
	return t.show(ctx, "/fleet/servers", &found, func() error {
		var machines struct{ Items []handoff.Machine }
		if _, err := t.get(ctx, "/fleet/machines", &machines); err != nil {
			return err
		}
		return writeServers(t.Out, found.Items, machines.Items)
	})
}

// watchEvery is the pause between two looks at the machines.
const watchEvery = 2 * time.Second

// watchServers lists the machines again whenever the list has changed, until ctx ends. A service that is away is told,
// and looked for.
func (t *Terminal) watchServers(ctx context.Context) error {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for last := ""; ; {
		var now bytes.Buffer
		one := *t
		one.Out = &now
		if err := one.servers(ctx); err != nil && ctx.Err() == nil {
			if fault, refused := errors.AsType[*Fault](err); refused && fault.Status < http.StatusInternalServerError {
				return err
			}
			now.Reset()
			fmt.Fprintf(&now, "%s\n", Plain(err.Error()))
		}
		if ctx.Err() != nil { // that is how it ends
			return nil
		}
		if text := now.String(); text != last {
			if last = text; t.Live {
				text = "\x1b[H\x1b[2J" + text // from the top of an empty screen
			}
			if _, err := io.WriteString(t.Out, text); err != nil {
				return err
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

func writeServers(out io.Writer, items []handoff.ServerInfo, machines []handoff.Machine) error {
	if len(items) == 0 {
		_, err := fmt.Fprintln(out, "no machines that you may use")
		return err
	}
	w := table(out, "MACHINE", "STATE", "KIND", "ABOUT")
	for _, s := range items {
		kind := strings.TrimSpace(s.Kind + " " + s.Version)
		if s.Simulated {
			kind += " (simulated)"
		}
		// Flush reports a failed write.
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", cell(s.Name, titleWidth), healthWord(s), cell(kind, titleWidth),
			cell(aboutServer(s, machines), 3*placeWidth))
	}
	return w.Flush()
}

// healthWord returns the state of a machine. One that is connected may refuse all work.
func healthWord(s handoff.ServerInfo) string {
	if s.Health == handoff.HealthUp && s.Problem != "" {
		return "refuses"
	}
	return string(s.Health)
}

// aboutServer describes a machine: its problem, work, projects, names, disk and battery.
func aboutServer(s handoff.ServerInfo, machines []handoff.Machine) string {
	var parts []string
	add := func(what string, names []string) {
		if len(names) > 0 {
			parts = append(parts, what+" "+strings.Join(names, ", "))
		}
	}
	if s.Problem != "" {
		parts = append(parts, strings.TrimSuffix(s.Problem+" → "+s.Next, " → "))
	}
	add("works on", s.Working)
	add("projects:", s.Projects)
	add("also called", s.Aliases)
	if i := slices.IndexFunc(machines, func(m handoff.Machine) bool { return m.Name == s.Name }); i >= 0 {
		if free := machines[i].DiskFree; free > 0 {
			parts = append(parts, fmt.Sprintf("%d GiB free", free>>30))
		}
		if battery := machines[i].Battery; battery > 0 && !machines[i].Charging {
			parts = append(parts, fmt.Sprintf("battery at %d %%", battery))
		}
	}
	return strings.Join(parts, "; ")
}
