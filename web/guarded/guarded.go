// Package guarded connects to addresses that somebody else names, such as a program's document or a browser's push
// service, and only to public ones. A name proves nothing, because whoever owns it decides what it means: the address
// is checked when the name was resolved and the connection is about to be made.
//
// It must not know who asks, and for what.
package guarded

import (
	"errors"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"syscall"
	"time"
)

// ErrPrivate is the error for an address that is not public, or has another port.
var ErrPrivate = errors.New("the address leads into a private network")

// maxHeader bounds the header of an answer, in bytes.
const maxHeader = 16 << 10

// Transport returns a transport that connects only to public addresses, at these ports; without any, at all. It uses no
// proxy, because a proxy could connect to any address. within bounds each step of a connection.
func Transport(within time.Duration, ports ...uint16) *http.Transport {
	dial := &net.Dialer{Timeout: within, Control: func(_, address string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(address)
		if err != nil || len(ports) > 0 && !slices.Contains(ports, to.Port()) || !public(to.Addr()) {
			return ErrPrivate
		}
		return nil
	}}
	return &http.Transport{
		DialContext: dial.DialContext, TLSHandshakeTimeout: within, ResponseHeaderTimeout: within,
		MaxResponseHeaderBytes: maxHeader, DisableKeepAlives: true, ForceAttemptHTTP2: true,
	}
}

// reserved has the networks that are not public, and those whose addresses contain another address (the special-purpose
// registries of IANA). Set once.
var reserved = prefixes(
	"0.0.0.0/8",
	"10.0.0.0/8",
	"100.64.0.0/10",
	"127.0.0.0/8",
	"169.254.0.0/16",
	"172.16.0.0/12",
	"192.0.0.0/24",
	"192.0.2.0/24",
	"192.88.99.0/24",
	"192.168.0.0/16",
	"198.18.0.0/15",
	"198.51.100.0/24",
	"203.0.113.0/24",
	"224.0.0.0/3",
	"2001::/23",
	"2001:db8::/32",
	"2002::/16",
	"3fff::/20",
)

// unicast contains all public IPv6 addresses. Set once.
var unicast = netip.MustParsePrefix("2000::/3")

func prefixes(all ...string) (list []netip.Prefix) {
	for _, text := range all {
		list = append(list, netip.MustParsePrefix(text))
	}
	return list
}

// public reports whether an address is public.
func public(addr netip.Addr) bool {
	addr = addr.Unmap()
	if !addr.IsValid() || addr.Is6() && !unicast.Contains(addr) || addr.Zone() != "" {
		return false
	}
	return !slices.ContainsFunc(reserved, func(p netip.Prefix) bool { return p.Contains(addr) })
}
