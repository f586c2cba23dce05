package verbs

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"switchboard/cmd/switchboard/cli"
)

// Logs is the verb that shows the newest lines of the log that name a machine, oldest first.
func Logs(dial Dialer) *cli.Verb {
	var machine string
	return dial.verb(cli.Verb{
		Name: "logs", Help: "Show what was logged of a machine.",
		Args:     []cli.Arg{{Name: "machine", Into: &machine, Help: "The machine."}},
		Examples: []string{"switchboard logs bigpc"},
		More:     "These are the newest 100 lines since Switchboard was started. They are the owner's, as adding machines is.",
	}, func(ctx context.Context, t *Terminal) error {
		var found struct {
			Items []struct {
				At             time.Time
				Level, Message string
				About          map[string]any
			}
		}
		return t.show(ctx, "/fleet/machines/"+url.PathEscape(machine)+"/log", &found, func() error {
			if len(found.Items) == 0 {
				return t.say("nothing was logged of %s since Switchboard was started", machine)
			}
			var b strings.Builder
			for _, line := range found.Items {
				fmt.Fprintf(&b, "%s  %-5s  %s", line.At.Local().Format(time.DateTime), Plain(line.Level), Plain(line.Message))
				for _, name := range slices.Sorted(maps.Keys(line.About)) {
					fmt.Fprintf(&b, "  %s=%s", Plain(name), cell(fmt.Sprint(line.About[name]), 3*placeWidth))
				}
				b.WriteString("\n")
			}
			_, err := io.WriteString(t.Out, b.String())
			return err
		})
	})
}
