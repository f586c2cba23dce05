package web

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"switchboard/handoff"
)

// Entrance says who may come in, and where.
type Entrance struct {
	// Keys has at least one entry. A key with a zero Sum matches no text: its principal logs in with links.
	Keys []Key
	// Listen is the address of the listener, as host:port.
	Listen string
	// PublicURL is another address of the page (scheme and host), such as that of a proxy before it. Optional.
	PublicURL string
	// TrustedProxies, if it is not empty, has the only networks besides loopback that may connect.
	TrustedProxies []netip.Prefix
}

// newAccessPolicy returns the access policy for the addresses of a configuration.
func newAccessPolicy(e Entrance) (accessPolicy, error) {
	host, port, err := net.SplitHostPort(e.Listen)
	if err != nil {
		return accessPolicy{}, fmt.Errorf("web: listen address %q: %w", e.Listen, err)
	}
	d := accessPolicy{host: host, port: port, proxies: e.TrustedProxies}
	if addr, err := netip.ParseAddr(host); err == nil && addr.IsUnspecified() {
		d.host = ""
	}
	if e.PublicURL != "" {
		u, err := url.Parse(e.PublicURL)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return accessPolicy{}, fmt.Errorf("web: public_url %q is not an http or https address", e.PublicURL)
		}
		d.publicScheme, d.publicHost = u.Scheme, canonicalHost(u.Host, u.Scheme)
	}
	return d, nil
}

// An accessPolicy decides which requests pass before their key is checked: by peer, Host and Origin. Set once.
type accessPolicy struct {
	host, port   string // of the listener; host is "" when it listens on all addresses
	publicScheme string // of public_url, or ""
	publicHost   string // canonical, or ""
	proxies      []netip.Prefix
}

// A visitor is the part of a request that the access policy checks.
type visitor struct {
	peer    netip.Addr // invalid if it is no IP connection
	local   netip.Addr // our end of the connection
	tls     bool
	host    string
	origins []string
	unsafe  bool // a method that changes something, or a WebSocket
	carried bool // the request itself carries a key: in a bearer header or a subprotocol
	api     bool // see [isAPI]
	mcp     bool // its path is /mcp
	line    bool // a machine that joined opens its line
}

func newVisitor(r *http.Request) visitor {
	changes := r.Method != http.MethodGet && r.Method != http.MethodHead
	v := visitor{
		tls: r.TLS != nil, host: r.Host, origins: r.Header.Values("Origin"), unsafe: changes || isUpgrade(r),
		api: isAPI(r.URL.Path), mcp: r.URL.Path == "/mcp", line: r.URL.Path == linePath,
	}
	_, v.carried = carriedKey(r)
	if peer, err := netip.ParseAddrPort(r.RemoteAddr); err == nil {
		v.peer = peer.Addr().Unmap()
	}
	if local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok {
		if addr, err := netip.ParseAddrPort(local.String()); err == nil {
			v.local = addr.Addr().Unmap()
		}
	}
	return v
}

// from returns the address under which the sender of a request counts, as [strangerAt] says. Behind this machine or a
// proxy that is the last address in X-Forwarded-For which is neither.
func (p accessPolicy) from(r *http.Request) netip.Addr {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	at := strangerAt(peer.Addr(), p.proxies)
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for i := len(hops) - 1; i >= 0 && !at.IsValid(); i-- {
		hop, err := netip.ParseAddr(strings.TrimSpace(hops[i]))
		if err != nil {
			break
		}
		at = strangerAt(hop, p.proxies)
	}
	return at
}

// check returns why the visitor is refused, or nil. For the API, see [isAPI], neither Host nor Origin is checked. Its
// routes need a key in the request, or the token endpoint of OAuth a code or token. No browser adds these by itself, so
// a foreign page or a rebound name has none. Only the metadata of OAuth needs nothing, and is public. The Model Context
// Protocol wants more: on loopback, /mcp is refused at a foreign Host.
func (p accessPolicy) check(v visitor) error {
	switch {
	case len(p.proxies) > 0 && !v.peer.IsLoopback() && !within(p.proxies, v.peer):
		return handoff.Fault(handoff.CodeForbidden, "a connection past the proxy", "peer is not in trusted_proxies")
	case v.line && len(v.origins) > 0:
		return handoff.Fault(handoff.CodeForbidden, "a line of a machine from a page", "it has an origin")
	case v.mcp && p.rebound(v):
		return handoff.Fault(handoff.CodeForbidden, "this address", "host is not known")
	case v.api, v.line:
		return nil
	}
	return p.checkPage(v)
}

// linePath is where machines that joined connect. A machine proves who it is with its own key, at any Host. A browser
// cannot connect there, because it sends an Origin with every WebSocket.
const linePath = "/node"

// checkPage returns why the visitor is neither our own page nor a program, or nil.
func (p accessPolicy) checkPage(v visitor) error {
	switch {
	case !p.hostAllowed(v):
		return handoff.Fault(handoff.CodeForbidden, "this address", "host is not known")
	case !p.originAllowed(v):
		return handoff.Fault(handoff.CodeForbidden, "a request from another page", "origin is not ours")
	}
	return nil
}

