package sessions

import (
	"net/url"
	"strings"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
)

// ThreadsFor is how long a thread of our own agent is kept after its last turn, unless history is kept longer: as long
// as a sticky or a response id may still name the thread. A thread that was copied is kept as long as its copies.
const ThreadsFor = ledger.StickyFor

// CallerName returns the name of a caller in stores. It is escaped, so that no name reaches the data of another
// caller. A caller without a principal is an error.
func CallerName(c handoff.Caller) (string, error) {
	if c.Principal == "" { // its stickies would be shared by everybody
		return "", handoff.Fault(handoff.CodeInternal, "", "a caller without a principal")
	}
	name := url.QueryEscape(c.Principal)
	if c.User != "" {
		name += "/" + url.QueryEscape(c.User)
	}
	return name, nil
}

// NamedCaller is the reverse of [CallerName]; false when the name is malformed.
func NamedCaller(name string) (c handoff.Caller, ok bool) {
	principal, user, named := strings.Cut(name, "/")
	var err, errUser error
	c.Principal, err = url.QueryUnescape(principal)
	c.User, errUser = url.QueryUnescape(user)
	return c, err == nil && errUser == nil && c.Principal != "" && (c.User != "") == named
}
