package main

import (
	"crypto/tls"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"switchboard/handoff/wording"
	"switchboard/servers"
	"switchboard/sessions/redis"
)

var (
	keyText   = regexp.MustCompile(`^[A-Za-z0-9_-]{16,}$`)
	plainName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)
)

// check checks all settings, and completes those that follow from others.
func (s *settings) check(r report) {
	s.checkListen(r)
	s.checkPublicURL(r)
	s.checkOAuth(r)
	s.TLS.check(r.in("tls"))
	if udp := s.Media.UDP; udp.IsValid() && udp.Port() == 0 {
		r.Bad("media.udp", "needs a port")
	}
	s.checkRedis(r)
	s.Peers.check(r.in("peers"), s.Redis)
	s.checkKeys(r)
	s.Model.check(r.in("model"))
	s.checkMoney(r)
	r.OneOf("speech.updates", s.Speech.Updates, "milestones", "chatty", "quiet")
	r.OneOf("speech.language", s.Speech.Language, wording.Languages()...)
	s.Approvals.check(r.in("approvals"))
	if s.History.Keep < minHistory {
		r.Bad("history.keep", "%s is too short: at least %s, because until then a request may come again", s.History.Keep,
			minHistory)
	}
	s.Notify.check(r.in("notify"))
	s.checkServers(r)
	for _, a := range r.agents { // last, because only now all of r.ours is known
		r.apart(a)
	}
}

func (s *settings) checkListen(r report) {
	host, port, err := net.SplitHostPort(s.Listen)
	if _, numErr := strconv.ParseUint(port, 10, 16); err != nil || numErr != nil {
		r.Bad("listen", "%q is not host:port, such as 127.0.0.1:8080", s.Listen)
		return
	}
	if servers.Loopback(host) {
		return
	}
	if len(s.Keys) == 0 && r.env(ownerKey) == "" {
		r.Bad("listen", "others can reach %s, so it needs a key of yours: keys in the file, or %s", s.Listen, ownerKey)
	}
	if s.TLS == (tlsSettings{}) && len(s.TrustedProxies) == 0 {
		r.Bad("listen", "others can reach %s, so keys and speech must not go there in the clear: set tls, or "+
			"trusted_proxies if a proxy does TLS before it", s.Listen)
	}
}

func (s *settings) checkPublicURL(r report) {
	u, err := url.Parse(s.PublicURL)
	switch {
	case s.PublicURL == "":
	case err != nil || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" ||
		strings.Trim(u.Path, "/") != "":
		r.Bad("public_url", "must be scheme and host alone, such as https://bigpc.example.ts.net")
	case u.Scheme != "https" && (u.Scheme != "http" || !servers.Loopback(u.Hostname())):
		r.Bad("public_url", "must be https: browsers give no microphone to other pages")
	}
}

// checkOAuth checks the address for OAuth: tokens are bound to one address, which clients elsewhere must reach over
// https.
func (s *settings) checkOAuth(r report) {
	host, _, err := net.SplitHostPort(s.Listen)
	switch {
	case !s.MCP.OAuth || s.PublicURL != "":
	case err == nil && !servers.Loopback(host):
		r.Bad("mcp.oauth", "needs public_url, the https address at which programs elsewhere reach this page")
	case r.IsSet("peers"):
		r.Bad("mcp.oauth", "needs public_url with peers: what is let in counts at one address, which all instances share")
	}
}

func (t *tlsSettings) check(r report) {
	switch {
	case *t == (tlsSettings{}):
		return
	case t.CertFile == "":
		r.Bad("key_file", "needs tls.cert_file beside it")
		return
	case t.KeyFile == "":
		r.Bad("cert_file", "needs tls.key_file beside it")
		return
	}
	t.CertFile, t.KeyFile = r.Path(t.CertFile), r.Path(t.KeyFile)
	r.ours = append(r.ours, t.KeyFile)
	if _, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile); err != nil {
		r.Bad("", "%v", err)
	}
}

