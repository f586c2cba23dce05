package sqlite

import (
	"context"
	"crypto/sha256"
	"time"

	"switchboard/handoff"
	"switchboard/sessions"
)

// apps stores the programs that people let act for them.
type apps struct{ *file }

// PutApp implements [sessions.Apps].
func (s apps) PutApp(ctx context.Context, a sessions.App) (bool, error) {
	return s.changed(ctx, "INSERT OR IGNORE INTO apps (id, principal, next, ends, body) SELECT ?, ?, ?, ?, ? "+
		"WHERE (SELECT count(*) FROM apps WHERE principal = ? AND ends > ?) < ?",
		a.ID, a.Principal, a.Next[:], a.Ends.UnixNano(), []byte(handoff.Encode(a)), a.Principal, time.Now().UnixNano(),
		sessions.MaxApps)
}

// ChangeApp implements [sessions.Apps].
func (s apps) ChangeApp(ctx context.Context, a sessions.App, from [sha256.Size]byte) (bool, error) {
	return s.changed(ctx, "UPDATE apps SET next = ?, ends = ?, body = ? WHERE id = ? AND principal = ? AND next = ? "+
		"AND ends > ?", a.Next[:], a.Ends.UnixNano(), []byte(handoff.Encode(a)), a.ID, a.Principal, from[:],
		time.Now().UnixNano())
}

// App implements [sessions.Apps].
func (s apps) App(ctx context.Context, id string) (sessions.App, bool, error) {
	all, err := s.apps(ctx, "id = ?", id)
	if err != nil || len(all) == 0 {
		return sessions.App{}, false, err
	}
	return all[0], true, nil
}

// Apps implements [sessions.Apps].
func (s apps) Apps(ctx context.Context, principal string) ([]sessions.App, error) {
	all, err := s.apps(ctx, "principal = ?", principal)
	sessions.SortApps(all)
	return all, err
}

// apps returns the apps for which a condition with one argument holds and that have not ended.
func (s apps) apps(ctx context.Context, where, arg string) ([]sessions.App, error) {
	all, err := bodiesOf[sessions.App](ctx, s.read, "SELECT body FROM apps WHERE ends > ? AND "+where,
		time.Now().UnixNano(), arg)
	return all, s.fault(err)
}

// DropApp implements [sessions.Apps].
func (s apps) DropApp(ctx context.Context, principal, id string) (bool, error) {
	return s.changed(ctx, "DELETE FROM apps WHERE principal = ? AND id = ?", principal, id)
}
