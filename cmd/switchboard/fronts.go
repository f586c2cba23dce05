package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/handoff/call"
	"switchboard/handoff/consent"
	"switchboard/handoff/tools"
	"switchboard/handoff/wording"
	"switchboard/realtime"
	"switchboard/realtime/models"
	"switchboard/sessions"
	"switchboard/web"
	"switchboard/web/mcp"
	"switchboard/web/oauth"
	webresponses "switchboard/web/responses"
)

// callHold is how long a call waits for its client to come back.
const callHold = 2 * time.Minute

// makeFronts makes what callers and programs reach: calls, the Responses API, and MCP.
func (s *service) makeFronts(context.Context) (err error) {
	if s.simulated = s.plan.Model.URL == ""; s.simulated {
		if s.plan.Model, err = s.simulators.model(s.plan); err != nil {
			return err
		}
	}
	s.calls, s.broken = s.newCalls(), sessions.NewBrokenCalls(s.store, s.store)
	if s.front, err = s.newFront(); err != nil {
		return err
	}
	s.closers = append(s.closers, s.front.Close)
	if s.api, err = webresponses.New(webresponses.Config{
		Handoffs: s.handoffs, Attending: s.handoffs, Work: s.handoffs, Requests: s.handoffs, Questions: s.handoffs,
		Directory: s.fleet, Store: s.store, Log: s.log.Named("responses"),
	}); err != nil {
		return err
	}
	runs := s.handoffs
	s.mcp = mcp.New(mcp.Config{
		Backend: tools.Backend{
			Directory: s.fleet, Resolver: s.fleet, Namer: s.fleet, Trees: s.fleet,
			Work: runs, Questions: runs, Giver: runs, Handoffs: runs, Decisions: runs,
		},
		Work: runs, Version: thisBuild().String(), Page: s.page, Trace: s.trace, Instance: s.peers.self.ID,
		Log: s.log.Named("mcp"),
	})
	s.counted = append(s.counted, s.calls, s.front, s.api, s.mcp)
	return nil
}

// newFront returns the voice front: it takes calls and connects to the voice model.
func (s *service) newFront() (*realtime.Front, error) {
	p := s.plan
	language := wording.Language(p.Speech.Language)
	var ticks func(string, []byte)
	if p.Debug.Ticks {
		ticks = s.keepTicks(filepath.Join(p.StateDir, "ticks"))
	}
	var carried realtime.Carried
	if !p.Peers.set() { // with peers, the documents are those of all instances
		carried = sessions.CarriedCalls{Documents: s.store}
	}
	c := realtime.Config{
		Carried:  carried,
		Again:    s.grantAgain,
		Ticks:    ticks,
		ModelURL: p.Model.URL, Model: p.Model.Name, Aliases: p.Model.Aliases, Key: p.Model.Key.Reveal(),
		Router: s.tracedCalls(s.calls), Tools: tools.In(language), Partings: partings(language),
		Backchannel: consent.Backchannel, Echo: consent.Echoes,
		Spending: s.store, Tariff: p.Model.tariff(), Billed: s.billed,
		Media: p.media(), Direct: p.Model.direct(), Hold: callHold, Broken: s.broken, Effort: p.Model.Reasoning.Effort,
		Instance: s.peers.self.ID, Log: s.log.Named("realtime"),
	}
	if all, shared := s.peers.calls(s.store); shared {
		c.OpenCalls, c.Attached = openCalls{all}, all
	}
	return realtime.NewFront(c)
}

// newOAuth returns the part with which programs ask for access; nil unless the settings allow it.
func (s *service) newOAuth() web.OAuth {
	if !s.plan.MCP.OAuth {
		return nil
	}
	programs := oauth.New(oauth.Config{
		Issuer: strings.TrimSuffix(s.address, "/"), Apps: s.store, Audit: s.audit, Transport: s.plan.Documents,
		Log: s.log.Named("oauth"),
	})
	s.counted = append(s.counted, programs)
	return programs
}

// partings returns the sentences before the end of a call, in the language that its client chose, or else in that of
// the settings.
func partings(configured wording.Language) func(string) realtime.Partings {
	return func(chosen string) realtime.Partings {
		l := cmp.Or(wording.Language(chosen), configured)
		return realtime.Partings{Money: l.MoneyUsedUp(), Minute: l.LastMinute()}
	}
}

// newCalls returns what serves voice calls, with the fleet and the router.
func (s *service) newCalls() *call.Calls {
	p, fleet, runs := s.plan, s.fleet, s.handoffs
	return call.New(call.Config{
		Handoffs: runs, Attending: runs, Questions: runs, Shown: runs.Shown,
		Levels: sessions.Levels{Documents: s.store},
		Tools: tools.Backend{
			Directory: fleet, Resolver: fleet, Namer: fleet, Trees: fleet, Work: runs, Questions: runs,
		},
		Updates: handoff.SpeechLevel(p.Speech.Updates), Language: wording.Language(p.Speech.Language),
		AskAgain: time.Duration(p.Approvals.AskAgain), Log: s.log.Named("call"),
	})
}

// billed adds the cost of a call to its caller's history. A caller without a name has no history.
func (s *service) billed(ctx context.Context, b realtime.Bill) error {
	if b.Caller.Nameless() {
		return nil
	}
	return s.store.AddSaid(ctx, b.Caller, []sessions.Said{{
		ID: "call " + b.Call, At: b.Began.Add(b.Took), Who: sessions.WhoCall, Text: callWords(b),
	}})
}

// callWords describes an ended call: "A call of 12 minutes, about $1.48".
func callWords(b realtime.Bill) string {
	cost := fmt.Sprintf("about %s", b.Cost)
	switch {
	case b.Priced && b.Cost == 0:
		cost = "at no cost"
	case !b.Priced:
		cost = fmt.Sprintf("%d tokens", b.Tokens.Sum())
	case b.Cost < models.Dollar/200:
		cost = b.Cost.String()
	}
	return fmt.Sprintf("A call of %s, %s", wording.English.AgeWords(b.Took), cost)
}

// keepTicks returns a function that writes the tick log of an ended call to a file named after the call. A failure is
// only logged: tick logs are for people.
func (s *service) keepTicks(dir string) func(call string, log []byte) {
	return func(call string, log []byte) {
		err := os.MkdirAll(dir, 0o700)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, call+".ticks"), log, 0o600)
		}
		if err != nil {
			s.log.Warn("tick log not kept", zap.String("call", call), zap.Error(err))
		}
	}
}
