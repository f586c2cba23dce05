package web

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"regexp"

	"switchboard/handoff"
)

// A Key authorises its holder as a principal, and says what the holder may do. A principal may have several keys.
type Key struct {
	Principal string
	Sum       [sha256.Size]byte // SHA-256 of the key's text

	// NamesCallers says that the key's requests name their end user; each end user is a caller of their own.
	NamesCallers bool
	Servers      []string            // canonical names of the servers that may be used; nil: all
	Barred       []string            // canonical names of servers that are for others
	Tools        []string            // names of the tools that may be used; nil: all
	Approve      handoff.Approval    // which yes counts
	Metrics      bool                // may read /metrics
	Instructions handoff.Instructing // which calls get our instructions
	Limits       handoff.Limits      // of each caller
	KeyLimits    handoff.Limits      // of all callers of the key together
}

// NewKey returns the key with this text. It may use every server and tool, but no yes of it counts; the
// other fields have their zero values, too.
func NewKey(principal, text string) Key {
	return Key{Principal: principal, Sum: sha256.Sum256([]byte(text))}
}

// name returns the name of the key in limits, logs and the audit.
func (k Key) name() string { return hex.EncodeToString(k.Sum[:6]) }

// callerHeader is the header with the end user, for keys that name their callers. OpenAI's clients send it.
const callerHeader = "OpenAI-Safety-Identifier"

// callerName matches the name of an end user: at most 128 bytes, without characters that are separators in our keys.
var callerName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._@:+=|-]{0,127}$`)

// grantFor returns the grant for a request with this key. The error has code [handoff.CodeMalformed].
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

// grant returns the grant of the key's holder.
func (k Key) grant() handoff.Grant {
	return handoff.Grant{
		Caller: handoff.Caller{Principal: k.Principal}, Key: k.name(), Servers: k.Servers, Barred: k.Barred, Tools: k.Tools,
		Approve: k.Approve, Metrics: k.Metrics, Instructions: k.Instructions, Limits: k.Limits, KeyLimits: k.KeyLimits,
	}
}

// loginGrant returns the grant of a login: the rights of the key that it was made with. The key may have been sent to
// POST /login by a program, so answers count as a person's taps only if every yes of the key counts. The page's calls
// always get our instructions, which reveal no more than the tools do.
func (k Key) loginGrant(by origin) handoff.Grant {
	g := k.grant()
	g.Linked = by.linked()
	g.Page, g.Instructions = k.Approve == handoff.ApproveAll, handoff.InstructAll
	return g
}
