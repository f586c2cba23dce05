package peers

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// hopHeader is what an instance tells the next one of a request beside what that has itself: see [hop]. From anywhere
// else it is taken away.
const hopHeader = "Switchboard-Hop"

// A hop is how a request reached the instance that forwards it, or that the instance itself asks for a line.
type hop struct {
	by     string // the id of that instance
	line   bool   // it asks for a connection to an agent: nothing that a client sends is taken for that
	secure bool   // it came over TLS
	remote string // from this address, with its port; "": it came by no network
}

// hopOf is the hop of a request to this instance.
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

// parseHop reads a header.
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

// hopKey is where a request says that another instance forwarded it.
type hopKey struct{}

// came reports whether another instance forwarded a request to this one.
func came(r *http.Request) bool {
	_, ok := r.Context().Value(hopKey{}).(hop)
	return ok
}

// Handler serves what other instances forward, as it reached them. Whoever is none of them is asked to come again, as
// it may be one that has just begun.
func (f *Forwarder) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		by, err := parseHop(r.Header.Values(hopHeader))
		known := func(p Peer) bool {
			return r.TLS != nil && p.Fingerprint != "" && p.Fingerprint == shown(*r.TLS) && p.ID == by.by
		}
		switch {
		case err != nil:
			f.counts.taken.Add(takenMalformed)
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		case by.by == f.self || !slices.ContainsFunc(f.locator.Peers(), known):
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
			r.TLS = new(tls.ConnectionState) // nobody asks for more than whether there is one
		}
		next.ServeHTTP(w, r)
	})
}
