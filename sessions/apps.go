package sessions

import (
	"cmp"
	"context"
	"crypto/sha256"
	"slices"
	"time"

	"switchboard/handoff"
)

// An App is a program elsewhere that a person has let act for them, by OAuth. It has an access token and one
// credential that it exchanges for the next tokens: first a code, then refresh tokens. Only hashes of its credentials
// are kept.
type App struct {
	ID        string // 12 letters and digits, in lists and in its credentials
	Principal string
	Key       [sha256.Size]byte // the Key of the [Login] that let the app in
	Client    string            // its client_id, an https address
	Name      string            // by which the app presents itself, at most 80 bytes
	Resource  string            // the only resource that accepts its tokens
	Approve   handoff.Approval  // the most that its yes can approve

	Shared [sha256.Size]byte // SHA-256 of the part that all its credentials share
	Next   [sha256.Size]byte // SHA-256 of the credential that is exchanged once for the next tokens
	// Redirect and Challenge are the redirect URI and the PKCE challenge of a code; "" where Next is a refresh token.
	Redirect, Challenge string
	Access              [sha256.Size]byte // SHA-256 of the access token; zero before there is one
	AccessEnds          time.Time

	Made time.Time
	Used time.Time // the last use, written at most once a minute
	Ends time.Time // when the app is forgotten; new tokens move it
}

// MaxApps bounds the apps of a principal; another one is refused.
const MaxApps = 64

// Apps stores apps for the HTTP edge.
type Apps interface {
	appKeeper
	// Apps lists the apps of a principal, the most recently used first.
	Apps(ctx context.Context, principal string) ([]App, error)
	// DropApp forgets an app of a principal, and reports whether there was one with this id.
	DropApp(ctx context.Context, principal, id string) (bool, error)
}

// An appKeeper stores apps until they end.
type appKeeper interface {
	// PutApp stores a new app. It stores nothing and returns false while the principal has [MaxApps].
	PutApp(ctx context.Context, a App) (bool, error)
	// App returns the app with an id; false when there is none.
	App(ctx context.Context, id string) (App, bool, error)
	// ChangeApp replaces the app with the same id if its Next is still from, and reports whether it did. Of several
	// calls at once with the same from and another Next, one succeeds.
	ChangeApp(ctx context.Context, a App, from [sha256.Size]byte) (bool, error)
}

// sortApps sorts apps, the most recently used first.
func sortApps(all []App) {
	slices.SortFunc(all, func(a, b App) int { return cmp.Or(b.Used.Compare(a.Used), cmp.Compare(a.ID, b.ID)) })
}