// checkRedis checks the address of the Redis. It never quotes the address, which may contain a password.
func (s *settings) checkRedis(r report) {
	address := s.Redis.Reveal()
	u, err := url.Parse(address)
	if address != "" {
		err = redis.CheckURL(address)
	}
	if err != nil {
		r.Bad("redis", "%v", err)
		return
	}
	plainly := ""
	switch {
	case u.Query().Has("master_name"):
		plainly = "by a Sentinel may lead to another machine, in the clear"
	case u.Query().Has("addr"):
		plainly = "at a Cluster may lead to another machine, in the clear"
		if !r.IsSet("peers") {
			r.Bad("redis", "a Cluster (?addr=) is for instances with peers: set them, for one instance too")
		}
	case u.Hostname() != "" && !servers.Loopback(u.Hostname()):
		plainly = "to another machine goes in the clear"
	}
	if u.Scheme == "redis" && plainly != "" && !s.RedisPlaintext {
		r.Bad("redis", "redis:// %s: use rediss:// or a tunnel, or set redis_allow_plaintext: true", plainly)
	}
	if u.Scheme != "redis" && s.RedisPlaintext {
		r.Bad("redis_allow_plaintext", "goes with redis:// addresses only")
	}
}

// check checks that other instances can reach this one at the addresses of the settings.
func (p peerSettings) check(r report, shared secret) {
	if !r.IsSet("") {
		return
	}
	if shared.Reveal() == "" {
		r.Bad("", "needs redis: the instances share one, and a file is one instance's own")
	}
	// everywhere reports whether an address is that of no machine in particular.
	everywhere := func(row, text string, anyPort bool) bool {
		host, port, err := net.SplitHostPort(text)
		n, numErr := strconv.ParseUint(port, 10, 16)
		if err != nil || numErr != nil || n == 0 && !anyPort {
			r.Bad(row, "%q is not host:port, such as 10.0.0.5:8090", text)
			return false
		}
		at, err := netip.ParseAddr(host)
		return host == "" || err == nil && at.IsUnspecified()
	}
	switch {
	case p.Listen == "":
		r.Bad("listen", "is missing: where other instances reach this one, such as 10.0.0.5:8090")
	case everywhere("listen", p.Listen, true) && p.Address == "":
		r.Bad("listen", "%s is no address that others could dial: name this machine's own, or set peers.address beside it",
			p.Listen)
	}
	if p.Address != "" && everywhere("address", p.Address, false) {
		r.Bad("address", "%s is no address that others could dial", p.Address)
	}
}

func (a approvalSettings) check(r report) {
	if a.AskAgain < a.GiveUp {
		return
	}
	row := "give_up"
	if r.IsSet("ask_again") {
		row = "ask_again"
	}
	r.Bad(row, "a question is given up after %s, before it would be asked again after %s", a.GiveUp, a.AskAgain)
}

// check checks the webhook. It never quotes the address, which often is a secret.
func (n *notifySettings) check(r report) {
	var row string
	n.Token, row = r.secret("token", n.TokenFile, n.TokenEnv)
	if n.Webhook.Reveal() != "" {
		servers.Address{
			Row: "webhook", URL: n.Webhook.Reveal(), Plain: "http", Secret: "token", Allowed: n.AllowPlaintext,
			What: "an address of http or https, such as https://ntfy.example.com/me",
		}.Check(r)
		if n.Token != nil {
			if _, err := n.Token(); err != nil {
				r.Bad(row, "%v", err)
			}
		}
		return
	}
	if n.Token != nil {
		r.Bad(row, "goes with a webhook only")
	}
	if n.AllowPlaintext {
		r.Bad("allow_plaintext", "goes with http:// addresses only")
	}
	if n.AllowPrivate {
		r.Bad("allow_private", "goes with a webhook only")
	}
}
