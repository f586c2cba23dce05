package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"time"

	"switchboard/handoff/ledger"
	"switchboard/realtime"
	"switchboard/realtime/models"
	"switchboard/servers"
	"switchboard/sessions/redis"
	"switchboard/sessions/sqlite"
)

// soonOver is how long before its expiry a certificate needs mending.
const soonOver = 14 * 24 * time.Hour

// port checks that the running service answers at its address, or, if none runs, that one could listen there.
func (d *doctor) port(ctx context.Context) {
	if d.here != nil {
		here, err := d.here.Here(ctx)
		if err == nil {
			err = health(ctx, here.Base)
		}
		if err != nil {
			d.mendError("address", err, "end the Switchboard that runs, and start it again")
			return
		}
		d.ok("address", "a Switchboard of yours runs at %s", here.Base)
		return
	}
	answers := health(ctx, baseOf(d.s.Listen, d.s.TLS != tlsSettings{}))
	l, err := net.Listen("tcp", d.s.Listen)
	switch {
	case err == nil:
		_ = l.Close()
		d.ok("address", "%s is free; no Switchboard of yours runs: `switchboard` starts one", d.s.Listen)
	case answers == nil:
		d.mend("address", fmt.Sprintf("another Switchboard runs at %s, with another state directory or as another user",
			d.s.Listen), "end that one, or give this one another address with --listen")
	default:
		d.mend("address", fmt.Sprintf("cannot listen on %s: %v", d.s.Listen, err),
			cmp.Or(listenNext(err), "give another address with --listen"))
	}
	d.media()
}

// media checks that the UDP port for sound is free.
func (d *doctor) media() {
	if !d.s.Media.UDP.IsValid() {
		return
	}
	c, err := net.ListenPacket("udp", d.s.Media.UDP.String())
	if err != nil {
		d.mend("sound", "cannot listen for it: "+err.Error(),
			cmp.Or(listenNext(err), "set media.udp to another address"))
		return
	}
	_ = c.Close()
	d.ok("sound", "UDP %s is free", d.s.Media.UDP)
}

// certificate checks that the certificate of the settings is valid now, and not about to expire. The check of the
// settings has seen that it matches its key.
func (d *doctor) certificate(now time.Time) {
	if d.s.TLS == (tlsSettings{}) {
		return
	}
	pair, err := tls.LoadX509KeyPair(d.s.TLS.CertFile, d.s.TLS.KeyFile)
	var leaf *x509.Certificate
	if err == nil {
		leaf, err = x509.ParseCertificate(pair.Certificate[0])
	}
	const renew = "renew it, and start Switchboard again"
	switch {
	case err != nil:
		d.mend("tls", err.Error(), "")
	case now.After(leaf.NotAfter):
		d.mend("tls", fmt.Sprintf("the certificate %s ended on %s", d.s.TLS.CertFile, leaf.NotAfter.Format(time.DateOnly)),
			renew)
	case now.Before(leaf.NotBefore):
		d.mend("tls", fmt.Sprintf("the certificate %s counts from %s on", d.s.TLS.CertFile,
			leaf.NotBefore.Format(time.DateOnly)), "look at the clock of this machine")
	case now.Add(soonOver).After(leaf.NotAfter):
		d.mend("tls", fmt.Sprintf("the certificate %s ends on %s", d.s.TLS.CertFile, leaf.NotAfter.Format(time.DateOnly)),
			renew)
	default:
		d.ok("tls", "for %v until %s", leaf.DNSNames, leaf.NotAfter.Format(time.DateOnly))
	}
}

// store checks the store, and how it is set up. It asks a running service whether it can write it, since that has the
// store open.
func (d *doctor) store(ctx context.Context) {
	address := d.s.Redis.Reveal()
	if d.here != nil {
		if err := d.here.Ready(ctx); err != nil {
			d.mendError("store", err, "")
			return
		}
		d.ok("store", "the Switchboard that runs can write it")
	} else if address == "" {
		if err := sqlite.Look(d.state); err != nil {
			d.mend("store", err.Error(), "")
			return
		}
		d.ok("store", "a file in the state directory")
	}
	if address == "" {
		return
	}
	seen, err := redis.Look(ctx, redis.Config{URL: address, Shared: d.s.Peers.set()})
	u, _ := url.Parse(address) // checked with the settings
	switch {
	case err != nil:
		d.mendError("store", err, "start the Redis, or correct redis in the settings; without one, a file remembers")
		return
	case d.here != nil:
	case seen.Holder != "" && !(seen.Holder == redis.Together && d.s.Peers.set()):
		d.mend("store", fmt.Sprintf("the Redis at %s is in use by another Switchboard, %s", u.Host, seen.Holder),
			"end that one, or give this one a Redis of its own (another database number will do)")
		return
	case u.Scheme == "rediss":
		d.ok("store", "the Redis at %s answers, encrypted", u.Host)
	default:
		d.ok("store", "the Redis at %s answers, unencrypted", u.Host)
	}
	if seen.Untold != nil {
		d.ok("promises", "not known: the Redis does not tell how it keeps what it is told (%v)", seen.Untold)
	} else {
		d.durability(seen.About)
	}
	if d.s.Peers.set() {
		d.instances(ctx, seen.Instances)
	}
}

// maxApart is how much the clocks of a Redis and of this machine may differ: times that people see, and the expiry of
// logins and secrets, depend on both.
const maxApart = 2 * time.Second

