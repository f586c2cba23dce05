package handoff

import (
	"slices"
	"strings"
)

// A Grant is what the key, login or client secret of a request lets its holder do. The edge makes one for each request,
// and all other packages check it. The zero Grant allows nothing, since it has no caller.
type Grant struct {
	Caller Caller
	// Key names the credential in limits, logs and the audit: the first 12 hex digits of the key's SHA-256.
	// A login has the name of the key that it was made with.
	Key string
	// By identifies the credential, so that the same grant can be made again later. It is no credential itself. "": the
	// grant cannot be made again.
	By string
	// Servers are the canonical names of servers that may be used; nil: all.
	Servers []string
	// Barred are the names of servers that are reserved for others, even if Servers allows them.
	Barred []string
	// Tools are the names of tools that may be used; nil: all.
	Tools []string
	// Approve says which yes of its holder counts.
	Approve Approval
	// Instructions says which sessions get Switchboard's own instructions.
	Instructions Instructing
	// Metrics allows reading the metrics of the whole service.
	Metrics bool
	// Page means a login of the page with ApproveAll, whose answers count as taps. Without it, the grant is an API's.
	Page bool
	// Terminal means a person at a terminal of the user who runs the service, who typed the [RecordQuestion.SecondAct]
	// of the question that the request answers.
	Terminal bool
	// Linked means a login by a link of whoever runs the service: a person's, whatever the key of the principal may do.
	Linked bool
	// Secret means a client secret, which allows starting calls and nothing else.
	Secret bool
	// Revoked returns an error if the credential is certainly not valid any more, because a key was removed or a login
	// was ended, say. Long-lived requests call it now and then. A nil func: the credential cannot be revoked.
	Revoked func() error
	// Session is the Realtime session, as JSON, with which calls begin, if a client secret is bound to one; nil: none.
	Session []byte
	// Language is the code of the language of speech in its calls, such as "de", as their client chose. "": as
	// configured; unknown codes: English.
	Language  string
	Limits    Limits // of the caller
	KeyLimits Limits // of the key, with all its callers
}

// An Approval says which yes of a grant counts: of approvals, and of answers in words. A no needs none.
type Approval int

// The approvals, in ascending order: each includes those before it.
const (
	ApproveNone  Approval = iota // no yes counts
	ApproveVoice                 // a yes counts that is said or typed in a call of the grant
	ApproveAll                   // also a yes by the API; on a page, it is a tap
)

var approvals = []string{"none", "voice", "all"}

// String returns the word for it in settings.
func (a Approval) String() string { return approvals[a] }

// InCall reports whether a yes counts that is said or typed in a call.
func (a Approval) InCall() bool { return a >= ApproveVoice }

// An Instructing says which sessions get instructions of Switchboard's.
type Instructing int

// The values of Instructing, in ascending order: each includes those before it.
const (
	InstructNone  Instructing = iota // no session
	InstructAdded                    // sessions with their own instructions get a few words after them
	InstructAll                      // sessions without instructions get all of ours
)

var instructings = []string{"none", "added", "all"}

// String returns the word for it in settings.
func (i Instructing) String() string { return instructings[i] }

// namelessMark begins the User of a nameless caller. No real name begins with it.
const namelessMark = "~"

// NamelessCaller returns the caller of a request that names none, although its key names callers. id makes the caller
// unique: nothing of them is remembered beyond their call.
func NamelessCaller(principal, id string) Caller {
	return Caller{Principal: principal, User: namelessMark + id}
}

// Nameless reports whether the caller was made by [NamelessCaller].
func (c Caller) Nameless() bool { return strings.HasPrefix(c.User, namelessMark) }

// MayEnd reports whether the holder of another grant may end a call of this one. Both must be of one caller; a key that
// is limited to some tools ends the calls that were begun with it. If both callers are nameless, the same key is
// enough: its holder has to know the id of the call.
func (g Grant) MayEnd(other Grant) bool {
	if g.Caller.Nameless() && other.Caller.Nameless() {
		return g.Caller.Principal == other.Caller.Principal && g.Key == other.Key
	}
	return g.Caller == other.Caller && (g.Key == other.Key || other.whole())
}

// MayJoin reports whether the holder of another grant may take part in a call of this one. The words of the holder then
// count as the caller's. So the other grant must have the same key, must not be a client secret unless this one is, and
// must allow a yes in calls if this one does.
func (g Grant) MayJoin(other Grant) bool {
	return g.MayEnd(other) && g.Key == other.Key && (g.Secret || !other.Secret) &&
		(other.Approve.InCall() || !g.Approve.InCall())
}

// Limits bound what one caller, and what one key, may use. Zero is no limit.
type Limits struct {
	Calls             int     `yaml:"calls"`           // calls open at the same time
	MinutesPerDay     int     `yaml:"minutes_per_day"` // minutes in calls, in a day of UTC
	HandoffsPerMinute int     `yaml:"handoffs_per_minute"`
	DollarsPerDay     float64 `yaml:"dollars_per_day"`  // what the voice model may cost, in a day of UTC
	DollarsPerCall    float64 `yaml:"dollars_per_call"` // the same in one call
}

// AllowsServer reports whether a server may be used, by its canonical name.
func (g Grant) AllowsServer(name string) bool {
	return (g.Servers == nil || slices.Contains(g.Servers, name)) && !slices.Contains(g.Barred, name)
}

// AllowsServers reports whether every server may be used, also those that will be added later.
func (g Grant) AllowsServers() bool { return g.Servers == nil && len(g.Barred) == 0 }

// AllowsTool reports whether a tool may be used, by its own name.
func (g Grant) AllowsTool(name string) bool {
	return g.Tools == nil || slices.Contains(g.Tools, name)
}
