package web

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"regexp"

	"switchboard/handoff"
)

// A Key lets its holder in as a principal, and says what the holder may do. Two keys may stand for one
// principal.
type Key struct {
	Principal string
	Sum       [sha256.Size]byte // SHA-256 of the key's text

	// NamesCallers: its requests name their end user, and each has a scope of their own.
	NamesCallers bool
	Servers      []string            // canonical names of those that may be used; nil: all
	Barred       []string            // canonical names of those that are for others
	Tools        []string            // names of those that may be used; nil: all
	Approve      handoff.Approval    // which yes counts
	Metrics      bool                // may read /metrics
	Instructions handoff.Instructing // which sessions get instructions of ours
	Limits       handoff.Limits      // of each caller
	KeyLimits    handoff.Limits      // of all its callers together
}

// NewKey returns the key with this text. It may use every server and tool, and no yes of it counts; the rest is to be
// set.
func NewKey(principal, text string) Key {
	return Key{Principal: principal, Sum: sha256.Sum256([]byte(text))}
}

// name is what the key is called in limits, logs and the audit.
func (k Key) name() string { return hex.EncodeToString(k.Sum[:6]) }

// callerHeader names the end user of a key that names its callers, as OpenAI's clients do.
const callerHeader = "OpenAI-Safety-Identifier"

// callerName is the form of an end user's name: at most 128 bytes, and nothing that is a mark of ours.
var callerName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._@:+=|-]{0,127}$`)

// grantFor is what the sender of a request with this key may do. An error has code [handoff.CodeMalformed].
func (k Key) grantFor(r *http.Request) (handoff.Grant, error) {
	g := k.grant()
	if !k.NamesCallers {
		return g, nil
	}
	var err error
	if g.Caller.User, err = endUser(r); err != nil {
		return handoff.Grant{}, err
	}
	if g.Caller.User == "" {
		g.Caller = handoff.NamelessCaller(k.Principal, rand.Text())
	}
	return g, nil
}

// grant is what the holder may do.
func (k Key) grant() handoff.Grant {
	return handoff.Grant{
		Caller: handoff.Caller{Principal: k.Principal}, Key: k.name(), Servers: k.Servers, Barred: k.Barred, Tools: k.Tools,
		Approve: k.Approve, Metrics: k.Metrics, Instructions: k.Instructions, Limits: k.Limits, KeyLimits: k.KeyLimits,
	}
}

// loginGrant is what a login may do: no more than what stands behind it. Nobody can tell whether a person or a program
// sent a key to POST /login, so its answers count as taps only where the key itself says that every yes counts. The
// page's calls begin with our instructions, which show nothing that the tools do not.
func (k Key) loginGrant() handoff.Grant {
	g := k.grant()
	g.Page, g.Instructions = k.Approve == handoff.ApproveAll, handoff.InstructAll
	return g
}
