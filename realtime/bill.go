package realtime

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/realtime/events"
	"switchboard/realtime/models"
)

const (
	// partingID is the id of the last utterance of a call whose money is used up.
	partingID = "money-used-up"
	// partingLimit bounds how long the call waits until that was heard: an earlier response may still sound, and the
	// caller may speak. No other response is allowed meanwhile.
	partingLimit = 10 * time.Second
)

// A Bill is what the voice model's responses used in one call, over all its model sessions.
type Bill struct {
	Call   string
	Caller handoff.Caller
	Began  time.Time
	Took   time.Duration
	Tokens models.Tokens
	Cost   models.Money
	Priced bool // the prices of all are known; else Cost is too low
}

// A bill is the Bill of a call that goes on. It is safe for concurrent use.
type bill struct {
	charged chan struct{} // holds one token while something new is on the bill

	mu   sync.Mutex
	bill Bill // Guarded by mu
}

// charge adds the usage of a response to the bill.
func (p *admission) charge(model, call string, usage []byte) {
	tokens := models.Read(usage)
	if tokens.Sum() == 0 {
		return
	}
	prices, priced := p.quota.tariff.Of(model)
	cost := prices.Cost(tokens)
	p.bill.mu.Lock()
	b := &p.bill.bill
	b.Priced = priced && (b.Priced || b.Tokens.Sum() == 0)
	b.Call, b.Tokens, b.Cost = call, b.Tokens.Add(tokens), b.Cost+cost
	p.bill.mu.Unlock()
	p.quota.used.add(tokens, cost)
	select {
	case p.bill.charged <- struct{}{}:
	default: // a token is there
	}
}

func (b *bill) now() Bill {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.bill
}

// pay writes down what the call has cost so far. spent is why the call may cost no more; nil: it may. A cost that
// cannot be written counts nevertheless, and is written later.
func (p *admission) pay(ctx context.Context) (spent *handoff.Error, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), meterWait)
	defer cancel()
	cost := p.bill.now().Cost
	for _, s := range p.shares {
		if most := s.limits.DollarsPerCall; most > 0 && cost >= models.Dollars(most) {
			spent = handoff.Fault(handoff.CodeLimited, "the money for this call is used up", "")
		}
		most := s.limits.DollarsPerDay
		if most == 0 || p.quota.spending == nil {
			continue
		}
		total, failed := s.money.write(ctx, p.quota.spending, "dollars of "+s.name, p.id, int64(cost))
		if failed != nil {
			err = errors.Join(err, failed)
		} else {
			s.dayTotal = models.Money(total)
		}
		if s.dayTotal+cost-models.Money(s.money.written) >= models.Dollars(most) {
			spent = handoff.Fault(handoff.CodeLimited, "the money of today is used up", "")
		}
	}
	return spent, err
}

// limited reports whether the call has a limit of money.
func (p *admission) limited() bool {
	return slices.ContainsFunc(p.shares, func(s *share) bool {
		return s.limits.DollarsPerCall > 0 || s.limits.DollarsPerDay > 0 && p.quota.spending != nil
	})
}

// storeBill stores the bill of a call that has ended.
func (p *admission) storeBill() {
	b := p.bill.now()
	if p.quota.billed == nil || b.Tokens.Sum() == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), meterWait) // the context of the call has ended
	defer cancel()
	b.Took = time.Since(b.Began)
	if err := p.quota.billed(ctx, b); err != nil {
		p.quota.log.Warn("cost of a call not written down", zap.Error(err))
	}
}

// A parting is the end of a call whose money is used up: the caller is told, and no other response is allowed.
type parting struct {
	why *handoff.Error // nil: the call is not ending
	ask string         // the ask that tells the caller; "": not asked yet
}

// Partings are the sentences said when the money of a call is used up, and when the minutes of the day nearly are.
type Partings struct{ Money, Minute string }

// toSay returns a message with words to be said, and an instruction.
func toSay(words, note string) string {
	return handoff.Encode(struct {
		Say  string `json:"say"`
		Note string `json:"note"`
	}{words, note})
}

// part ends the call after the model has told the caller, in one sentence.
func (c *Call) part(why *handoff.Error, words string) {
	c.do(func() {
		if c.parting.why != nil {
			return
		}
		c.parting.why = why
		c.alarms[alarmParting].at = time.Now().Add(partingLimit)
		c.saying.say(handoff.Utterance{ID: partingID, Floor: handoff.FloorAsk,
			Text: toSay(words, "The money that may be spent on calls is used up, and this call ends. Tell the caller "+
				"so, in these words or fewer, which are your last. Call no tool.")})
	})
}

// buysNoMore cancels a response that begins after the money is used up, except the one that says so.
func (h *hearing) buysNoMore(id string) {
	if h.parting.why == nil || h.parting.ask != "" && h.saying.floor.AskOf(id) == h.parting.ask {
		return
	}
	h.mute(id)
	h.legs.toModel(events.Cancel(h.ids.Next(), id))
}

// used is what all calls used since the process began. It is safe for concurrent use.
type used struct {
	mu     sync.Mutex
	tokens models.Tokens // Guarded by mu
	cost   models.Money  // Guarded by mu
}

func (u *used) add(tokens models.Tokens, cost models.Money) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.tokens, u.cost = u.tokens.Add(tokens), u.cost+cost
}

func (u *used) metrics() iter.Seq[handoff.Metric] {
	u.mu.Lock()
	defer u.mu.Unlock()
	t := u.tokens
	all := []handoff.Metric{{Name: "switchboard_voice_cost_dollars_total",
		Help: "What the responses of the voice model cost, as far as its prices are known.", Value: u.cost.Dollars()}}
	for _, k := range []struct {
		kind string
		n    int64
	}{
		{"text_in", t.TextIn}, {"text_cached", t.TextCached}, {"text_out", t.TextOut},
		{"audio_in", t.AudioIn}, {"audio_cached", t.AudioCached}, {"audio_out", t.AudioOut},
		{"image_in", t.ImageIn}, {"image_cached", t.ImageCached},
	} {
		all = append(all, handoff.NewMetric("switchboard_voice_tokens_total",
			"Tokens of the voice model's responses, by kind.", k.n, "kind", k.kind))
	}
	return slices.Values(all)
}
