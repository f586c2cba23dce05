package main

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"switchboard/servers"
	"switchboard/servers/responses"
	"switchboard/sessions/redis"
)

// A checker checks the settings after file, environment and flags were merged, and fills in the fields that are derived
// from others. It goes on after each problem.
type checker struct {
	s      *settings
	kinds  []servers.Kind
	places map[string]place
	env    func(string) string
	dir    string   // absolute; relative paths of the file begin here
	ours   []string // files that no agent may reach: the configuration, keys and tokens
	agents []agentDir
	found  problems
}

// elem is the path of an element of a list.
func elem(path string, i int) string { return fmt.Sprintf("%s[%d]", path, i) }

// bad records a problem of a setting. The place is where the setting was set, or else the nearest setting around it.
func (c *checker) bad(path, format string, args ...any) {
	at, ok := c.places[path]
	for parent := path; !ok && parent != ""; {
		parent = parent[:max(strings.LastIndexAny(parent, ".["), 0)]
		at, ok = c.places[parent]
	}
	if !ok {
		at = place{name: path}
	}
	text := fmt.Sprintf(format, args...)
	if at.name != path { // otherwise the place names the setting already
		text = label(path) + ": " + text
	}
	c.found = append(c.found, problem{at, text})
}

func (c *checker) all() {
	c.listen()
	c.publicURL()
	c.mcp()
	c.tls()
	if udp := c.s.Media.UDP; udp.IsValid() && udp.Port() == 0 {
		c.bad("media.udp", "needs a port")
	}
	c.redis()
	c.peers()
	c.keys()
	c.model()
	c.reasoning()
	c.money()
	c.rest()
	for i := range c.s.Servers {
		if path := elem("servers", i); c.places[path] != codexFlag {
			c.server(path, &c.s.Servers[i])
		}
	}
	c.names()
	if c.isSet("peers") {
		c.reachedByAll()
	}
	for _, a := range c.agents { // last, because only now all of c.ours is known
		c.apart(a.path, a.dir)
	}
}

// redis checks the address of the Redis. It never quotes the address, which may contain a password.
func (c *checker) redis() {
	address := c.s.Redis.Reveal()
	u, err := url.Parse(address)
	if address != "" {
		err = redis.CheckURL(address)
	}
	if err != nil {
		c.bad("redis", "%v", err)
		return
	}
	plainly := ""
	switch {
	case u.Query().Has("master_name"):
		plainly = "by a Sentinel may lead to another machine, in the clear"
	case u.Query().Has("addr"):
		plainly = "at a Cluster may lead to another machine, in the clear"
		if !c.isSet("peers") {
			c.bad("redis", "a Cluster (?addr=) is for instances with peers: set them, for one instance too")
		}
	case u.Hostname() != "" && !servers.Loopback(u.Hostname()):
		plainly = "to another machine goes in the clear"
	}
	if u.Scheme == "redis" && plainly != "" && !c.s.RedisPlaintext {
		c.bad("redis", "redis:// %s: use rediss:// or a tunnel, or set redis_allow_plaintext: true", plainly)
	}
	if u.Scheme != "redis" && c.s.RedisPlaintext {
		c.bad("redis_allow_plaintext", "goes with redis:// addresses only")
	}
}

// peers checks that other instances can reach this one at the addresses of the settings.
func (c *checker) peers() {
	if !c.isSet("peers") {
		return
	}
	if c.s.Redis.Reveal() == "" {
		c.bad("peers", "needs redis: the instances share one, and a file is one instance's own")
	}
	unspecified := func(path, text string, anyPort bool) bool {
		host, port, err := net.SplitHostPort(text)
		n, numErr := strconv.ParseUint(port, 10, 16)
		if err != nil || numErr != nil || n == 0 && !anyPort {
			c.bad(path, "%q is not host:port, such as 10.0.0.5:8090", text)
			return false
		}
		at, err := netip.ParseAddr(host)
		return host == "" || err == nil && at.IsUnspecified()
	}
	p := c.s.Peers
	switch {
	case p.Listen == "":
		c.bad("peers.listen", "is missing: where other instances reach this one, such as 10.0.0.5:8090")
	case unspecified("peers.listen", p.Listen, true) && p.Address == "":
		c.bad("peers.listen", "%s is no address that others could dial: name this machine's own, or set peers.address "+
			"beside it", p.Listen)
	}
	if p.Address != "" && unspecified("peers.address", p.Address, false) {
		c.bad("peers.address", "%s is no address that others could dial", p.Address)
	}
}

// reachedByAll checks that every instance reaches the same servers, so that one can go on with work that another one
// began.
func (c *checker) reachedByAll() {
	for i, s := range c.s.Servers {
		path := elem("servers", i)
		switch {
		case c.places[path] == codexFlag:
			c.bad(path, "does not go with peers: this Codex ends with its instance, and no other one reaches it")
		case s.Program != "":
			c.bad(path+".command", "does not go with peers: the program ends with its instance, and no other one reaches "+
				"it; let its machine join, or name its address")
		case s.Kind == responses.Name:
			c.bad(path+".workspace", "does not go with peers: each instance would have files of its own there, so no agent of "+
				"Switchboard's own does")
		}
	}
}

