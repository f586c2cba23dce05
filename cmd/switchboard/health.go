package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"switchboard/sessions"
)

// healthWithin bounds the health check; a container's own limit is longer.
const healthWithin = 3 * time.Second

// healthVerb asks the Switchboard that runs here whether it is well: as other verbs, the one of the state directory,
// else the one that would listen where the settings say. Who names an address with --listen means that one.
func healthVerb(ctx context.Context, o *options, env func(string) string) error {
	ctx, cancel := context.WithTimeout(ctx, healthWithin)
	defer cancel()
	if state, err := sessions.StatePath(env); err == nil && !o.given["listen"] && serving(state) {
		base, err := hereClient(state, "").Where(ctx)
		if err != nil {
			return err
		}
		return health(ctx, base)
	}
	s, err := loadSettings(o, env)
	if err != nil {
		return err
	}
	return health(ctx, baseOf(s.Listen, s.TLS != tlsSettings{}))
}

// health asks the Switchboard at a base address whether it is well, for at most [healthWithin]: a program that accepts
// and says nothing is none.
func health(ctx context.Context, base string) error {
	ctx, cancel := context.WithTimeout(ctx, healthWithin)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/healthz", nil)
	if err != nil {
		return fmt.Errorf("ask %s: %w", base, err)
	}
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		// It is ourselves, at an address that the certificate need not name; nothing secret is sent.
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
	}}
	resp, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("no Switchboard answers: %w; start it, or name the address that it listens at with --listen or "+
			"--config", err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<10)) // as much as there is
		return fmt.Errorf("%s says %s: %s", base, resp.Status, strings.TrimSpace(string(text)))
	}
	return nil
}

// baseOf is the address of a service that listens at host:port, as this machine reaches it.
func baseOf(listen string, secured bool) string {
	host, port, _ := net.SplitHostPort(listen) // checked when it was loaded
	addr, err := netip.ParseAddr(host)
	switch {
	case host == "" || err == nil && addr == netip.IPv4Unspecified():
		host = "127.0.0.1"
	case err == nil && addr.IsUnspecified():
		host = "::1"
	}
	scheme := "http"
	if secured {
		scheme = "https"
	}
	return scheme + "://" + net.JoinHostPort(host, port)
}
