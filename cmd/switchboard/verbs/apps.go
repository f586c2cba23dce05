package verbs

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"switchboard/handoff"
)

// Apps lists the programs elsewhere that have access.
func (t *Terminal) Apps(ctx context.Context) error {
	var found struct {
		Items []struct {
			ID, Name, Host string
			Answers        bool
			Used           time.Time
		}
	}
	return t.show(ctx, "/fleet/apps", &found, func() error {
		if len(found.Items) == 0 {
			_, err := fmt.Fprintln(t.Out, "no program was let in")
			return err
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
}

// RevokeApp withdraws the access of a program, by its id.
func (t *Terminal) RevokeApp(ctx context.Context, id string) error {
	resp, err := t.send(ctx, http.MethodDelete, "/fleet/apps/"+url.PathEscape(id), struct{}{}, nil)
	if err != nil {
		return err
	}
	_ = resp.Body.Close() // the answer has no content
	_, err = fmt.Fprintln(t.Out, "the program is disconnected; work that it gave goes on")
	return err
}
