package web

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"testing"
	"time"
)

// withLocal says which end of the connection is ours, as net/http does.
func withLocal(ctx context.Context, addr string) context.Context {
	return context.WithValue(
		ctx, http.LocalAddrContextKey, net.Addr(net.TCPAddrFromAddrPort(netip.MustParseAddrPort(addr))),
	)
}

// waitFor waits until something happens.
func waitFor(t *testing.T, happened func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !happened(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it never happened")
		}
	}
}
