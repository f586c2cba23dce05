package ledger

import (
	"encoding/json"
	"net/url"
	"strings"
	"time"

	"switchboard/handoff"
)

// StickyFor is how long a caller's sticky threads are kept after the last change.
const StickyFor = 90 * 24 * time.Hour

// StickyDoc begins the name of the document of a current thread; its field follows, see [StickyField].
const StickyDoc = "sticky:"

// stickyValue is the stored form of a sticky thread.
type stickyValue struct {
	Thread string    `json:"thread"`
	Title  string    `json:"title,omitempty"`
	Named  bool      `json:"named,omitempty"`
	Since  time.Time `json:"since"`
	Set    time.Time `json:"set"` // when it was stored
}

// EncodeSticky returns the form of a sticky thread that is stored now; the field names its server and project.
func EncodeSticky(sticky handoff.Sticky, now time.Time) (field, value string, err error) {
	t := sticky.Target
	if t.Server == "" || t.Thread == "" || t.Thread == handoff.NewThread {
		return "", "", handoff.Fault(handoff.CodeInternal, "", "a sticky thread needs a server and a thread id")
	}
	return StickyField(t), handoff.Encode(stickyValue{Thread: t.Thread, Title: sticky.Title, Named: sticky.Named,
		Since: sticky.Since.UTC(), Set: now.UTC()}), nil
}

// StickyField returns the key of a target among a caller's stickies: "server" or "server/project", escaped.
func StickyField(t handoff.Target) string {
	if t.Project == "" {
		return url.QueryEscape(t.Server)
	}
	return url.QueryEscape(t.Server) + "/" + url.QueryEscape(t.Project)
}

// DecodeSticky is the reverse of [EncodeSticky]; false when field or value is malformed.
func DecodeSticky(field, value string) (_ handoff.Sticky, set time.Time, ok bool) {
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
