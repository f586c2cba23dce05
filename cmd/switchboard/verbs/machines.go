package verbs

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"switchboard/cmd/switchboard/cli"
)

// Invite is the verb that prints the command with which another machine joins.
func Invite(dial Dialer) *cli.Verb {
	var name string
	return dial.verb(cli.Verb{
		Name: "invite", Help: "Print the command with which another machine joins.",
		Args:     []cli.Arg{{Name: "name", Into: &name, Help: "What you will call the machine."}},
		Examples: []string{"switchboard invite mini"},
		More: "The command that it prints works once, within ten minutes, on any machine that reaches this one. With a " +
			"key, it takes one of the owner that says approve: all.",
	}, func(ctx context.Context, t *Terminal) error {
		var answer struct{ Command, URL string }
		text, err := t.post(ctx, "/fleet/machines", map[string]string{"name": name}, &answer)
		if err != nil {
			return err
		}
		if t.JSON {
			return t.line(text)
		}
		if err := t.say("%s", answer.Command); err != nil {
			return err
		}
		note := "Run this on " + Plain(name) + ": it works once, within ten minutes."
		if u, err := url.Parse(answer.URL); err == nil && loopback(u.Hostname()) {
			note += " This Switchboard listens on this machine alone: another one reaches it by public_url (tailscale serve, say), " +
				"or through `ssh -R`."
		}
		_, _ = fmt.Fprintln(t.Err, note) // for people
		return nil
	})
}

// Reload is the verb that has the service read its settings again.
func Reload(dial Dialer) *cli.Verb {
	return dial.verb(cli.Verb{
		Name: "reload", Help: "Have the settings read again, without a restart.",
		Examples: []string{"switchboard reload", "kill -HUP PID   # the same"},
		More: "Machines, keys and limits take effect, all or none of them, and work goes on. What needs a restart is " +
			"named.",
	}, func(ctx context.Context, t *Terminal) error {
		result, err := t.Reload(ctx)
		if err != nil {
			return err
		}
		if t.JSON {
			text, _ := json.Marshal(result) // never fails
			return t.line(text)
		}
		if len(result.Did)+len(result.Restart) == 0 {
			result.Did = []string{"nothing has changed"}
		}
		for _, name := range result.Restart {
			result.Did = append(result.Did, "needs a restart: "+name)
		}
		return t.say("%s", strings.Join(result.Did, "\n"))
	})
}

// Rename is the verb that gives a machine that joined another name.
func Rename(dial Dialer) *cli.Verb {
	var name, to string
	return dial.verb(cli.Verb{
		Name: "rename", Help: "Give a machine that joined another name.",
		Args: []cli.Arg{
			{Name: "machine", Into: &name, Help: "The machine."},
			{Name: "name", Into: &to, Help: "What you will call it. Its former name still means it."},
		},
		Examples: []string{"switchboard rename mini studio"},
	}, func(ctx context.Context, t *Terminal) error {
		path := "/fleet/machines/" + url.PathEscape(name) + "/rename"
		return t.do(ctx, http.MethodPost, path, map[string]string{"name": to}, name+" is "+to+" now")
	})
}

// Remove forgets a machine that joined.
func (t *Terminal) Remove(ctx context.Context, name string) error {
	return t.do(ctx, http.MethodDelete, "/fleet/machines/"+url.PathEscape(name), struct{}{},
		name+" is forgotten; its agents end there with `switchboard leave`")
}

// Reloaded is the result of reading the settings again.
type Reloaded struct {
	File    string   `json:"file,omitempty"`
	Did     []string `json:"did"`
	Restart []string `json:"restart,omitempty"`
}

// Reload has the service read its settings again.
func (c *Client) Reload(ctx context.Context) (result Reloaded, err error) {
	_, err = c.post(ctx, "/fleet/settings/reload", struct{}{}, &result)
	return result, err
}

// loopback reports whether a host is a loopback address.
func loopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}
