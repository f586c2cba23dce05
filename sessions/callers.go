package sessions

import (
	"context"
	"net/url"
	"strings"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
)

// Callers keeps what is remembered of each caller. It decides nothing: a caller has one writer, who reads the state,
// decides, and commits what changed. Implementations are safe for concurrent use.
type Callers interface {
	// State returns what is kept of a caller, except parts of texts and the past.
	State(ctx context.Context, c handoff.Caller) (ledger.State, error)
	// Commit writes a batch whole or not at all. After an error with code unreachable it is not known whether the batch
	// was written. After another life of the service, or another instance, has taken the caller, the code is shutdown.
	Commit(ctx context.Context, c handoff.Caller, b ledger.Batch) (ledger.Committed, error)
	// Waiting returns the callers of this life with a document whose name begins with the prefix. A life that uses the
	// store alone takes over the callers of the lives before it.
	Waiting(ctx context.Context, prefix string) ([]handoff.Caller, error)
}

// A Pages has the past of callers.
type Pages interface {
	// Past returns the row of a handoff that is over; false if there is none.
	Past(ctx context.Context, c handoff.Caller, key string) (ledger.Past, bool, error)
	// Page returns rows, the newest first, and where the next page begins; "" on the last page.
	Page(ctx context.Context, c handoff.Caller, q PageQuery) (rows []ledger.Past, next string, err error)
	// Texts returns the parts of the texts of handoffs: by key, and then by name.
	Texts(ctx context.Context, c handoff.Caller, keys ...string) (map[string]map[string]string, error)
}

// A PageQuery narrows a page.
type PageQuery struct {
	Before string                // from the page before; "": the newest
	Words  []string              // each is the beginning of a word of the row
	Found  func(row string) bool // reports the same, for a store without an index
	Limit  int
}

// CallerName returns the name of a caller in stores. It is escaped, so that no name reaches the data of another
// caller. A caller without a principal is an error.
func CallerName(c handoff.Caller) (string, error) {
	if c.Principal == "" { // what is kept would be shared by everybody
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
