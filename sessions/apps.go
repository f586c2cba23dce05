package sessions

import (
	"cmp"
	"context"
	"crypto/sha256"
	"slices"
	"time"

	"switchboard/handoff"
)

// An App is a program elsewhere that a person lets act for them, by OAuth. Of its credentials only sums are kept: it
// has an access token, and one credential with which it gets the next one, first a code and then refresh tokens.
type App struct {
	ID        string // names it in lists and in its credentials: 12 letters and digits
	Principal string
	Key       [sha256.Size]byte // SHA-256 of the key of the login that let it in; zero: of a link, as in [Login]
	Client    string            // its client_id, an https address
	Name      string            // how it names itself, at most 80 bytes
	Resource  string            // where its tokens count, and nowhere else
	Approve   handoff.Approval  // which yes of it counts, at most

	Shared [sha256.Size]byte // of what all its credentials have in common
	Next   [sha256.Size]byte // of the credential that gives the next tokens, once
	// Redirect and Challenge are what a code is bound to; "": Next is a refresh token.
	Redirect, Challenge string
	Access              [sha256.Size]byte // of its access token; zero: none yet
	AccessEnds          time.Time

	Made time.Time
	Used time.Time // when it was last used; written at most once a minute
	Ends time.Time // unless it gets new tokens before
}

// MaxApps bounds the apps of a principal. No more are let in then.
const MaxApps = 64

// Apps are what the edge asks of a store.
type Apps interface {
	appKeeper
	// Apps lists those of a principal, the one that was used last first.
	Apps(ctx context.Context, principal string) ([]App, error)
	// DropApp forgets an app of a principal; false when there is none with this id.
	DropApp(ctx context.Context, principal, id string) (bool, error)
}

// An appKeeper keeps apps until they end.
type appKeeper interface {
	// PutApp keeps a new app; false, and nothing is kept, while its principal has [MaxApps].
	PutApp(ctx context.Context, a App) (bool, error)
	// App finds an app by its id; false when there is none.
	App(ctx context.Context, id string) (App, bool, error)
	// ChangeApp puts an app in the place of the one with the same id whose Next is from; false when that is not there.
	// Of several at once with the same from and another Next one is kept.
	ChangeApp(ctx context.Context, a App, from [sha256.Size]byte) (bool, error)
}

// SortApps puts the one that was used last first.
func SortApps(all []App) {
	slices.SortFunc(all, func(a, b App) int { return cmp.Or(b.Used.Compare(a.Used), cmp.Compare(a.ID, b.ID)) })
}
