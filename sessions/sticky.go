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

// ThreadsFor is how long a thread of our own agent is kept after its last turn, unless history is kept longer: as long
// as a sticky or a response id may still name the thread. A thread that was copied is kept as long as its copies.
const ThreadsFor = StickyFor

// stickyValue is the stored form of a sticky thread.
type stickyValue struct {
	Thread string    `json:"thread"`
	Title  string    `json:"title,omitempty"`
	Named  bool      `json:"named,omitempty"`
	Since  time.Time `json:"since"`
	Set    time.Time `json:"set"` // when it was stored
}

// encodeSticky returns the stored form of a sticky thread; the field names its server and project.
func encodeSticky(sticky handoff.Sticky) (field, value string, err error) {
	t := sticky.Target
	if t.Server == "" || t.Thread == "" || t.Thread == handoff.NewThread {
		return "", "", handoff.Fault(handoff.CodeInternal, "", "a sticky thread needs a server and a thread id")
	}
	return stickyField(t), handoff.Encode(stickyValue{Thread: t.Thread, Title: sticky.Title, Named: sticky.Named,
		Since: sticky.Since.UTC(), Set: time.Now().UTC()}), nil
}

// stickyField returns the key of a target among a caller's stickies: "server" or "server/project", escaped.
func stickyField(t handoff.Target) string {
	if t.Project == "" {
		return url.QueryEscape(t.Server)
	}
	return url.QueryEscape(t.Server) + "/" + url.QueryEscape(t.Project)
}

// decodeSticky is the reverse of [encodeSticky]; false when field or value is malformed.
func decodeSticky(field, value string) (_ handoff.Sticky, set time.Time, ok bool) {
	var v stickyValue
	if json.Unmarshal([]byte(value), &v) != nil || v.Thread == "" {
		return handoff.Sticky{}, v.Set, false
	}
	server, project, hasProject := strings.Cut(field, "/")
	target := handoff.Target{Thread: v.Thread}
	var err error
	if target.Server, err = url.QueryUnescape(server); err != nil || target.Server == "" {
		return handoff.Sticky{}, v.Set, false
	}
	if target.Project, err = url.QueryUnescape(project); err != nil || hasProject && target.Project == "" {
		return handoff.Sticky{}, v.Set, false
	}
	return handoff.Sticky{Target: target, Title: v.Title, Named: v.Named, Since: v.Since}, v.Set, true
}

// sortStickies sorts stickies, the newest first.
func sortStickies(all []handoff.Sticky) {
	slices.SortFunc(all, func(a, b handoff.Sticky) int {
		return cmp.Or(b.Since.Compare(a.Since), cmp.Compare(stickyField(a.Target), stickyField(b.Target)))
	})
}

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
