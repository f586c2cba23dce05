package web

import (
	"iter"
	"net/http"
	"slices"

	"switchboard/handoff"
)

// metrics serves the metrics. They cover all callers, so a key needs the right to read them.
func (s *Server) metrics(w http.ResponseWriter, r *http.Request, g handoff.Grant) error {
	switch {
	case !g.Metrics:
		return handoff.Fault(handoff.CodeNotGranted, "it has no metrics: true", "")
	case s.scrape == nil:
		return handoff.Fault(handoff.CodeNotFound, "metrics", "")
	}
	w.Header().Set("Cache-Control", "no-store")
	s.scrape.ServeHTTP(w, r)
	return nil
}

// Metrics yields the metrics of the edge.
func (s *Server) Metrics() iter.Seq[handoff.Metric] {
	s.streams.mu.Lock()
	open, refused := 0, s.streams.refused
	for of, n := range s.streams.open {
		if of.caller == (handoff.Caller{}) {
			open += n
		}
	}
	s.streams.mu.Unlock()
	return handoff.JoinMetrics(
		s.refused.Metrics("switchboard_http_refused_total", "Requests that were refused, by code: invalid_api_key are wrong keys and logins, overloaded are limits.", "code"),
		slices.Values([]handoff.Metric{
			handoff.NewMetric("switchboard_client_secrets_made_total", "Client secrets that were made.", s.secrets.made.Load()),
			handoff.NewMetric("switchboard_client_secrets_refused_total", "Client secrets that were refused because their principal had too many.", s.secrets.refused.Load()),
			handoff.NewMetric("switchboard_http_body_bytes", "Memory for the bodies of requests, twice their size, without those of up to 64 KiB.", s.bodies.held.Load()),
			handoff.NewMetric("switchboard_http_bodies_refused_total", "Requests that were refused because too much of other requests was in memory.", s.bodies.refused.Load()),
			handoff.NewMetric("switchboard_event_streams_open", "Event streams of pages that are open.", open),
			handoff.NewMetric("switchboard_event_streams_refused_total", "Event streams that were refused because their caller or key had too many.", refused),
		}),
	)
}

// Metrics yields the metrics of the listener.
func (l *Listener) Metrics() iter.Seq[handoff.Metric] {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Values([]handoff.Metric{
		handoff.NewMetric("switchboard_connections_open", "Connections that are open.", l.open),
		handoff.NewMetric("switchboard_connections_most", "Connections that may be open: a quarter of the files that this process may have open.", l.most),
		handoff.NewMetric("switchboard_connections_evicted_total", "Connections that were closed to make room for new ones, those without a key first.", l.evicted),
		handoff.NewMetric("switchboard_connections_refused_total", "Connections that were refused because too many were open.", l.refused),
	})
}
