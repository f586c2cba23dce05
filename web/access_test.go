package web

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"switchboard/handoff"
	"switchboard/sessions"
)

// entry is one row of the matrix: who comes how, and what they get ("" for in).
type entry struct {
	name   string
	listen string // default 127.0.0.1:8080
	public string
	method string // default GET
	path   string // default /fleet/servers
	host   string // default 127.0.0.1:8080
	origin string
	site   string
	key    string // bearer
	cookie string // what no cookie may do
	token  string // of a login: "owner": a good one of this Host
	proto  string // Sec-WebSocket-Protocol; makes it a WebSocket
	tls    bool
	want   handoff.Code
}

const (
	in        = handoff.Code("")
	forbidden = handoff.CodeForbidden
	badKey    = handoff.CodeUnauthorized
	noKey     = handoff.CodeNoKey
	home      = "http://127.0.0.1:8080"
	tailnet   = "https://bigpc.tail1234.ts.net"
	tailHost  = "bigpc.tail1234.ts.net"
	hangup    = "/v1/realtime/calls/rtc_1/hangup"
	stop      = "/fleet/handoffs/h1/stop"
)

var entries = []entry{
	// The key.
	{name: "bearer", key: ownerKey},
	{name: "other bearer", key: otherKey},
	{name: "no key", want: noKey},
	{name: "wrong key", key: "wrong", want: badKey},
	{name: "key and a little more", key: ownerKey + "x", want: badKey},
	{name: "prefix of the key", key: ownerKey[:8], want: badKey},
	{name: "empty bearer", key: " ", want: badKey},
	{name: "token of a login", token: "owner"},
	{name: "token of nobody", token: tokenPrefix + "AAAA", want: badKey},
	{name: "token without its prefix", token: "a-token-of-the-owner", want: badKey},
	{name: "cookie holding the key", cookie: ownerKey, want: noKey},
	{name: "cookie holding the key, on a change", cookie: ownerKey, origin: home, method: "POST", path: stop, want: noKey},
	{name: "good bearer beside a cookie", key: ownerKey, cookie: "AAAA"},
	{name: "key as a subprotocol without a WebSocket", proto: "plain", want: noKey},
	// The Host.
	{name: "localhost", host: "localhost:8080", key: ownerKey},
	{name: "localhost in capitals", host: "LOCALHOST:8080", key: ownerKey},
	{name: "another loopback address", host: "127.0.0.2:8080", key: ownerKey},
	{name: "IPv6 loopback", host: "[::1]:8080", key: ownerKey},
	{name: "another port", host: "127.0.0.1:8081", key: ownerKey, want: forbidden},
	{name: "no port", host: "127.0.0.1", key: ownerKey, want: forbidden},
	{name: "no host", host: "", key: ownerKey, want: forbidden},
	{name: "an empty port", host: "127.0.0.1:", key: ownerKey, want: forbidden},
	{name: "rebound name", host: "evil.example:8080", key: ownerKey, want: forbidden},
	{name: "rebound name with a token", host: "evil.example:8080", token: "owner", want: forbidden},
	{name: "name that ends in ours", host: "evil-localhost:8080", key: ownerKey, want: forbidden},
	{name: "subdomain of localhost", host: "a.localhost:8080", key: ownerKey, want: forbidden},
	{name: "localhost with a dot", host: "localhost.:8080", key: ownerKey, want: forbidden},
	{name: "private address we do not listen on", host: "192.168.1.5:8080", key: ownerKey, want: forbidden},
	{name: "brackets that do not close", host: "[::1:8080", key: ownerKey, want: forbidden},
	{name: "IPv6 without brackets", host: "::1:8080", key: ownerKey, want: forbidden},
	{name: "number for an address", host: "2130706433:8080", key: ownerKey, want: forbidden},
	{name: "user in the host", host: "evil@127.0.0.1:8080", key: ownerKey, want: forbidden},
	{name: "the address we listen on", listen: "10.0.0.7:8080", host: "10.0.0.7:8080", key: ownerKey},
	{name: "the name we listen on", listen: "bigpc:8080", host: "BigPC:8080", key: ownerKey},
	{name: "port 80 unsaid", listen: "127.0.0.1:80", host: "localhost", key: ownerKey},
	{name: "port 443 unsaid with TLS", listen: "127.0.0.1:443", host: "localhost", tls: true, key: ownerKey},
	{name: "port 443 unsaid without TLS", listen: "127.0.0.1:443", host: "localhost", key: ownerKey, want: forbidden},
	{name: "everywhere: name", listen: "0.0.0.0:8080", host: "evil.example:8080", key: ownerKey, want: forbidden},
	{name: "everywhere: loopback", listen: ":8080", host: "localhost:8080", key: ownerKey},
	{name: "everywhere: an address that is not this end", listen: "[::]:8080", host: "192.0.2.9:8080", key: ownerKey,
		want: forbidden},
	{name: "everywhere: the address of this end", listen: "0.0.0.0:8080", host: "192.0.2.1:8080", key: ownerKey},
	{name: "public host", public: tailnet, host: tailHost, key: ownerKey},
	{name: "public host with its port", public: tailnet, host: tailHost + ":443", key: ownerKey},
	{name: "public host with our port", public: tailnet, host: tailHost + ":8080", key: ownerKey, want: forbidden},
	{name: "public host that is not set", host: tailHost, key: ownerKey, want: forbidden},
	{name: "public host with a port of its own", public: "http://box:9000", host: "box:9000", key: ownerKey},
	{name: "sibling of the public host", public: tailnet, host: "x." + tailHost, key: ownerKey, want: forbidden},
	// The Origin.
	{name: "same origin", origin: home, token: "owner"},
	{name: "localhost page, localhost host", host: "localhost:8080", origin: "http://localhost:8080", token: "owner"},
	{name: "localhost page, address host", origin: "http://localhost:8080", token: "owner", want: forbidden},
	{name: "foreign origin", origin: "https://evil.example", token: "owner", want: forbidden},
	{name: "foreign origin with a bearer", origin: "https://evil.example", key: ownerKey, want: forbidden},
	{name: "another port of this machine", origin: "http://127.0.0.1:3000", token: "owner", want: forbidden},
	{name: "another scheme", origin: "https://127.0.0.1:8080", token: "owner", want: forbidden},
	{name: "null origin", origin: "null", token: "owner", want: forbidden},
	{name: "origin that begins like ours", origin: home + ".evil.example", token: "owner", want: forbidden},
	{name: "origin with a path", origin: home + "/", token: "owner", want: forbidden},
	{name: "two origins", origin: home + "," + home, token: "owner", want: forbidden},
	{name: "public origin through the proxy", public: tailnet, host: tailHost, origin: tailnet, token: "owner"},
	{name: "public origin without TLS", public: tailnet, host: tailHost, origin: "http://" + tailHost, token: "owner",
		want: forbidden},
	{name: "public origin to loopback", public: tailnet, origin: tailnet, token: "owner", want: forbidden},
	{name: "TLS here", tls: true, origin: "https://127.0.0.1:8080", token: "owner"},
	{name: "TLS here, plain origin", tls: true, origin: home, token: "owner", want: forbidden},
	// Reading without an Origin, as browsers do.
	{name: "own page reads", site: "same-origin", token: "owner"},
	{name: "address bar", site: "none", want: noKey},
	{name: "foreign page reads", site: "cross-site", want: noKey},
	{
		name: "foreign page reads what is public, with an origin", path: "/", origin: "https://evil.example", want: forbidden,
	},
	{name: "link from elsewhere to the page", path: "/", site: "cross-site"},
	{name: "page needs no key", path: "/"},
	{name: "page of a rebound name", path: "/", host: "evil.example:8080", want: forbidden},
	// Changing something.
	{name: "change with a bearer", method: "POST", path: stop, key: ownerKey},
	{name: "change with a token", method: "POST", path: stop, origin: home, token: "owner"},
	{name: "change with a cookie and no origin", method: "POST", path: stop, cookie: ownerKey, want: forbidden},
	{name: "change without anything", method: "POST", path: stop, want: forbidden},
	{name: "change from a foreign page", method: "POST", path: stop, origin: "https://evil.example", token: "owner",
		want: forbidden},
	{name: "change that the browser calls foreign", method: "POST", path: stop, origin: home, site: "cross-site",
		token: "owner", want: forbidden},
	{name: "change through the proxy", method: "POST", path: stop, public: tailnet, host: tailHost, origin: tailnet,
		site: "same-origin", token: "owner"},
	{name: "login without an origin", method: "POST", path: "/login", want: forbidden},
	{name: "proof without an origin", method: "POST", path: "/login/proof", want: forbidden},
	{name: "proof for a foreign page", method: "POST", path: "/login/proof", origin: "https://evil.example",
		want: forbidden},
	{name: "login from a foreign page", method: "POST", path: "/login", origin: "https://evil.example", want: forbidden},
	// WebSockets.
	{name: "socket with a subprotocol", path: "/v1/realtime", proto: "realtime, " + protocolKey + ownerKey},
	{name: "socket with a wrong subprotocol", path: "/v1/realtime", proto: "realtime, " + protocolKey + "wrong",
		want: badKey},
	{name: "socket with an empty subprotocol", path: "/v1/realtime", proto: "realtime, " + protocolKey, want: badKey},
	{name: "socket with a bearer", path: "/v1/realtime", proto: "realtime", key: ownerKey},
	{name: "socket of the page", path: "/v1/realtime", proto: "realtime", origin: home, token: "owner"},
	{name: "socket with a cookie and no origin", path: "/v1/realtime", proto: "realtime", cookie: ownerKey, want: noKey},
	{name: "socket of a foreign page", path: "/v1/realtime", proto: "realtime", origin: "https://evil.example",
		token: "owner", want: forbidden},
	{name: "socket of a foreign page that knows the key", path: "/v1/realtime", proto: protocolKey + ownerKey,
		origin: "https://evil.example"},
	{name: "socket of a foreign page without a key", path: "/v1/realtime", proto: "realtime",
		origin: "https://evil.example", want: noKey},
	{name: "socket to a name with a key", path: "/v1/realtime", proto: protocolKey + ownerKey, host: "switchboard:8080"},
	{name: "socket to a name with a bearer and no port", path: "/v1/realtime", proto: "realtime", key: ownerKey,
		host: "switchboard"},
	{name: "socket to a rebound name", path: "/v1/realtime", proto: "realtime", host: "evil.example:8080", want: noKey},
	{name: "socket to a rebound name with a token", path: "/v1/realtime", proto: "realtime", host: "evil.example:8080",
		token: "owner", want: forbidden},
	{name: "socket with two origins and a key", path: "/v1/realtime", proto: "realtime", key: ownerKey,
		origin: home + "," + home},
	// Calls.
	{name: "call of a page elsewhere", method: "POST", path: hangup, origin: "https://app.example", site: "cross-site",
		key: ownerKey},
	{name: "call of a file", method: "POST", path: hangup, origin: "null", site: "cross-site", key: ownerKey},
	{name: "call to a name", method: "POST", path: hangup, host: "switchboard:8080", key: ownerKey},
	{name: "call of a page elsewhere with a token", method: "POST", path: hangup, origin: "https://app.example",
		token: "owner", want: forbidden},
	{name: "call of a page elsewhere with a wrong key", method: "POST", path: hangup, origin: "https://app.example",
		key: "wrong", want: badKey},
	{name: "call of a page elsewhere with a cookie", method: "POST", path: hangup, origin: "https://app.example",
		cookie: ownerKey, want: noKey},
	{name: "the fleet beside a name", host: "switchboard:8080", key: ownerKey, want: forbidden},
	// The rest.
	{name: "unknown path", path: "/v1/models", key: ownerKey, want: handoff.CodeNotFound},
	{name: "unknown path of a foreign page", path: "/v1/models", origin: "https://evil.example", key: ownerKey,
		want: handoff.CodeNotFound},
	{name: "path that is not clean", path: "/fleet//servers", key: ownerKey, want: handoff.CodeNotFound},
	{name: "path that climbs", path: "/page/../fleet/servers", want: handoff.CodeNotFound},
}