// durability prints what follows from how a Redis is set up.
func (d *doctor) durability(about redis.About) {
	if apart := about.Ahead.Abs().Round(time.Millisecond); apart > maxApart {
		d.mend("clock", fmt.Sprintf("this machine's clock and that of the Redis are %s apart", apart),
			"set both by NTP; logins, secrets and times of work are off by that much")
	} else {
		d.ok("clock", "%s apart from that of the Redis", apart)
	}
	switch {
	case about.Replica:
		d.mend("promises", "the Redis is a replica, which takes no writes", "name its primary in redis")
	case about.Evicts:
		d.mend("promises", "the Redis drops keys when it is full: work, logins and outcomes may vanish",
			"maxmemory-policy noeviction")
	case about.Failing:
		d.mend("promises", "the Redis could not write to its disk the last time it tried", "look at its log and its disk")
	case about.Silent != "":
		d.mend("promises", "a replica of the Redis is silent and counts as gone ("+about.Silent+
			"): what is written meanwhile is lost if another Redis takes over", "look at that replica, or end it")
	case !about.Journal:
		d.mend("promises", "the Redis keeps snapshots at most: what came since the newest is lost when it crashes, and "+
			"work that was begun then may be begun again", "appendonly yes, with appendfsync everysec, and a disk that stays")
	case about.Replicas > 0:
		d.ok("promises", "kept when Switchboard is killed; a crash of the Redis, or a change to one of its %d replicas, may "+
			"lose the last second", about.Replicas)
	default:
		d.ok("promises", "kept when Switchboard is killed; a crash of the Redis may lose the last second, the loss of its "+
			"disk everything")
	}
}

// instances checks that this machine reaches each instance that shares the Redis, as it must.
func (d *doctor) instances(ctx context.Context, there []ledger.Beat) {
	if len(there) == 0 {
		d.ok("instances", "none runs; the others will reach this one at %s", cmp.Or(d.s.Peers.Address, d.s.Peers.Listen))
	}
	for _, one := range there {
		if err := reached(ctx, one.Address); err != nil {
			d.mend("instances", fmt.Sprintf("the one at %s lives, and is not reached from here: %v", one.Address, err),
				"let this machine reach that address, or correct peers.listen or peers.address there")
		} else {
			d.ok("instances", "one lives at %s, and is reached from here", one.Address)
		}
	}
}

// reached connects to an address, and sends nothing.
func reached(ctx context.Context, address string) error {
	c, err := (&net.Dialer{Timeout: healthWithin}).DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	return c.Close()
}

// voice checks that the voice model accepts a session. A session in which nothing is said costs nothing.
func (d *doctor) voice(ctx context.Context) {
	m := d.s.Model
	if m.URL == "" && d.here != nil {
		if here, err := d.here.Here(ctx); err == nil && here.Voice != "" { // by its own flags and variables
			d.ok("voice", "%s, of the Switchboard that runs; these settings name none, so it is not asked", here.Voice)
			return
		}
	}
	if m.URL == "" {
		d.ok("voice", "simulated; set %s for a real one", openAIKey)
		return
	}
	if err := realtime.Probe(ctx,
		realtime.Config{ModelURL: m.URL, Model: m.Name, Aliases: m.Aliases, Key: m.Key.Reveal()}); err != nil {
		d.mendError("voice", err, "")
		return
	}
	d.ok("voice", "%s at %s lets us in; nothing was said, so nothing is billed", m.Name, hostOf(m.URL))
}

// endsSoon is how long before its end a voice model needs to be replaced.
const endsSoon = 90 * 24 * time.Hour

// voiceEnds prints the voice models of the settings that OpenAI is going to end: model.name, and those of the aliases.
func (d *doctor) voiceEnds(now time.Time) {
	m := d.s.Model
	if !m.isOpenAI() {
		return
	}
	named := map[string]string{m.Name: "model.name"}
	for alias, name := range m.Aliases {
		if _, known := named[name]; !known {
			named[name] = fmt.Sprintf("the alias %q in model.aliases", alias)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(named)) {
		known, _ := models.Known(name)
		if known.Ends.IsZero() {
			continue
		}
		day, next := known.Ends.Format(time.DateOnly), fmt.Sprintf("set %s to %s", named[name], known.Next)
		switch {
		case !now.Before(known.Ends):
			d.mend("voice model", fmt.Sprintf("OpenAI ended %s on %s", name, day), next)
		case now.Add(endsSoon).After(known.Ends):
			d.mend("voice model", fmt.Sprintf("OpenAI ends %s on %s", name, day), next)
		default:
			d.ok("voice model", "OpenAI ends %s on %s; until then, %s", name, day, next)
		}
	}
}

// microphone prints where the page can use a microphone: browsers allow it over https, and on this machine.
func (d *doctor) microphone() {
	host, _, _ := net.SplitHostPort(d.s.Listen) // checked with the settings
	switch {
	case d.s.PublicURL != "":
		d.ok("microphone", "the page has one at %s", d.s.PublicURL)
	case d.s.TLS != (tlsSettings{}):
		d.ok("microphone", "the page has one at https://%s", d.s.Listen)
	case servers.Loopback(host):
		d.ok("microphone", "the page has one on this machine; for a phone, set public_url (README, \"On a phone\")")
	default: // a proxy does TLS, at an unknown address
		d.mend("microphone", "the page has none where nobody knows its address",
			"set public_url to the https address of the proxy")
	}
}

// webhook checks that something listens at the host of the webhook. It sends nothing, and prints only the host, because
// the address often is a secret.
func (d *doctor) webhook(ctx context.Context) {
	u, err := url.Parse(d.s.Notify.Webhook.Reveal())
	if err != nil || u.Host == "" {
		return
	}
	port := cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
	if err := reached(ctx, net.JoinHostPort(u.Hostname(), port)); err != nil {
		d.mend("notify", fmt.Sprintf("nobody answers at %s (%v)", u.Host, err),
			"correct notify.webhook, or start what listens there")
		return
	}
	d.ok("notify", "%s answers; nothing was sent", u.Host)
}
