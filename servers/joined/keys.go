package joined

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base32"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Bounds of an invitation.
const (
	InvitationLife = 10 * time.Minute
	MaxInvitations = 16 // unused ones; one more drops the oldest

	secretBytes      = 10 // 80 bits, which is enough for ten minutes
	fingerprintBytes = 16 // of the SHA-256 of the service's public key
)

// An Invitation lets a machine join, once. By its fingerprint the machine knows the service.
type Invitation struct {
	Secret      [secretBytes]byte
	Fingerprint [fingerprintBytes]byte
}

var codeLetters = base32.StdEncoding.WithPadding(base32.NoPadding)

// String returns the code that is given to the machine: 42 letters and digits.
func (i Invitation) String() string {
	return strings.ToLower(codeLetters.EncodeToString(append(i.Secret[:], i.Fingerprint[:]...)))
}

// ParseInvitation reads a code.
func ParseInvitation(code string) (Invitation, error) {
	var i Invitation
	raw, err := codeLetters.DecodeString(strings.ToUpper(strings.TrimSpace(code)))
	if err != nil || len(raw) != secretBytes+fingerprintBytes {
		return i, errors.New("that is no code of an invitation: copy the whole command that `switchboard invite` printed")
	}
	copy(i.Secret[:], raw)
	copy(i.Fingerprint[:], raw[secretBytes:])
	return i, nil
}

// Fingerprint returns the fingerprint of a public key for an invitation.
func Fingerprint(key ed25519.PublicKey) (print [fingerprintBytes]byte) {
	sum := sha256.Sum256(key)
	copy(print[:], sum[:])
	return print
}

const keyBlock = "PRIVATE KEY"

// LoadKey reads the private key in a file. If the file is missing, it makes a key and the file, with mode 0600.
func LoadKey(path string) (ed25519.PrivateKey, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		key, text, err := NewKey()
		if err != nil {
			return nil, err
		}
		return key, WriteWhole(path, text)
	}
	if err != nil {
		return nil, err
	}
	key, err := ParseKey(text)
	if err != nil {
		return nil, fmt.Errorf("%s holds %w", path, err)
	}
	return key, nil
}

// ParseKey reads a private key as [LoadKey] and [NewKey] write it.
func ParseKey(text []byte) (ed25519.PrivateKey, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New("no key")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	key, ok := parsed.(ed25519.PrivateKey)
	if err != nil || !ok {
		return nil, errors.New("no Ed25519 key")
	}
	return key, nil
}

// NewKey makes a private key, and returns it also as PEM.
func NewKey() (key ed25519.PrivateKey, text []byte, err error) {
	if _, key, err = ed25519.GenerateKey(rand.Reader); err != nil {
		return nil, nil, err
	}
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	return key, pem.EncodeToMemory(&pem.Block{Type: keyBlock, Bytes: raw}), err
}

// WriteWhole writes a file with mode 0600, whole or not at all.
func WriteWhole(path string, text []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*") // 0600
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }() // it fails after the rename
	_, err = f.Write(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// certificate returns a self-signed certificate for a key. Only the key in it counts.
func certificate(key ed25519.PrivateKey) (tls.Certificate, error) {
	now := time.Now()
	form := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: now.Add(-24 * time.Hour), NotAfter: now.AddDate(100, 0, 0),
	}
	raw, err := x509.CreateCertificate(rand.Reader, form, form, key.Public(), key)
	return tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key}, err
}

// protocol is the ALPN protocol of a line.
const protocol = "switchboard-machine/1"

// errStranger is why a machine ends a handshake with a service of another key.
var errStranger = errors.New("what answers there is not the Switchboard that the invitation is from")

// tlsConfig returns the settings of TLS at either end. verify judges the key of the other end.
func tlsConfig(own tls.Certificate, verify func(ed25519.PublicKey) error) *tls.Config {
	return &tls.Config{
		Certificates: []tls.Certificate{own}, MinVersion: tls.VersionTLS13, NextProtos: []string{protocol},
		ClientAuth: tls.RequireAnyClientCert, SessionTicketsDisabled: true,
		InsecureSkipVerify: true, // of a certificate only the key counts: VerifyConnection judges it
		VerifyConnection: func(state tls.ConnectionState) error {
			key, err := peerKey(state)
			if err != nil {
				return err
			}
			return verify(key)
		},
	}
}

// peerKey returns the key that the other end has proved.
func peerKey(state tls.ConnectionState) (ed25519.PublicKey, error) {
	if len(state.PeerCertificates) != 1 || state.NegotiatedProtocol != protocol {
		return nil, errors.New("the other end speaks something else")
	}
	key, ok := state.PeerCertificates[0].PublicKey.(ed25519.PublicKey)
	if !ok {
		return nil, errors.New("the other end has another kind of key")
	}
	return key, nil
}