// tokenFor logs the owner in at a Host.
func tokenFor(w *world, host string) string {
	const token = tokenPrefix + "a-token-of-the-owner"
	now := time.Now()
	_ = w.PutLogin(context.Background(), sessions.Login{
		ID: "login1", Sum: sha256.Sum256([]byte(token)), Principal: "owner", Key: NewKey("owner", ownerKey).Sum, Host: host, Made: now, Used: now, Ends: now.Add(time.Hour),
	})
	return token
}

func (e entry) request(w *world, s *Server) *http.Request {
	if e.method == "" {
		e.method = http.MethodGet
	}
	if e.path == "" {
		e.path = "/fleet/servers"
	}
	if e.host == "" && e.name != "no host" {
		e.host = "127.0.0.1:8080"
	}
	r := httptest.NewRequest(e.method, "/", http.NoBody)
	r.URL.Path = e.path
	r.Host, r.RemoteAddr = e.host, "127.0.0.1:40000"
	here := net.TCPAddrFromAddrPort(netip.MustParseAddrPort("192.0.2.1:8080")) // our end, as net/http tells it
	r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, net.Addr(here)))
	if e.tls {
		r.TLS = &tls.ConnectionState{}
	}
	for origin := range strings.SplitSeq(e.origin, ",") {
		if origin != "" {
			r.Header.Add("Origin", origin)
		}
	}
	if e.site != "" {
		r.Header.Set("Sec-Fetch-Site", e.site)
	}
	if e.key != "" {
		r.Header.Set("Authorization", "Bearer "+e.key)
	}
	if e.cookie != "" {
		r.AddCookie(&http.Cookie{Name: "switchboard-8080", Value: e.cookie})
	}
	switch e.token {
	case "":
	case "owner":
		r.Header.Set("Authorization", "Bearer "+tokenFor(w, s.access.hostOf(r)))
	default:
		r.Header.Set("Authorization", "Bearer "+e.token)
	}
	switch e.proto {
	case "":
	case "plain":
		r.Header.Set("Sec-WebSocket-Protocol", protocolKey+ownerKey)
	default:
		r.Header.Set("Connection", "keep-alive, Upgrade")
		r.Header.Set("Upgrade", "websocket")
		r.Header.Set("Sec-WebSocket-Protocol", e.proto)
	}
	return r
}

