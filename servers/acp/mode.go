package acp

import (
	"context"
	"errors"
	"slices"

	"switchboard/handoff"
	"switchboard/servers/jsonrpc"
)

// check finds out whether the agent lets a session have its mode. If nobody has tried yet, it makes a session.
func (c *connection) check(ctx context.Context) error {
	if unfit := c.unfit.Load(); unfit != nil {
		return unfit
	}
	if c.fit.Load() {
		return nil
	}
	at, err := c.Create(ctx, "")
	if err != nil {
		return err
	}
	return at.Agent.Close()
}

// setMode sets the configured mode of a session, and returns nil only if the agent has confirmed it. All sessions of an
// agent have the same modes.
func (c *connection) setMode(ctx context.Context, s *session) error {
	err := c.trySetMode(ctx, s)
	if fault, refused := errors.AsType[*handoff.Error](err); refused && fault.Code == handoff.CodeRefused {
		c.unfit.Store(fault)
	} else if err == nil {
		c.fit.Store(true)
		c.unfit.Store(nil)
	}
	return err
}

func (c *connection) trySetMode(ctx context.Context, s *session) error {
	s.mu.Lock()
	available, current, option := s.modes, s.mode, s.modeOption
	s.mu.Unlock()
	want, err := c.cfg.chooseMode(available)
	if err != nil || want == "" || want == current {
		return err
	}
	if option == "" {
		err = c.peer.Call(ctx, doSetMode, map[string]string{"sessionId": s.id, "modeId": want}, nil)
		current = want
	} else {
		var o openResult
		err = c.peer.Call(ctx, doSetOption, map[string]string{"sessionId": s.id, "configId": option, "value": want}, &o)
		i := slices.IndexFunc(o.Options, func(o configOption) bool { return o.ID == option })
		if current = ""; i >= 0 {
			current = o.Options[i].current()
		}
	}
	if e, refused := errors.AsType[*jsonrpc.Error](err); refused && !isBusy(e) || err == nil && current != want {
		why := "it did not confirm"
		if refused {
			why = e.Message
		}
		return handoff.Fault(handoff.CodeRefused, c.cfg.Name,
			handoff.ClipRunes("the mode "+want+" cannot be set: "+why, maxDetail))
	}
	if err == nil {
		s.mu.Lock()
		s.mode = want
		s.mu.Unlock()
	}
	return err
}
