package redis

import (
	"context"
	"net/url"
	"strings"

	goredis "github.com/redis/go-redis/v9"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
)

// gates keep two instances from starting turns in one thread at the same moment. Of one Redis no replica is waited for:
// it is written that a turn is about to start after the gate was taken, and a replica that has the later write has the
// earlier one too. In a Cluster the two may have different masters.
type gates struct{ *engine }

// TakeGate takes the start gate of a thread unless another holder has it, and returns the gate as it is then. The name
// of a holder has no spaces.
func (s gates) TakeGate(ctx context.Context, thread handoff.Target, holder string) (ledger.Gate, error) {
	_, cluster := s.client.(*goredis.ClusterClient)
	return s.alterGate(ctx, thread, holder, cluster, func(g ledger.Gate) ledger.Gate { return g.Take(holder) })
}

// FreeGate releases the start gate of a thread, and stores which turn began last; "" leaves that as it is.
func (s gates) FreeGate(ctx context.Context, thread handoff.Target, holder string, last handoff.TurnID) error {
	_, err := s.alterGate(ctx, thread, holder, false, func(g ledger.Gate) ledger.Gate { return g.Free(holder, last) })
	return err
}

// alterGate changes the start gate of a thread unless another holder has it, and returns the gate as it is then. A gate
// is stored as its holder or "", a space, and the turn that began last or "".
func (s gates) alterGate(
	ctx context.Context, thread handoff.Target, holder string, promise bool, to func(ledger.Gate) ledger.Gate,
) (g ledger.Gate, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.within)
	defer cancel()
	key := s.key("t:"+url.QueryEscape(thread.Server)+"/"+url.QueryEscape(thread.Thread), "gate")
	err = s.decided(ctx, fence{}, func(c *change) error {
		text, err := s.read(ctx, c, key)
		held, last, _ := strings.Cut(text, " ")
		if g = (ledger.Gate{Holder: held, Last: handoff.TurnID(last)}); held == "" || held == holder {
			g, c.promise = to(g), promise
			c.do("SET", key, g.Holder+" "+string(g.Last), "PX", ledger.GateFor.Milliseconds())
		}
		return err
	})
	return g, err
}