// refusedFor is why a request was refused, or in.
func refusedFor(t *testing.T, rec *httptest.ResponseRecorder) handoff.Code {
	t.Helper()
	if rec.Code < 300 {
		return in
	}
	return codeOf(t, rec)
}

func TestDoor(t *testing.T) {
	if len(entries) < 60 {
		t.Errorf("the matrix has %d rows, want 60 and more", len(entries))
	}
	for _, e := range entries {
		t.Run(e.name, func(t *testing.T) {
			w := newWorld()
			s := newServer(t, w, func(cfg *Config) {
				if e.listen != "" {
					cfg.Listen = e.listen
				}
				cfg.PublicURL = e.public
			})
			rec := httptest.NewRecorder()
			s.ServeHTTP(rec, e.request(w, s))
			if got := refusedFor(t, rec); got != e.want {
				t.Errorf("got %q (%d), want %q", got, rec.Code, e.want)
			}
			if asked := w.log(); e.want != in && len(asked) > 0 {
				t.Errorf("refused, but it was asked for %q", asked)
			}
		})
	}
}

func TestDoorPeers(t *testing.T) {
	proxies := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}
	for _, row := range []struct {
		peer    string
		proxies []netip.Prefix
		want    handoff.Code
	}{
		{"127.0.0.1:1", proxies, in},
		{"[::1]:1", proxies, in},
		{"[::ffff:127.0.0.1]:1", proxies, in},
		{"10.9.8.7:1", proxies, in},
		{"[::ffff:10.9.8.7]:1", proxies, in},
		{"[fd00::7]:1", proxies, in},
		{"192.168.1.5:1", proxies, forbidden},
		{"[2001:db8::1]:1", proxies, forbidden},
		{"@", proxies, forbidden},
		{"192.168.1.5:1", nil, in},
		{"@", nil, in},
	} {
		s := newServer(t, newWorld(), func(cfg *Config) { cfg.TrustedProxies = row.proxies })
		rec := ask(s, "GET", "/fleet/servers", "", func(r *http.Request) { r.RemoteAddr = row.peer })
		if got := refusedFor(t, rec); got != row.want {
			t.Errorf("peer %s with %d proxies: got %q, want %q", row.peer, len(row.proxies), got, row.want)
		}
	}
}

