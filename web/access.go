package web

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"switchboard/handoff"
	"switchboard/handoff/tools"
)

// An accessPolicy decides who may come in before any key is looked at: by peer, by Host, by Origin. Set once.
type accessPolicy struct {
	host, port   string // of the listener; host is "" when it listens everywhere
	publicScheme string // of public_url, or ""
	publicHost   string // canonical, or ""
	proxies      []netip.Prefix
}

// A visitor is what the access policy looks at in a request.
type visitor struct {
	peer    netip.Addr // invalid: not an IP connection
	local   netip.Addr // our end of the connection
	tls     bool
	host    string
	origins []string
	unsafe  bool // a method that changes something, or a WebSocket
	carried bool // the key is carried in the request itself: a bearer header or a subprotocol
	api     bool // it asks for something under /v1/
	line    bool // it is a machine that comes to keep a line
}

func newVisitor(r *http.Request) visitor {
	v := visitor{
		tls: r.TLS != nil, host: r.Host, origins: r.Header.Values("Origin"),
		unsafe: r.Method != http.MethodGet && r.Method != http.MethodHead ||
			isUpgrade(r), api: isAPI(r.URL.Path), line: r.URL.Path == linePath,
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

// check returns why the visitor is refused, or nil. Under /v1/ a request carries its own proof: no browser adds
// it by itself, so neither a foreign page nor a name that somebody turned on us has it, and every route asks for it.
func (p accessPolicy) check(v visitor) error {
	switch {
	case len(p.proxies) > 0 && !v.peer.IsLoopback() && !within(p.proxies, v.peer): // nobody but it and this machine
		return handoff.Fault(handoff.CodeForbidden, "a connection past the proxy", "peer is not in trusted_proxies")
	case v.line && len(v.origins) > 0:
		return handoff.Fault(handoff.CodeForbidden, "a line of a machine from a page", "it has an origin")
	case v.api, v.line:
		return nil
	}
	return p.atHome(v)
}

// linePath is where machines keep their lines. A machine proves itself who it is, wherever it reaches us; every browser
// sends an Origin with a WebSocket.
const linePath = "/node"

// atHome returns why the visitor is not our own page, or a program on it.
func (p accessPolicy) atHome(v visitor) error {
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

// hostAllowed stops DNS rebinding: a name that somebody else controls is never ours.
func (p accessPolicy) hostAllowed(v visitor) bool {
	if p.isPublic(v) {
		return true
	}
	name, port := splitHost(canonicalHost(v.host, v.scheme()), v.scheme())
	if port != p.port || name == "" {
		return false
	}
	if name == "localhost" || p.host != "" && name == strings.ToLower(p.host) {
		return true
	}
	addr, err := netip.ParseAddr(name)
	if err != nil {
		return false
	}
	return addr.IsLoopback() || p.host == "" && addr.Unmap() == v.local
}

// originAllowed: an Origin must be the page's own, exactly, also of who only reads. Without one, whoever
// changes something must carry a key in the request itself, because a browser would have sent an Origin.
// Nothing that a browser adds by itself lets in, so reading without one shows nothing to a foreign page.
func (p accessPolicy) originAllowed(v visitor) bool {
	switch len(v.origins) {
	case 0:
		return !v.unsafe || v.carried
	case 1:
		return v.origins[0] == p.scheme(v)+"://"+canonicalHost(v.host, p.scheme(v))
	}
	return false
}

// isPublic reports whether the visitor came by public_url.
func (p accessPolicy) isPublic(v visitor) bool {
	return p.publicHost != "" && canonicalHost(v.host, p.publicScheme) == p.publicHost
}

// scheme is the one the visitor's address bar shows. A proxy may have taken TLS off.
func (p accessPolicy) scheme(v visitor) string {
	if p.isPublic(v) {
		return p.publicScheme
	}
	return v.scheme()
}

// hostOf is the page's host as its address bar shows it; a login counts at one of them.
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

// splitHost takes a host apart; a missing port is the scheme's. A host that is none has no name.
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

// callRoutes begin a call or enter one. A call is billed, so a key that may do nothing in it has none. Set once.
var callRoutes = []string{
	"GET /v1/realtime", "POST /v1/realtime/calls", "POST /v1/realtime/client_secrets", "POST /v1/realtime/attach",
}

// apiTool names the tool that a route of the Responses API stands for.
func apiTool(pattern string) string {
	switch _, path, _ := strings.Cut(pattern, " "); {
	case strings.HasPrefix(path, "/v1/responses"), strings.HasPrefix(path, "/v1/conversations"):
		return tools.Codex
	case strings.HasPrefix(path, "/v1/models"):
		return tools.ListServers
	}
	return ""
}

// mayUse reports whether a grant allows what a route does. An error has code [handoff.CodeNotGranted].
func mayUse(g handoff.Grant, to route) error {
	if g.Tools != nil && len(g.Tools) == 0 && slices.Contains(callRoutes, to.pattern) {
		return handoff.Fault(handoff.CodeNotGranted, "it has no tools, so it begins no calls", "")
	}
	if to.tool == "" {
		return nil
	}
	return mayUseTool(g, to.tool)
}

// mayUseTool reports whether a grant has a tool. An error has code [handoff.CodeNotGranted].
func mayUseTool(g handoff.Grant, tool string) error {
	if !g.AllowsTool(tool) {
		return handoff.Fault(handoff.CodeNotGranted, "it has no tool "+tool, "")
	}
	return nil
}
