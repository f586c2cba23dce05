package main

import (
	"context"
	"slices"

	"switchboard/handoff"
	"switchboard/sessions"
	"switchboard/web/notify"
	browsers "switchboard/web/push"
)

// notifiers sends each notice to all of its elements. They reach callers who are in no call.
type notifiers []handoff.Notifier

// Notify implements [handoff.Notifier].
func (all notifiers) Notify(n handoff.Notice) {
	for _, each := range all {
		each.Notify(n)
	}
}

// makeNotices sets up the notices outside of calls: push messages to browsers, and the webhook if the settings have
// one. Their stages have to end after those of the calls, whose outcomes may still need a notice.
func (s *service) makeNotices(ctx context.Context) (err error) {
	p := s.plan
	s.push, err = browsers.Open(ctx, browsers.Config{
		Store: s.store, Dir: p.StateDir, Subject: browsers.Contact(p.PublicURL),
		Log: s.log.Named("push"),
		Grant: func(ctx context.Context, principal, login string) (handoff.Grant, bool, error) {
			all, err := s.store.Logins(ctx, principal)
			i := slices.IndexFunc(all, func(l sessions.Login) bool { return l.ID == login })
			if err != nil || i < 0 {
				return handoff.Grant{}, false, err
			}
			g, valid := s.edge.LoginGrant(all[i])
			return g, valid, nil
		},
	})
	if err != nil {
		return err
	}
	s.notices, s.notifies = notifiers{s.push}, []stage{{"push", s.push.Run}}
	s.counted = append(s.counted, s.push)
	if address := p.Notify.Webhook.Reveal(); address != "" {
		hook, err := notify.New(notify.Config{
			URL: address, Token: p.Notify.Token, Private: p.Notify.AllowPrivate, Log: s.log.Named("notify"),
		})
		if err != nil {
			return err
		}
		s.notices, s.notifies = append(s.notices, hook), append(s.notifies, stage{"notify", hook.Run})
		s.counted = append(s.counted, hook)
	}
	return nil
}
