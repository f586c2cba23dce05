package responses

import (
	"iter"
	"slices"

	"switchboard/handoff"
)

// Metrics yields the metrics of the API.
func (a *API) Metrics() iter.Seq[handoff.Metric] {
	held, open := a.live.count()
	return slices.Values([]handoff.Metric{
		handoff.NewMetric("switchboard_api_responses_open", "Responses that are made.", open),
		handoff.NewMetric("switchboard_api_response_logs_open", "Responses whose events are in memory.", held),
		handoff.NewMetric("switchboard_api_responses_made_total", "Responses that were begun.", a.counts.made.Load()),
		handoff.NewMetric("switchboard_api_responses_repeated_total", "Requests that were sent again and got the response that they had begun.", a.counts.repeated.Load()),
		handoff.NewMetric("switchboard_api_responses_slow_total", "Streams that ended because their reader fell behind.",
			a.counts.slow.Load()),
		handoff.NewMetric("switchboard_api_responses_unstored_total", "Responses and conversations that the store did not take.", a.documents.unstored.Load()),
	})
}
