package sessions

import (
	"cmp"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"time"

	"switchboard/handoff"
)

// StickyFor is how long a caller's sticky threads are kept after the last change.
const StickyFor = 90 * 24 * time.Hour

// ThreadsFor is how long a thread of an agent of our own is kept after its last turn, unless history is kept longer: as
// long as a sticky or the id of a response may still name it. One that was copied is kept as long as its copies.
const ThreadsFor = StickyFor

// stickyValue is how a sticky thread is kept.
type stickyValue struct {
	Thread string    `json:"thread"`
	Title  string    `json:"title,omitempty"`
	Named  bool      `json:"named,omitempty"`
	Since  time.Time `json:"since"`
}

// EncodeSticky gives a sticky thread as stores keep it; the field names its server and project.
func EncodeSticky(sticky handoff.Sticky) (field, value string, err error) {
	t := sticky.Target
	if t.Server == "" || t.Thread == "" || t.Thread == handoff.NewThread {
		return "", "", handoff.Fault(handoff.CodeInternal, "", "a sticky thread needs a server and a thread id")
	}
	data, err := json.Marshal(stickyValue{Thread: t.Thread, Title: sticky.Title, Named: sticky.Named,
		Since: sticky.Since.UTC()})
	if err != nil {
		return "", "", handoff.Fault(handoff.CodeInternal, "", "encode a sticky thread: "+err.Error())
	}
	return StickyField(t), string(data), nil
}

// StickyField names a target among a caller's: "server" or "server/project", escaped.
func StickyField(t handoff.Target) string {
	if t.Project == "" {
		return url.QueryEscape(t.Server)
	}
	return url.QueryEscape(t.Server) + "/" + url.QueryEscape(t.Project)
}

// DecodeSticky reads what EncodeSticky gave; false when it is none of ours.
func DecodeSticky(field, value string) (handoff.Sticky, bool) {
	var v stickyValue
	if json.Unmarshal([]byte(value), &v) != nil || v.Thread == "" {
		return handoff.Sticky{}, false
	}
	server, project, hasProject := strings.Cut(field, "/")
	target := handoff.Target{Thread: v.Thread}
	var err error
	if target.Server, err = url.QueryUnescape(server); err != nil || target.Server == "" {
		return handoff.Sticky{}, false
	}
	if target.Project, err = url.QueryUnescape(project); err != nil || hasProject && target.Project == "" {
		return handoff.Sticky{}, false
	}
	return handoff.Sticky{Target: target, Title: v.Title, Named: v.Named, Since: v.Since}, true
}

// SortStickies puts the newest first.
func SortStickies(all []handoff.Sticky) {
	slices.SortFunc(all, func(a, b handoff.Sticky) int {
		return cmp.Or(b.Since.Compare(a.Since), cmp.Compare(StickyField(a.Target), StickyField(b.Target)))
	})
}

// CallerName is a caller as stores name it, escaped, so that no name reaches another's entries. A caller
// without a principal is an error.
func CallerName(c handoff.Caller) (string, error) {
	if c.Principal == "" { // nobody's stickies would be everybody's
		return "", handoff.Fault(handoff.CodeInternal, "", "a caller without a principal")
	}
	name := url.QueryEscape(c.Principal)
	if c.User != "" {
		name += "/" + url.QueryEscape(c.User)
	}
	return name, nil
}

// NamedCaller returns the caller of a name of [CallerName]; false when it is none.
func NamedCaller(name string) (c handoff.Caller, ok bool) {
	principal, user, named := strings.Cut(name, "/")
	var err, errUser error
	c.Principal, err = url.QueryUnescape(principal)
	c.User, errUser = url.QueryUnescape(user)
	return c, err == nil && errUser == nil && c.Principal != "" && (c.User != "") == named
}
