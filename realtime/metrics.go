package realtime

import (
	"iter"
	"slices"
	"sync"

	"switchboard/handoff"
)

// Kinds of client legs, as the metrics name them.
const (
	overSocket = "websocket"
	overWebRTC = "webrtc"

	overSideband = "sideband" // the provider carries the caller
)

// frontCounts are the counters of all calls of a front. It is safe for concurrent use.
type frontCounts struct {
	ends *handoff.Tally[handoff.Code] // Set once; safe by itself: why calls ended that nobody hung up

	mu     sync.Mutex
	open   map[string]int    // Guarded by mu: calls, by kind of leg
	began  map[string]uint64 // Guarded by mu: calls that ever began, by kind of leg
	ended  counts            // Guarded by mu: of calls that ended
	dials  uint64            // Guarded by mu: tries to connect to the model
	failed uint64            // Guarded by mu: dials that failed

	// Guarded by mu: of sockets beside a call's own client
	beside struct{ open, began, slow int }
}

func newFrontCounts() *frontCounts {
	return &frontCounts{
		ends: handoff.NewTally(handoff.CodeSlowClient, handoff.CodeTooLarge, handoff.CodeVoiceGone,
			handoff.CodeVoiceKey, handoff.CodeVoiceModel, handoff.CodeVoiceLimit, handoff.CodeOverloaded,
			handoff.CodeSoundFormat, handoff.CodeLimited, handoff.CodeShutdown, handoff.CodeInternal),
		open: map[string]int{}, began: map[string]uint64{},
	}
}

func (n *frontCounts) begin(kind string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.open[kind]++
	n.began[kind]++
}

// end uncounts a call that has ended, and adds its counters.
func (n *frontCounts) end(kind string, c counts, cause *handoff.Error) {
	if cause != nil {
		n.ends.Add(cause.Code)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.open[kind]--
	n.ended.add(c)
}

func (n *frontCounts) beginBeside() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.beside.open++
	n.beside.began++
}

// endBeside uncounts a socket that has ended or is about to.
func (n *frontCounts) endBeside(s *socket) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.beside.open--
	if s.Behind() {
		n.beside.slow++
	}
}

func (n *frontCounts) dialled(reached bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.dials++
	if !reached {
		n.failed++
	}
}

// Metrics yields the metrics of the calls, the model's connections and the media engine.
func (f *Front) Metrics() iter.Seq[handoff.Metric] {
	n := f.counts
	return handoff.JoinMetrics(n.metrics(), n.ends.Metrics("switchboard_calls_ended_early_total",
		"Calls that ended although nobody hung up, by reason.", "code"), f.quota.used.metrics(), f.media.Metrics())
}

func (n *frontCounts) metrics() iter.Seq[handoff.Metric] {
	n.mu.Lock()
	defer n.mu.Unlock()
	var all []handoff.Metric
	for _, kind := range []string{overSocket, overWebRTC, overSideband} {
		all = append(all,
			handoff.NewMetric("switchboard_calls_open", "Calls that are open.", n.open[kind], "leg", kind),
			handoff.NewMetric("switchboard_calls_total", "Calls that began. Each connection of a sideband counts as one.",
				n.began[kind], "leg", kind))
	}
	ended := func(name, help string, n int) {
		all = append(all, handoff.NewMetric("switchboard_"+name, help+" Of calls that ended.", n))
	}
	ended("call_requests_total", "Function calls of the model for a tool of ours.", n.ended.requests)
	ended("call_speech_asked_total", "Times that the model was asked to speak for us.", n.ended.asks)
	ended("call_events_swallowed_total", "Events of the model about what is ours, which the client does not see.",
		n.ended.swallowed)
	ended("call_hints_dropped_total", "Beginnings of requests that the router had no room for.", n.ended.hints)
	ended("call_words_dropped_total", "What a caller said that the router had no room for.", n.ended.unheard)
	ended("call_utterances_unsure_total", "Utterances given to a client that showed no sign of hearing them.",
		n.ended.unsure)
	ended("call_answers_late_total", "Answers to requests that were not open any more.", n.ended.unanswerable)
	ended("call_outputs_refused_total", "Outputs of a client for a function call of ours, which are dropped.",
		n.ended.leaked)
	ended("call_events_refused_total", "Events of a client that were refused because too much waited.", n.ended.refused)
	ended("call_holds_total", "Times that a client vanished and its call waited for it.", n.ended.holds)
	ended("call_rejoins_total", "Times that such a client came back.", n.ended.rejoins)
	ended("call_renewals_total", "Times that another session took the place of the voice model's.", n.ended.renewals)
	ended("model_events_made_total", "Events that the voice model owed its client and that were made in its place.",
		n.ended.made)
	ended("model_events_unreadable_total", "Events of the voice model that could not be read.", n.ended.unreadable)
	all = append(all,
		handoff.NewMetric("switchboard_call_sockets_open", "Sockets beside a call's own client.", n.beside.open),
		handoff.NewMetric("switchboard_call_sockets_total", "Sockets that joined a call beside its own client.",
			n.beside.began),
		handoff.NewMetric("switchboard_call_sockets_slow_total",
			"Of those, sockets that did not keep up and were let go.", n.beside.slow),
		handoff.NewMetric("switchboard_model_dials_total", "Connections to the voice model that were tried.", n.dials),
		handoff.NewMetric("switchboard_model_dials_failed_total", "Connections to the voice model that were not had.",
			n.failed))
	return slices.Values(all)
}
