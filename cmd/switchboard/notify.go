package main

import (
	"cmp"
	"context"
	"slices"

	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/handoff/router"
	"switchboard/sessions"
	"switchboard/web/notify"
	browsers "switchboard/web/push"
)

// notifiers are all that reach a caller who is in no call.
type notifiers []handoff.Notifier

// Notify implements [handoff.Notifier].
func (all notifiers) Notify(n handoff.Notice) {
	for _, one := range all {
		one.Notify(n)
	}
}

// notify sets up who is told outside of calls: the browsers that asked for it, and the webhook if there is one. It
// returns their stages: what the calls leave unheard is still told.
func (s *service) notify(ctx context.Context, p plan, routing *router.Config) (*browsers.Sender, []stage, error) {
	sender, err := browsers.Open(ctx, browsers.Config{
		Store: s.store, Dir: p.StateDir, Subject: cmp.Or(p.PublicURL, "https://switchboard.invalid"),
		Log: s.log.Named("push"),
		Alive: func(ctx context.Context, principal, login string) bool {
			all, err := s.store.Logins(ctx, principal)
			if err != nil { // it may stand, and its browser is asked again next time
				s.log.Warn("logins not read", zap.Error(err))
				return true
			}
			return slices.ContainsFunc(all, func(l sessions.Login) bool { return l.ID == login })
		},
	})
	if err != nil {
		return nil, nil, err
	}
	s.count(sender)
	all, stages := notifiers{sender}, []stage{{"push", sender.Run}}
	if address := p.Notify.Webhook.Reveal(); address != "" {
		hook, err := notify.New(notify.Config{URL: address, Token: p.Notify.Token, Log: s.log.Named("notify")})
		if err != nil {
			return nil, nil, err
		}
		s.count(hook)
		all, stages = append(all, hook), append(stages, stage{"notify", hook.Run})
	}
	routing.Notifier = all
	return sender, stages, nil
}
