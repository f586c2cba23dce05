package peers

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"switchboard/handoff"
)

// hopHeader has the [hop] of a forwarded request. It is removed from requests that do not come from an instance.
const hopHeader = "Switchboard-Hop"

// A hop says how a request reached the instance that forwards it, or that the instance itself requests a line.
type hop struct {
	by     string // the id of that instance
	line   bool   // the instance requests a connection to an agent; never set for a client's request
	secure bool   // the request came over TLS
	remote string // the client's address with its port; "": it did not come over a network
}

// hopOf returns the hop of a request to this instance.
func hopOf(self string, r *http.Request) hop {
	h := hop{by: self, secure: r.TLS != nil}
	if _, err := netip.ParseAddrPort(r.RemoteAddr); err == nil {
		h.remote = r.RemoteAddr
	}
	return h
}

// String returns the hop as its header has it: "ID https ADDRESS", or "ID line ".
func (h hop) String() string {
	scheme := "http"
	switch {
	case h.line:
		scheme = "line"
	case h.secure:
		scheme = "https"
	}
	return h.by + " " + scheme + " " + h.remote
}

// parseHop parses the values of the header.
func parseHop(values []string) (hop, error) {
	if len(values) != 1 {
		return hop{}, errors.New("a request makes one hop")
	}
	by, rest, _ := strings.Cut(values[0], " ")
	scheme, remote, _ := strings.Cut(rest, " ")
	if by == "" || scheme != "http" && scheme != "https" && scheme != "line" {
		return hop{}, errors.New("it is ID http|https|line ADDRESS")
	}
	if _, err := netip.ParseAddrPort(remote); remote != "" && err != nil {
		return hop{}, errors.New("the address is none")
	}
	return hop{by: by, line: scheme == "line", secure: scheme == "https", remote: remote}, nil
}

// hopKey is the context key of the hop of a forwarded request.
type hopKey struct{}

// wasForwarded reports whether another instance forwarded a request to this one.
func wasForwarded(r *http.Request) bool {
	_, ok := r.Context().Value(hopKey{}).(hop)
	return ok
}

// Handler serves forwarded requests with the address and security of the client's connection. A sender that is not a
// known instance gets 421, so that it tries again: it may be an instance that has just started.
func (f *Forwarder) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		by, err := parseHop(r.Header.Values(hopHeader))
		known := func(p handoff.Instance) bool {
			return r.TLS != nil && p.Fingerprint != "" && p.Fingerprint == peerFingerprint(*r.TLS) && p.ID == by.by
		}
		switch {
		case err != nil:
			f.counts.taken.Add(takenMalformed)
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		case by.by == f.self || !slices.ContainsFunc(f.locator.Instances(), known):
			f.counts.taken.Add(takenStranger)
			w.Header().Set("Connection", "close")
			w.WriteHeader(http.StatusMisdirectedRequest)
			return
		}
		if by.line {
			f.serveLine(w, r, by.by)
			return
		}
		r.Header.Del(hopHeader)
		r = r.WithContext(context.WithValue(r.Context(), hopKey{}, by))
		r.RemoteAddr, r.TLS = by.remote, nil
		if by.secure {
			r.TLS = new(tls.ConnectionState) // handlers only check whether there is one
		}
		next.ServeHTTP(w, r)
	})
}
