package verbs

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"switchboard/cmd/switchboard/cli"
	"switchboard/handoff"
)

// Apps is the verb that lists the programs elsewhere that were let in, or disconnects one.
func Apps(dial Dialer) *cli.Verb {
	var revoke string
	return dial.verb(cli.Verb{
		Name: "apps", Help: "Show programs elsewhere that were let in, or disconnect one.",
		Flags:    []cli.Flag{{Name: "revoke", Value: "ID", Into: &revoke, Help: "Disconnect this one instead."}},
		Examples: []string{"switchboard apps", "switchboard apps --revoke k7s2mfaq3xbd"},
		More: "Programs such as ChatGPT are let in on the page, where mcp.oauth is true. Work that one gave goes on when " +
			"it is disconnected.",
	}, func(ctx context.Context, t *Terminal) error {
		if revoke != "" {
			return t.do(ctx, http.MethodDelete, "/fleet/apps/"+url.PathEscape(revoke), struct{}{},
				"the program is disconnected; work that it gave goes on")
		}
		var found struct {
			Items []struct {
				ID, Name, Host string
				Answers        bool
				Used           time.Time
			}
		}
		return t.show(ctx, "/fleet/apps", &found, func() error {
			if len(found.Items) == 0 {
				return t.say("no program was let in")
			}
			rows := table(t.Out, "ID", "PROGRAM", "ADDRESS", "ACTIVE", "ITS YES")
			for _, a := range found.Items {
				yes := "-"
				if a.Answers {
					yes = "counts"
				}
				// Flush reports a failed write.
				_, _ = fmt.Fprintf(rows, "%s\t%s\t%s\t%s\t%s\n", a.ID, cell(a.Name, titleWidth), cell(a.Host, titleWidth),
					handoff.Ago(time.Now(), a.Used), yes)
			}
			return rows.Flush()
		})
	})
}
