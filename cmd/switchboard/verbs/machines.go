package verbs

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
)

// Invite prints the command with which another machine joins.
func (t *Terminal) Invite(ctx context.Context, name string) error {
	var answer struct{ Command, URL string }
	text, err := t.post(ctx, "/fleet/machines", map[string]string{"name": name}, &answer)
	if err != nil || t.JSON {
		return t.orLine(text, err)
	}
	if _, err := fmt.Fprintln(t.Out, Plain(answer.Command)); err != nil {
		return err
	}
	note := "Run this on " + Plain(name) + ": it works once, within ten minutes."
	if u, err := url.Parse(answer.URL); err == nil && loopback(u.Hostname()) {
		note += " This Switchboard listens on this machine alone: another one reaches it by public_url (tailscale serve, say), " +
			"or through `ssh -R`."
	}
	_, _ = fmt.Fprintln(t.Err, note) // for people
	return nil
}

// Remove forgets a machine that joined.
func (t *Terminal) Remove(ctx context.Context, name string) error {
	text, err := t.call(ctx, http.MethodDelete, "/fleet/machines/"+url.PathEscape(name), struct{}{}, nil)
	if err != nil || t.JSON {
		return t.orLine(text, err)
	}
	_, err = fmt.Fprintf(t.Out, "%s is forgotten; its agents end there with `switchboard leave`\n", Plain(name))
	return err
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

// ShowReload has the service read its settings again, and prints what has changed.
func (t *Terminal) ShowReload(ctx context.Context) error {
	result, err := t.Reload(ctx)
	if err != nil {
		return err
	}
	if t.JSON {
		text, err := json.Marshal(result)
		return t.orLine(text, err)
	}
	if len(result.Did)+len(result.Restart) == 0 {
		result.Did = []string{"nothing has changed"}
	}
	for _, did := range result.Did {
		_, err = fmt.Fprintln(t.Out, Plain(did))
	}
	for _, name := range result.Restart {
		_, err = fmt.Fprintf(t.Out, "needs a restart: %s\n", Plain(name))
	}
	return err
}

// Rename gives a machine that joined another name.
func (t *Terminal) Rename(ctx context.Context, name, to string) error {
	path := "/fleet/machines/" + url.PathEscape(name) + "/rename"
	text, err := t.call(ctx, http.MethodPost, path, map[string]string{"name": to}, nil)
	if err != nil || t.JSON {
		return t.orLine(text, err)
	}
	_, err = fmt.Fprintf(t.Out, "%s is %s now\n", Plain(name), Plain(to))
	return err
}

// orLine prints an answer of the service, if it has one, or returns its error.
func (t *Terminal) orLine(text []byte, err error) error {
	if err != nil || len(text) == 0 {
		return err
	}
	return t.line(text)
}

// loopback reports whether a host is a loopback address.
func loopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}
