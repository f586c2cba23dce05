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
)

// healthWithin bounds the health check; a container's own limit is longer.
const healthWithin = 3 * time.Second

// health asks the Switchboard that runs with these settings on this machine whether it is well.
func health(ctx context.Context, s *settings) error {
	ctx, cancel := context.WithTimeout(ctx, healthWithin)
	defer cancel()
	address := healthURL(s)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return fmt.Errorf("ask %s: %w", address, err)
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
		return fmt.Errorf("%s says %s: %s", address, resp.Status, strings.TrimSpace(string(text)))
	}
	return nil
}

// healthURL is where we listen, as this machine reaches it.
func healthURL(s *settings) string {
	host, port, _ := net.SplitHostPort(s.Listen) // checked when it was loaded
	addr, err := netip.ParseAddr(host)
	switch {
	case host == "" || err == nil && addr == netip.IPv4Unspecified():
		host = "127.0.0.1"
	case err == nil && addr.IsUnspecified():
		host = "::1"
	}
	scheme := "http"
	if s.TLS != (tlsSettings{}) {
		scheme = "https"
	}
	return scheme + "://" + net.JoinHostPort(host, port) + "/healthz"
}
