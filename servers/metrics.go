package servers

import (
	"iter"
	"slices"

	"switchboard/handoff"
)

// Metrics yields how the servers are, and what became of connections to them.
func (f *Fleet) Metrics() iter.Seq[handoff.Metric] {
	var all []iter.Seq[handoff.Metric]
	for _, k := range f.connectors {
		up := 0
		if k.now.Load().health == handoff.HealthUp {
			up = 1
		}
		all = append(all, slices.Values([]handoff.Metric{
			handoff.NewMetric("switchboard_server_up", "Whether a server is connected.", up, "server", k.spec.Name),
			handoff.NewMetric("switchboard_server_dials_total", "Attempts to connect to a server.", k.dialed.Load(), "server", k.spec.Name),
			handoff.NewMetric("switchboard_server_dial_failures_total", "Attempts to connect to a server that failed.", k.failed.Load(), "server", k.spec.Name),
			handoff.NewMetric("switchboard_server_connections_lost_total", "Connections to a server that were lost.", k.losses.Load(), "server", k.spec.Name),
		}))
		if k.spec.Metrics != nil {
			all = append(all, k.spec.Metrics)
		}
	}
	return handoff.JoinMetrics(all...)
}
