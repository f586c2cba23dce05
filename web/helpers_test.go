package web

import (
	"context"
	"net"
	"net/http"
	"net/netip"
)

// withLocal says which end of the connection is ours, as net/http does.
func withLocal(ctx context.Context, addr string) context.Context {
	return context.WithValue(ctx, http.LocalAddrContextKey, net.Addr(net.TCPAddrFromAddrPort(netip.MustParseAddrPort(addr))))
}
