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
)

// protocol is what instances speak inside TLS. HTTP/1.1 alone has connections that become others.
const protocol = "http/1.1"

// An Identity is the certificate of an instance for its life.
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

// Fingerprint is what the others know the instance by: the SHA-256 of its certificate, in hex.
func (i Identity) Fingerprint() string { return fingerprint(i.own.Certificate[0]) }

func fingerprint(certificate []byte) string {
	sum := sha256.Sum256(certificate)
	return hex.EncodeToString(sum[:])
}

// secured are the settings of TLS at one end. Both ends show a certificate; known judges the other end's by its
// fingerprint.
func (i Identity) secured(known func(fingerprint string) error) *tls.Config {
	return &tls.Config{
		Certificates: []tls.Certificate{i.own}, MinVersion: tls.VersionTLS13, NextProtos: []string{protocol},
		ClientAuth: tls.RequireAnyClientCert, SessionTicketsDisabled: true,
		InsecureSkipVerify: true, // a certificate is a fingerprint here, which VerifyConnection compares
		VerifyConnection:   func(state tls.ConnectionState) error { return known(shown(state)) },
	}
}

// shown is the fingerprint of the certificate that the other end has proved to be its own.
func shown(state tls.ConnectionState) string {
	if len(state.PeerCertificates) != 1 {
		return ""
	}
	return fingerprint(state.PeerCertificates[0].Raw)
}

// Listen has the connections of a listener secured. Who comes is known once it asks something: an instance may come
// before its fingerprint has been read here, and is to ask again then.
func (f *Forwarder) Listen(l net.Listener) net.Listener {
	return tls.NewListener(l, f.identity.secured(func(string) error { return nil }))
}

// peerKey is where a request says which instance it is for, to what dials that.
type peerKey struct{}

// A dialFault says that an instance was not reached. Nothing was sent.
type dialFault struct {
	why again
	error
}

// Unwrap returns what the connection failed with.
func (d *dialFault) Unwrap() error { return d.error }

// errFingerprint ends a handshake with what has another certificate.
var errFingerprint = errors.New("what answers there is not that instance")

// dialTLS connects to the instance that a request is for.
func (f *Forwarder) dialTLS(ctx context.Context, network, _ string) (net.Conn, error) {
	to, _ := ctx.Value(peerKey{}).(Peer)
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
		_ = raw.Close() // it was not used
		if errors.Is(err, errFingerprint) {
			return nil, &dialFault{againFingerprint, err}
		}
		return nil, &dialFault{againNoConnection, err}
	}
	f.counts.dials.Add(1)
	return conn, nil
}
