package handoff

import (
	"slices"
	"strings"
)

// A Grant is what the key, login or client secret of a request lets its holder do. The edge makes it once
// for each request; everything that it may reach asks it. The zero Grant allows nothing, for it has no caller.
type Grant struct {
	Caller Caller
	// Key names the credential in limits, logs and the audit: the first 12 hex digits of the key's SHA-256.
	// A login has the name of the key that it was made with.
	Key string
	// By names what let its holder in, for whoever makes the grant again: it lets nobody in. "": nobody can.
	By string
	// Servers are the canonical names of servers that may be used; nil: all.
	Servers []string
	// Barred are those of servers that are for others, whatever Servers says.
	Barred []string
	// Tools are the names of tools that may be used; nil: all.
	Tools []string
	// Approve says which yes of its holder counts.
	Approve Approval
	// Instructions says to which sessions Switchboard's own instructions are given.
	Instructions Instructing
	// Metrics: may read what the whole service counts.
	Metrics bool
	// Page: it came by a login of the page whose every yes counts, so that an answer is a tap. Anything else is an API.
	Page bool
	// Secret: it came by a client secret, which begins calls and does nothing else.
	Secret bool
	// Revoked tells why what let the request in does so no more: a key that was removed, a login that was ended. What
	// lasts asks it now and then. An error means that this is certain; nil: nothing is known to be revoked, or can
	// be.
	Revoked func() error
	// Session is what calls begin with, a Realtime session as JSON: what a client secret is bound to; nil: nothing.
	Session []byte
	// Language is the code of the language in which its calls are told and asked, such as "de": what their client
	// chose. "": as configured; one that there is not: English.
	Language  string
	Limits    Limits // of the caller
	KeyLimits Limits // of the key, with all its callers
}

// An Approval says which yes of a grant counts, to what agents ask and in words to them. A no always counts.
type Approval int

// What may be approved, from the least on: each allows what those before it allow.
const (
	ApproveNone  Approval = iota // no yes counts
	ApproveVoice                 // one that is said or typed in a call of its own
	ApproveAll                   // also one by the API; on a page, it is a tap
)

var approvals = []string{"none", "voice", "all"}

// String returns the word for it in settings.
func (a Approval) String() string { return approvals[a] }

// InCall reports whether a yes counts that is said or typed in a call.
func (a Approval) InCall() bool { return a >= ApproveVoice }

// An Instructing says which sessions get instructions of Switchboard's.
type Instructing int

// Whom Switchboard instructs, from the least on: each includes those before it.
const (
	InstructNone  Instructing = iota // no session
	InstructAdded                    // one that brings its own gets a few words after them
	InstructAll                      // one that brings none gets the whole
)

var instructings = []string{"none", "added", "all"}

// String returns the word for it in settings.
func (i Instructing) String() string { return instructings[i] }

// namelessMark begins the User of a caller whom nobody named. No name that somebody gives begins so.
const namelessMark = "~"

// NamelessCaller returns the caller of a request whose key names its callers, but which names none. id makes
// it a scope of its own: nothing is remembered for it beyond its call.
func NamelessCaller(principal, id string) Caller {
	return Caller{Principal: principal, User: namelessMark + id}
}

// Nameless reports whether nobody named the caller.
func (c Caller) Nameless() bool { return strings.HasPrefix(c.User, namelessMark) }

// MayEnd reports whether a call of this grant may be ended by the holder of another: the same caller, or, where
// the caller has no name, whoever has the key and knows the call.
func (g Grant) MayEnd(other Grant) bool {
	if g.Caller.Nameless() && other.Caller.Nameless() {
		return g.Caller.Principal == other.Caller.Principal && g.Key == other.Key
	}
	return g.Caller == other.Caller
}

// MayJoin reports whether the holder of another grant may take part in a call of this one, as what is said there then
// counts as the caller's: it came by the same key, by no client secret where the call did not, and no yes counts in
// the call that does not count for the holder.
func (g Grant) MayJoin(other Grant) bool {
	return g.MayEnd(other) && g.Key == other.Key && (g.Secret || !other.Secret) &&
		(other.Approve.InCall() || !g.Approve.InCall())
}

// Limits bound what one caller, and what one key, may use. Zero is no limit.
type Limits struct {
	Calls             int // calls open at the same time
	MinutesPerDay     int // minutes in calls, in a day of UTC
	HandoffsPerMinute int

	DollarsPerDay  float64 // what the voice model may cost, in a day of UTC
	DollarsPerCall float64 // the same in one call
}

// AllowsServer reports whether a server may be used, by its canonical name.
func (g Grant) AllowsServer(name string) bool {
	return (g.Servers == nil || slices.Contains(g.Servers, name)) && !slices.Contains(g.Barred, name)
}

// AllowsServers reports whether every server may be used, those that are not there yet among them.
func (g Grant) AllowsServers() bool { return g.Servers == nil && len(g.Barred) == 0 }

// AllowsTool reports whether a tool may be used, by its own name.
func (g Grant) AllowsTool(name string) bool {
	return g.Tools == nil || slices.Contains(g.Tools, name)
}
