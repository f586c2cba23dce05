package notify

import (
	"iter"
	"slices"

	"switchboard/handoff"
)

// Metrics yields the metrics of the webhook.
func (h *Webhook) Metrics() iter.Seq[handoff.Metric] {
	h.mu.Lock()
	waiting := len(h.waiting)
	h.mu.Unlock()
	const name, help = "switchboard_notices_total", "Notices to the webhook, by result; dropped: never tried, because too many waited or the process ended."
	return slices.Values([]handoff.Metric{
		handoff.NewMetric("switchboard_notices_waiting", "Notices that wait for the webhook.", waiting),
		handoff.NewMetric(name, help, h.sent.Load(), "result", "sent"),
		handoff.NewMetric(name, help, h.failed.Load(), "result", "failed"),
		handoff.NewMetric(name, help, h.dropped.Load(), "result", "dropped"),
	})
}
