package oauth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"

	"switchboard/handoff"
	"switchboard/web/guarded"
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
	case !plainHost(u):
		return bad("has a host that looks like another one")
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
		!plainHost(u) ||
		u.Scheme != "https" && (u.Scheme != "http" || !local(u.Hostname())) {
		return nil, handoff.Malformed("redirect_uri", "redirect_uri is neither an https address nor one of this computer")
	}
	return u, nil
}

// plainHost reports whether an address names its host in ASCII: letters of other scripts look like these, also where
// they are escaped.
func plainHost(u *url.URL) bool {
	return !strings.ContainsFunc(u.Host, func(r rune) bool { return r > unicode.MaxASCII })
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
	if errors.Is(err, guarded.ErrPrivate) {
		return guarded.ErrPrivate.Error()
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
