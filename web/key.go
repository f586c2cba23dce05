package web

import (
	"crypto/sha256"
	"encoding/hex"

	"switchboard/handoff"
)

// A Key lets its holder in as a principal, and says what the holder may do. Two keys may stand for one
// principal.
type Key struct {
	Principal string
	Sum       [sha256.Size]byte // SHA-256 of the key's text

	// NamesCallers: its requests name their end user, and each has a scope of their own.
	NamesCallers bool
	Servers      []string       // canonical names of those that may be used; nil: all
	Tools        []string       // names of those that may be used; nil: all
	Approve      bool           // may answer what agents ask
	Instructions bool           // ours are given to a session that brings none
	Limits       handoff.Limits // of each caller
	KeyLimits    handoff.Limits // of all its callers together
}

// NewKey returns the key with this text. It may use every server and tool; the rest is to be set.
func NewKey(principal, text string) Key {
	return Key{Principal: principal, Sum: sha256.Sum256([]byte(text))}
}

// name is what the key is called in limits, logs and the audit.
func (k Key) name() string { return hex.EncodeToString(k.Sum[:6]) }

// grant is what the holder may do. page: it came by the page's login, at which somebody sits, so that it
// may answer what agents ask and gets our instructions.
func (k Key) grant(page bool) handoff.Grant {
	return handoff.Grant{
		Caller: handoff.Caller{Principal: k.Principal}, Key: k.name(), Servers: k.Servers, Tools: k.Tools,
		Approve: k.Approve, Instructions: k.Instructions || page, Page: page, Limits: k.Limits, KeyLimits: k.KeyLimits,
	}
}
