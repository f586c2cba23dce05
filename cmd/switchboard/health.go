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

	"switchboard/cmd/switchboard/cli"
	"switchboard/sessions"
)

// healthWithin bounds the health check; a container's own limit is longer.
const healthWithin = 3 * time.Second

// healthVerb is the verb that checks the health of the Switchboard that runs here: the one of the state directory, as
// for other verbs, or else the one at the address of the settings. With --listen it is the one at that address.
func healthVerb(c *console) *cli.Verb {
	return &cli.Verb{
		Name: "health", Help: "Say whether the running Switchboard is healthy, for containers.",
		Run: func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, healthWithin)
			defer cancel()
			if state, err := sessions.StatePath(c.env); err == nil && c.listen.From != "--listen" && serving(state) {
				here, err := hereClient(state, "").Here(ctx)
				if err != nil {
					return err
				}
				return health(ctx, here.Base)
			}
			s, err := loadSettings(&c.options, c.env, nil)
			if err != nil {
				return err
			}
			return health(ctx, baseOf(s.Listen, s.TLS != tlsSettings{}))
		},
	}
}

// health checks the health of the Switchboard at a base URL, within [healthWithin]: a program that accepts the
// connection and does not answer is no Switchboard.
func health(ctx context.Context, base string) error {
	ctx, cancel := context.WithTimeout(ctx, healthWithin)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/healthz", nil)
	if err != nil {
		return fmt.Errorf("ask %s: %w", base, err)
	}
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		// This is our own service, whose certificate need not name this address. No secret is sent.
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
	}}
	resp, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("no Switchboard answers: %w; start it, or name the address that it listens at with --listen or "+
			"--config", err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<10)) // after an error, what came before it
		return fmt.Errorf("%s says %s: %s", base, resp.Status, strings.TrimSpace(string(text)))
	}
	return nil
}

// baseOf returns the URL at which this machine reaches a service that listens at host:port.
func baseOf(listen string, secured bool) string {
	host, port, _ := net.SplitHostPort(listen) // the settings were checked
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
