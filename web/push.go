package web

import (
	"context"
	"net/http"

	"switchboard/handoff"
)

// Push sends notices to browsers that subscribed, for callers who are in no call.
type Push interface {
	// Key returns the public key that browsers subscribe with.
	Key() string
	Subscribe(ctx context.Context, c handoff.Caller, login, endpoint, p256dh, auth string, wishes handoff.Wishes) error
	Unsubscribe(ctx context.Context, c handoff.Caller, endpoint string) error
}

// pushes serves the subscriptions of browsers.
type pushes struct {
	push Push  // Set once
	auth *auth // Set once
}

func (p pushes) key(w http.ResponseWriter, _ *http.Request, _ handoff.Grant) error {
	return writeJSON(w, http.StatusOK, map[string]string{"key": p.push.Key()})
}

// subscribe adds the subscription of a browser. It needs a login, and ends with it.
func (p pushes) subscribe(w http.ResponseWriter, r *http.Request, g handoff.Grant) error {
	var body struct { // a browser's PushSubscription
		Endpoint string `json:"endpoint"`
		Keys     struct {
			P256dh string `json:"p256dh"`
			Auth   string `json:"auth"`
		} `json:"keys"`
		handoff.Wishes
	}
	if err := decode(r.Body, &body); err != nil {
		return err
	}
	l, ok, err := p.auth.login(r)
	switch {
	case err != nil:
		return err
	case !ok:
		return handoff.Fault(handoff.CodeNotGranted, "notifications are asked for on the page", "")
	}
	return done(w, p.push.Subscribe(r.Context(), g.Caller, l.ID, body.Endpoint, body.Keys.P256dh, body.Keys.Auth, body.Wishes))
}

func (p pushes) unsubscribe(w http.ResponseWriter, r *http.Request, g handoff.Grant) error {
	var body struct {
		Endpoint string `json:"endpoint"`
	}
	if err := decode(r.Body, &body); err != nil {
		return err
	}
	return done(w, p.push.Unsubscribe(r.Context(), g.Caller, body.Endpoint))
}