// path makes a path of the file absolute.
func (c *checker) path(p string) string {
	if filepath.IsAbs(p) {
		return p
	}
	return filepath.Join(c.dir, p)
}

func (c *checker) listen() {
	host, port, err := net.SplitHostPort(c.s.Listen)
	if n, numErr := strconv.ParseUint(port, 10, 16); err != nil || numErr != nil || n > 65535 {
		c.bad("listen", "%q is not host:port, such as 127.0.0.1:8080", c.s.Listen)
		return
	}
	if servers.Loopback(host) {
		return
	}
	if len(c.s.Keys) == 0 && c.env(ownerKey) == "" {
		c.bad("listen", "others can reach %s, so it needs a key of yours: keys in the file, or %s", c.s.Listen, ownerKey)
	}
	if c.s.TLS == (tlsSettings{}) && len(c.s.TrustedProxies) == 0 {
		c.bad("listen", "others can reach %s, so keys and speech must not go there in the clear: set tls, or "+
			"trusted_proxies if a proxy does TLS before it", c.s.Listen)
	}
}

func (c *checker) publicURL() {
	if c.s.PublicURL == "" {
		return
	}
	u, err := url.Parse(c.s.PublicURL)
	switch {
	case err != nil || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" ||
		strings.Trim(u.Path, "/") != "":
		c.bad("public_url", "must be scheme and host alone, such as https://bigpc.example.ts.net")
	case u.Scheme != "https" && (u.Scheme != "http" || !servers.Loopback(u.Hostname())):
		c.bad("public_url", "must be https: browsers give no microphone to other pages")
	}
}

// mcp checks the address for OAuth: tokens are bound to one address, which clients elsewhere must reach over https.
func (c *checker) mcp() {
	host, _, err := net.SplitHostPort(c.s.Listen)
	switch {
	case !c.s.MCP.OAuth || c.s.PublicURL != "":
	case err == nil && !servers.Loopback(host):
		c.bad("mcp.oauth", "needs public_url, the https address at which programs elsewhere reach this page")
	case c.isSet("peers"):
		c.bad("mcp.oauth", "needs public_url with peers: what is let in counts at one address, "+
			"which all instances share")
	}
}

func (c *checker) tls() {
	t := &c.s.TLS
	switch {
	case *t == (tlsSettings{}):
		return
	case t.CertFile == "":
		c.bad("tls.key_file", "needs tls.cert_file beside it")
		return
	case t.KeyFile == "":
		c.bad("tls.cert_file", "needs tls.key_file beside it")
		return
	}
	t.CertFile, t.KeyFile = c.path(t.CertFile), c.path(t.KeyFile)
	c.ours = append(c.ours, t.KeyFile)
	if _, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile); err != nil {
		c.bad("tls", "%v", err)
	}
}

var (
	keyText   = regexp.MustCompile(`^[A-Za-z0-9_-]{16,}$`)
	plainName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)
)

const keyRule = "a key has at least 16 characters of A-Z a-z 0-9 _ -"

// file returns a function that reads a secret from a file, which it adds to c.ours.
func (c *checker) file(name string) func() (string, error) {
	path := c.path(name)
	if name != "" {
		c.ours = append(c.ours, path)
	}
	return func() (string, error) { return readSecret(path) }
}

// variable returns a function that reads a secret from an environment variable.
func (c *checker) variable(name string) func() (string, error) {
	return func() (string, error) {
		if text := strings.TrimSpace(c.env(name)); text != "" {
			return text, nil
		}
		return "", fmt.Errorf("the environment has no %s", name)
	}
}

// model checks and completes the address of the voice model and the key that is sent there. OPENAI_API_KEY goes only to
// OpenAI, unless key_env names it for another address.
func (c *checker) model() {
	m := &c.s.Model
	for name, model := range m.Aliases {
		if name == "" || model == "" {
			c.bad("model.aliases", "needs a name, and the model that it means")
		}
	}
	if m.KeyEnv != "" {
		text, err := c.variable(m.KeyEnv)()
		if err != nil {
			c.bad("model.key_env", "%v", err)
		}
		m.Key = newSecret(text)
	}
	openAI := strings.TrimSpace(c.env(openAIKey))
	if m.URL == "" {
		if m.KeyEnv == "" && openAI != "" {
			m.Key = newSecret(openAI)
		}
		if m.Key.Reveal() != "" {
			m.URL = openAIURL
		}
		return
	}
	u, err := url.Parse(m.URL)
	if err != nil || u.Hostname() == "" || u.User != nil || u.Fragment != "" || u.Scheme != "ws" && u.Scheme != "wss" {
		c.bad("model.url", "must be the address of a Realtime server, such as %s", openAIURL)
		return
	}
	here := servers.Loopback(u.Hostname())
	isOpenAI := m.isOpenAI()
	switch {
	case u.Scheme == "ws" && !here:
		c.bad("model.url", "must be wss: the key and what you say would go there in the clear")
	case m.KeyEnv != "" || here: // a model on this machine may need no key
	case isOpenAI && openAI == "":
		c.bad("model.url", "OpenAI needs a key: set %s", openAIKey)
	case isOpenAI:
		m.Key = newSecret(openAI)
	default:
		c.bad("model.url", "%s goes to api.openai.com alone: name the variable with the key for %s in model.key_env",
			openAIKey, u.Hostname())
	}
}
