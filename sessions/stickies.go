package sessions

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"

	"switchboard/handoff"
)

// stickyFor is how long a caller's sticky threads are kept after the last change.
const stickyFor = 90 * 24 * time.Hour

//go:embed set.lua
var setSource string

var setScript = redis.NewScript(setSource)

// stickyValue is how a sticky thread is kept.
type stickyValue struct {
	Thread string    `json:"thread"`
	Title  string    `json:"title,omitempty"`
	Named  bool      `json:"named,omitempty"`
	Since  time.Time `json:"since"`
}

// List returns the sticky threads of a caller, the newest first.
func (s *Store) List(ctx context.Context, c handoff.Caller) ([]handoff.Sticky, error) {
	key, err := s.stickyKey(c)
	if err != nil {
		return nil, err
	}
	fields, err := s.client.HGetAll(ctx, key).Result()
	if err != nil {
		return nil, s.fault(err)
	}
	all := make([]handoff.Sticky, 0, len(fields))
	for field, value := range fields {
		sticky, ok := parseSticky(field, value)
		if !ok { // one bad entry must not hide the others
			s.counts.badEntries.Add(1)
			s.log.Warn("unreadable sticky thread left out", zap.String("key", key), zap.String("field", field))
			continue
		}
		all = append(all, sticky)
	}
	slices.SortFunc(all, func(a, b handoff.Sticky) int {
		return cmp.Or(b.Since.Compare(a.Since), cmp.Compare(stickyField(a.Target), stickyField(b.Target)))
	})
	return all, nil
}

// Set makes a thread the sticky one of its server and project. Setting it again renews its life.
func (s *Store) Set(ctx context.Context, c handoff.Caller, sticky handoff.Sticky) error {
	key, err := s.stickyKey(c)
	if err != nil {
		return err
	}
	t := sticky.Target
	if t.Server == "" || t.Thread == "" || t.Thread == handoff.NewThread {
		return handoff.Fault(handoff.CodeInternal, "", "a sticky thread needs a server and a thread id")
	}
	value, err := json.Marshal(stickyValue{Thread: t.Thread, Title: sticky.Title, Named: sticky.Named, Since: sticky.Since.UTC()})
	if err != nil {
		return handoff.Fault(handoff.CodeInternal, "", "encode a sticky thread: "+err.Error())
	}
	err = setScript.Run(ctx, s.client, []string{key}, stickyField(t), value, stickyFor.Milliseconds()).Err()
	return s.fault(err)
}

// Clear forgets the sticky thread of exactly this server and project; the target's thread does not
// matter. Clearing what is not there is fine.
func (s *Store) Clear(ctx context.Context, c handoff.Caller, t handoff.Target) error {
	key, err := s.stickyKey(c)
	if err != nil {
		return err
	}
	return s.fault(s.client.HDel(ctx, key, stickyField(t)).Err())
}

// stickyKey names the hash of a caller.
func (s *Store) stickyKey(c handoff.Caller) (string, error) {
	name, err := callerName(c)
	if err != nil {
		return "", err
	}
	return s.prefix + ":{" + name + "}:sticky", nil
}

// callerName is a caller as keys name it, escaped, so that no name reaches another's key.
func callerName(c handoff.Caller) (string, error) {
	if c.Principal == "" { // nobody's stickies would be everybody's
		return "", handoff.Fault(handoff.CodeInternal, "", "a caller without a principal")
	}
	name := url.QueryEscape(c.Principal)
	if c.User != "" {
		name += "/" + url.QueryEscape(c.User)
	}
	return name, nil
}

// stickyField names a target in the hash of a caller: "server" or "server/project", escaped.
func stickyField(t handoff.Target) string {
	if t.Project == "" {
		return url.QueryEscape(t.Server)
	}
	return url.QueryEscape(t.Server) + "/" + url.QueryEscape(t.Project)
}

// parseSticky reads one entry of the hash; false when it is none of ours.
func parseSticky(field, value string) (handoff.Sticky, bool) {
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
