package servers

import (
	"iter"

	"switchboard/handoff"
)

// Metrics yields how the servers are, and what became of connections to them.
func (f *Fleet) Metrics() iter.Seq[handoff.Metric] {
	return func(yield func(handoff.Metric) bool) {
		for _, k := range f.connectors {
			up := 0
			if k.now.Load().health == handoff.HealthUp {
				up = 1
			}
			for _, m := range []handoff.Metric{
				handoff.NewMetric("switchboard_server_up", "Whether a server is connected.", up, "server", k.spec.Name),
				handoff.NewMetric("switchboard_server_dials_total", "Attempts to connect to a server.", k.dialed.Load(), "server", k.spec.Name),
				handoff.NewMetric("switchboard_server_dial_failures_total", "Attempts to connect to a server that failed.", k.failed.Load(), "server", k.spec.Name),
				handoff.NewMetric("switchboard_server_connections_lost_total", "Connections to a server that were lost.", k.losses.Load(), "server", k.spec.Name),
			} {
				if !yield(m) {
					return
				}
			}
			if k.spec.Metrics == nil {
				continue
			}
			for m := range k.spec.Metrics {
				if !yield(m) {
					return
				}
			}
		}
	}
}
