package peers

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"math/big"
	"net"
	"time"

	"switchboard/handoff"
)

// protocol is the protocol inside TLS: HTTP/1.1, because only there a connection can be upgraded.
const protocol = "http/1.1"

// An Identity is the certificate of an instance.
type Identity struct{ own tls.Certificate }

// NewIdentity makes an identity.
func NewIdentity() (Identity, error) {
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		return Identity{}, err
	}
	now := time.Now()
	form := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: now.AddDate(-1, 0, 0), NotAfter: now.AddDate(100, 0, 0),
	}
	raw, err := x509.CreateCertificate(rand.Reader, form, form, key.Public(), key)
	return Identity{tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key}}, err
}

// Fingerprint returns the SHA-256 of the certificate, in hex. It identifies the instance for the others.
func (i Identity) Fingerprint() string { return fingerprint(i.own.Certificate[0]) }

func fingerprint(certificate []byte) string {
	sum := sha256.Sum256(certificate)
	return hex.EncodeToString(sum[:])
}

// secured returns the TLS configuration of one end. Both ends send a certificate; known checks the fingerprint of the
// other end's.
func (i Identity) secured(known func(fingerprint string) error) *tls.Config {
	return &tls.Config{
		Certificates: []tls.Certificate{i.own}, MinVersion: tls.VersionTLS13, NextProtos: []string{protocol},
		ClientAuth: tls.RequireAnyClientCert, SessionTicketsDisabled: true,
		InsecureSkipVerify: true, // VerifyConnection checks the fingerprint instead
		VerifyConnection:   func(state tls.ConnectionState) error { return known(peerFingerprint(state)) },
	}
}

// peerFingerprint returns the fingerprint of the other end's certificate, whose key TLS has verified.
func peerFingerprint(state tls.ConnectionState) string {
	if len(state.PeerCertificates) != 1 {
		return ""
	}
	return fingerprint(state.PeerCertificates[0].Raw)
}

// Listen returns a listener with TLS. [Forwarder.Handler] checks the fingerprint of the other end at each request, and
// not in the handshake: an instance may connect before its fingerprint is known here, and has to try again then.
func (f *Forwarder) Listen(l net.Listener) net.Listener {
	return tls.NewListener(l, f.identity.secured(func(string) error { return nil }))
}

// peerKey is the context key of the instance to dial.
type peerKey struct{}

// A dialFault says that an instance could not be reached, so that nothing was sent.
type dialFault struct {
	why retryReason
	error
}

// Unwrap returns the error of the connection.
func (d *dialFault) Unwrap() error { return d.error }

// errFingerprint says that the other end has another certificate than the instance.
var errFingerprint = errors.New("what answers there is not that instance")

// dialTLS connects to the instance in the context.
func (f *Forwarder) dialTLS(ctx context.Context, network, _ string) (net.Conn, error) {
	to, _ := ctx.Value(peerKey{}).(handoff.Instance)
	ctx, cancel := context.WithTimeout(ctx, dialWithin)
	defer cancel()
	raw, err := new(net.Dialer).DialContext(ctx, network, to.Address)
	if err != nil {
		return nil, &dialFault{againNoConnection, err}
	}
	conn := tls.Client(raw, f.identity.secured(func(fingerprint string) error {
		if fingerprint != to.Fingerprint {
			return errFingerprint
		}
		return nil
	}))
	if err := conn.HandshakeContext(ctx); err != nil {
		_ = raw.Close()
		if errors.Is(err, errFingerprint) {
			return nil, &dialFault{againFingerprint, err}
		}
		return nil, &dialFault{againNoConnection, err}
	}
	f.counts.dials.Add(1)
	return conn, nil
}