// TestBetaSaysWhatIsNow: the answer to a path of the Realtime beta names its replacement.
func TestBetaSaysWhatIsNow(t *testing.T) {
	s := newServer(t, newWorld(), nil)
	for _, path := range []string{"/v1/realtime/sessions", "/v1/realtime/transcription_sessions"} {
		rec := ask(s, "POST", path, "{}", nil)
		if codeOf(t, rec) != handoff.CodeNotFound || !strings.Contains(rec.Body.String(), "POST /v1/realtime/client_secrets") {
			t.Errorf("%s: %s", path, rec.Body)
		}
	}
}

// TestMCPHost: over loopback, /mcp is served at loopback names on any port and at public_url, and at no other name,
// which somebody may have rebound. Elsewhere, and for the rest of the API, the key in the request is enough.
func TestMCPHost(t *testing.T) {
	p := accessPolicy{host: "127.0.0.1", port: "8080", publicScheme: "https", publicHost: tailHost}
	for _, tc := range []struct {
		local, host, path string
		want              handoff.Code
	}{
		{"127.0.0.1:8080", "127.0.0.1:8080", "/mcp", in},
		{"127.0.0.1:8080", "localhost:8080", "/mcp", in},
		{"127.0.0.1:8080", "LOCALHOST:9000", "/mcp", in},
		{"[::1]:8080", "[::1]:8080", "/mcp", in},
		{"127.0.0.1:8080", tailHost, "/mcp", in},
		{"127.0.0.1:8080", "evil.example:8080", "/mcp", forbidden},
		{"127.0.0.1:8080", "evil.example", "/mcp", forbidden},
		{"[::1]:8080", "evil-localhost:8080", "/mcp", forbidden},
		{"127.0.0.1:8080", "localhost.evil.example", "/mcp", forbidden},
		{"127.0.0.1:8080", "", "/mcp", forbidden},
		{"10.0.0.5:8080", "switchboard:8080", "/mcp", in},
		{"127.0.0.1:8080", "evil.example:8080", "/v1/models", in},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://x"+tc.path, nil)
		r.Host = tc.host
		local := net.TCPAddrFromAddrPort(netip.MustParseAddrPort(tc.local))
		r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, net.Addr(local)))
		if err := p.check(newVisitor(r)); handoff.CodeOf(err) != tc.want {
			t.Errorf("%s at %q: %v, want %q", tc.path, tc.host, err, tc.want)
		}
	}
}
