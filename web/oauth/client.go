package oauth

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode"

	"switchboard/handoff"
)

const (
	maxClient   = 512      // bytes of a client_id
	maxDocument = 16 << 10 // bytes of a client's document
	maxRedirect = 2 << 10  // bytes of a redirect address
	maxName     = 80       // bytes of a client's name that are kept
	fetchWithin = 5 * time.Second
)

// A client is a program's metadata document.
type client struct {
	ID           string   `json:"client_id"`
	Name         string   `json:"client_name"`
	Redirects    []string `json:"redirect_uris"`
	GrantTypes   []string `json:"grant_types"`
	AuthMethod   string   `json:"token_endpoint_auth_method"`
	AuthMethods  []string `json:"token_endpoint_auth_methods_supported"`
	ResponseType []string `json:"response_types"`
}

// clientAddress parses a client_id: an https address with a path, in its canonical form.
func clientAddress(id string) (*url.URL, error) {
	bad := func(why string) (*url.URL, error) {
		return nil, handoff.Malformed("client_id", "client_id "+why)
	}
	if len(id) > maxClient {
		return bad("is too long")
	}
	u, err := url.Parse(id)
	switch {
	case err != nil || u.Scheme != "https" || u.Host == "" || u.Opaque != "":
		return bad("is not the https address of a client's document, and no other kind of client is known here")
	case u.User != nil || u.RawQuery != "" || u.ForceQuery || strings.Contains(id, "#"):
		return bad("has more in it than host and path")
	case u.Path == "" || u.Path == "/" || u.String() != id || u.Hostname() != strings.ToLower(u.Hostname()):
		return bad("is not written as an address with a path is")
	}
	for part := range strings.SplitSeq(u.Path, "/") {
		if part == "." || part == ".." {
			return bad("has dots for a part of its path")
		}
	}
	return u, nil
}

// redirectAddress parses a redirect address: an https address, or one on the person's own computer.
func redirectAddress(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || len(text) > maxRedirect || u.Host == "" || u.User != nil || strings.Contains(text, "#") ||
		strings.ContainsFunc(u.Host, func(r rune) bool { return r > unicode.MaxASCII }) || // looks like another
		u.Scheme != "https" && (u.Scheme != "http" || !local(u.Hostname())) {
		return nil, handoff.Malformed("redirect_uri", "redirect_uri is neither an https address nor one of this computer")
	}
	return u, nil
}

// local reports whether a host is a loopback address.
func local(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}

// fetch fetches and checks the document of a client.
func (s *Server) fetch(ctx context.Context, id string) (client, error) {
	at, err := clientAddress(id)
	if err != nil {
		return client{}, err
	}
	unread := func(why string) (client, error) {
		return client{}, handoff.Malformed("client_id", fmt.Sprintf("the document of the client at %s %s", at.Host, why))
	}
	ctx, cancel := context.WithTimeout(ctx, fetchWithin)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, id, nil)
	if err != nil {
		return unread("has no address")
	}
	r.Header.Set("Accept", "application/json")
	r.Header.Set("User-Agent", "switchboard")
	resp, err := s.client.Do(r)
	if err != nil {
		return unread("cannot be read: " + reason(err))
	}
	defer func() { _ = resp.Body.Close() }() // only read from
	if resp.StatusCode != http.StatusOK {
		return unread("cannot be read: " + resp.Status)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxDocument+1))
	switch {
	case err != nil:
		return unread("cannot be read: " + reason(err))
	case len(body) > maxDocument:
		return unread("is too long")
	case handoff.TooDeep(body):
		return unread("nests too deeply")
	}
	var c client
	if json.Unmarshal(body, &c) != nil {
		return unread("is not one of a client")
	}
	if c.ID != id {
		return unread("names another client_id")
	}
	if c.AuthMethod != "none" && !slices.Contains(c.AuthMethods, "none") {
		return unread("asks for a way to authenticate that is not known here; only none is")
	}
	if c.GrantTypes != nil && !slices.Contains(c.GrantTypes, "authorization_code") ||
		c.ResponseType != nil && !slices.Contains(c.ResponseType, "code") {
		return unread("does not use the authorization code")
	}
	c.Name = handoff.Clip(strings.TrimSpace(strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) { // among these are characters that reorder or hide others
			return -1
		}
		return r
	}, c.Name)), maxName)
	if c.Name == "" {
		c.Name = at.Hostname()
	}
	return c, nil
}

// reason returns an error of a fetch in words that reveal nothing about the network behind the address.
func reason(err error) string {
	if strings.Contains(err.Error(), errPrivate) {
		return errPrivate
	}
	return "it does not answer as it should"
}

// documents returns an HTTP client without redirects and cookies.
func documents(through http.RoundTripper) *http.Client {
	return &http.Client{
		Transport: through,
		Timeout:   fetchWithin,
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		},
	}
}

// errPrivate is the error for an address that is not public.
const errPrivate = "the address leads into a private network"

// guarded returns a transport that connects only to public addresses. The address is checked after the name was
// resolved, when connecting. It uses no proxy, because a proxy could connect to any address.
func guarded() http.RoundTripper {
	dial := &net.Dialer{Timeout: fetchWithin, Control: func(_, address string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(address)
		if err != nil || to.Port() != 443 || !public(to.Addr()) {
			return fmt.Errorf("%s", errPrivate)
		}
		return nil
	}}
	return &http.Transport{
		DialContext: dial.DialContext, TLSHandshakeTimeout: fetchWithin, ResponseHeaderTimeout: fetchWithin,
		MaxResponseHeaderBytes: maxDocument, DisableKeepAlives: true, ForceAttemptHTTP2: true,
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
