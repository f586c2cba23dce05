package rtc

import (
	"iter"
	"slices"
	"sync"

	"switchboard/handoff"
)

// mediaCounts are the counters of all WebRTC legs that have ended. It is safe for concurrent use.
type mediaCounts struct {
	mu  sync.Mutex
	sum legCounts // Guarded by mu
}

// legCounts are the counters of one leg.
type legCounts struct {
	received, late, lost   int // packets of the client
	played, unsent         int // packets to the client
	shortened, undelivered int // events to the client
	droppedBytes           int // of the model's sound, as the queue was full
}

func (n *mediaCounts) add(c legCounts) {
	n.mu.Lock()
	defer n.mu.Unlock()
	s := &n.sum
	s.received += c.received
	s.late += c.late
	s.lost += c.lost
	s.played += c.played
	s.unsent += c.unsent
	s.shortened += c.shortened
	s.undelivered += c.undelivered
	s.droppedBytes += c.droppedBytes
}

// Metrics yields the counters of the legs that have ended.
func (m *Engine) Metrics() iter.Seq[handoff.Metric] {
	m.counts.mu.Lock()
	n := m.counts.sum
	m.counts.mu.Unlock()
	count := func(name, help string, n int) handoff.Metric {
		return handoff.NewMetric("switchboard_webrtc_"+name, help+" Of calls that ended.", n)
	}
	return slices.Values([]handoff.Metric{
		count("packets_received_total", "Packets of sound from browsers.", n.received),
		count("packets_late_total", "Packets that came twice, or after others stood for them.", n.late),
		count("packets_lost_total", "Packets that did not come in time, so that fading sound stood for them.", n.lost),
		count("packets_sent_total", "Packets of sound to browsers.", n.played),
		count("packets_unsent_total", "Packets of sound to browsers that could not be sent.", n.unsent),
		count("events_shortened_total", "Events that were cut to fit the browser's largest message.", n.shortened),
		count("events_undelivered_total", "Events that a data channel did not take.", n.undelivered),
		count("sound_dropped_bytes_total", "Sound of the voice model that found the queue to the browser full.",
			n.droppedBytes),
	})
}