// within reports whether an address is of one of the networks.
func within(networks []netip.Prefix, addr netip.Addr) bool {
	return slices.ContainsFunc(networks, func(p netip.Prefix) bool { return p.Contains(addr) })
}

// hostAllowed reports whether the Host is one of ours. This stops DNS rebinding by a name that somebody else controls.
func (p accessPolicy) hostAllowed(v visitor) bool {
	if p.isPublic(v) {
		return true
	}
	name, port := splitHost(canonicalHost(v.host, v.scheme()), v.scheme())
	if port != p.port || name == "" {
		return false
	}
	if p.ownName(name) {
		return true
	}
	addr, err := netip.ParseAddr(name)
	if err != nil {
		return false
	}
	return addr.IsLoopback() || p.host == "" && addr.Unmap() == v.local
}

// ownName reports whether a host is this machine by name.
func (p accessPolicy) ownName(host string) bool {
	return host == "localhost" || p.host != "" && host == strings.ToLower(p.host)
}

// rebound reports whether a connection over loopback names a Host that is neither loopback nor ours, on any port: the
// way may be a tunnel.
func (p accessPolicy) rebound(v visitor) bool {
	name, _ := splitHost(canonicalHost(v.host, v.scheme()), v.scheme())
	addr, err := netip.ParseAddr(name)
	known := p.ownName(name) || err == nil && addr.IsLoopback()
	return v.local.IsLoopback() && !known && !p.isPublic(v)
}

// originAllowed reports whether the Origin is the page's own, or is missing where it may. A request that changes
// something may lack it only with a key in the request itself, because a browser would have sent an Origin. A request
// that only reads may lack it: a browser adds no credentials by itself, so a foreign page reads nothing.
func (p accessPolicy) originAllowed(v visitor) bool {
	switch len(v.origins) {
	case 0:
		return !v.unsafe || v.carried
	case 1:
		return v.origins[0] == p.scheme(v)+"://"+canonicalHost(v.host, p.scheme(v))
	}
	return false
}

// isPublic reports whether the visitor came by way of public_url.
func (p accessPolicy) isPublic(v visitor) bool {
	return p.publicHost != "" && canonicalHost(v.host, p.publicScheme) == p.publicHost
}

// scheme returns the scheme in the visitor's address bar. A proxy may have removed TLS.
func (p accessPolicy) scheme(v visitor) string {
	if p.isPublic(v) {
		return p.publicScheme
	}
	return v.scheme()
}

// hostOf returns the host in the page's address bar. A login is valid at one host only.
func (p accessPolicy) hostOf(r *http.Request) string {
	return canonicalHost(r.Host, p.scheme(newVisitor(r)))
}

func (v visitor) scheme() string {
	if v.tls {
		return "https"
	}
	return "http"
}

// canonicalHost writes a host as browsers do: lower case, without the scheme's own port.
func canonicalHost(host, scheme string) string {
	return strings.TrimSuffix(strings.ToLower(host), ":"+defaultPort(scheme))
}

func defaultPort(scheme string) string {
	if scheme == "https" {
		return "443"
	}
	return "80"
}

// splitHost splits a host into name and port; a missing port is the scheme's. The name of an invalid host is "".
func splitHost(host, scheme string) (name, port string) {
	if name, port, err := net.SplitHostPort(host); err == nil {
		return name, port
	}
	if inner, ok := strings.CutPrefix(host, "["); ok {
		if inner, ok = strings.CutSuffix(inner, "]"); !ok {
			return "", ""
		}
		return inner, defaultPort(scheme)
	}
	if strings.ContainsAny(host, ":") {
		return "", ""
	}
	return host, defaultPort(scheme)
}

func isUpgrade(r *http.Request) bool {
	for _, value := range r.Header.Values("Connection") {
		for token := range strings.SplitSeq(value, ",") {
			if strings.EqualFold(strings.TrimSpace(token), "upgrade") {
				return true
			}
		}
	}
	return r.Header.Get("Upgrade") != ""
}

// callRoutes begin or join calls. Calls are billed, so a key without any tool may not use these routes. Set once.
var callRoutes = []string{
	"GET /v1/realtime", "POST /v1/realtime/calls", "POST /v1/realtime/client_secrets", "POST /v1/realtime/attach",
}

// apiAct returns what a route of the Responses API does.
func apiAct(pattern string) handoff.Act {
	switch _, path, _ := strings.Cut(pattern, " "); {
	case strings.HasPrefix(path, "/v1/responses"), strings.HasPrefix(path, "/v1/conversations"):
		return handoff.ActGive
	case strings.HasPrefix(path, "/v1/models"):
		return handoff.ActList
	}
	return handoff.ActNone
}

// mayUse reports whether a grant allows what a route does. An error has code [handoff.CodeNotGranted].
func mayUse(g handoff.Grant, to route) error {
	if g.Tools != nil && len(g.Tools) == 0 && slices.Contains(callRoutes, to.pattern) {
		return handoff.Fault(handoff.CodeNotGranted, "it has no tools, so it begins no calls", "")
	}
	return g.May(to.act)
}
