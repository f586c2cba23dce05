package handoff

import (
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// A Metric is a number or a distribution of times for operators. Packages yield their metrics from a method Metrics()
// iter.Seq[Metric], which waits for nothing but a lock. Only the edge knows the format on the wire.
//
// Names follow Prometheus: "switchboard_", the thing, its unit, and "_total" for counters. All metrics of one name have
// the same Help.
type Metric struct {
	Name   string
	Help   string // what is counted, as a sentence
	Labels []MetricLabel
	Value  float64        // if Times is nil
	Times  *TimesSnapshot // a distribution of times; nil: the metric is a number
}

// A MetricLabel distinguishes metrics of one name. Its values are few, and known from the code or the configuration:
// never a caller, a thread or a text.
type MetricLabel struct{ Name, Value string }

// NewMetric makes a metric with labels given as name, value, name, value.
func NewMetric[N int | int64 | uint64](name, help string, value N, labels ...string) Metric {
	return Metric{Name: name, Help: help, Labels: labelsOf(labels), Value: float64(value)}
}

func labelsOf(pairs []string) []MetricLabel {
	var labels []MetricLabel
	for pair := range slices.Chunk(pairs, 2) {
		labels = append(labels, MetricLabel{pair[0], pair[1]})
	}
	return labels
}

// JoinMetrics yields from one sequence after the other.
func JoinMetrics(all ...iter.Seq[Metric]) iter.Seq[Metric] {
	return func(yield func(Metric) bool) {
		for _, one := range all {
			for m := range one {
				if !yield(m) {
					return
				}
			}
		}
	}
}

// tallyOther is the word under which a [Tally] counts all words that it does not know.
const tallyOther = "other"

// A Tally has a counter for each word of a vocabulary. All other words count as [tallyOther], so that a text from
// outside never becomes a label. It is safe for concurrent use.
type Tally[K ~string] struct {
	mu     sync.Mutex
	counts map[K]uint64 // Guarded by mu: all words of the vocabulary are there
}

// NewTally returns a tally of these words.
func NewTally[K ~string](words ...K) *Tally[K] {
	t := &Tally[K]{counts: map[K]uint64{tallyOther: 0}}
	for _, w := range words {
		t.counts[w] = 0
	}
	return t
}

// Add counts one.
func (t *Tally[K]) Add(word K) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, known := t.counts[word]; !known {
		word = tallyOther
	}
	t.counts[word]++
}

// Metrics yields a metric for each word that was counted, with the word as the value of label. If none was, it yields a
// zero for the first word, so that the name exists. More labels follow as name, value.
func (t *Tally[K]) Metrics(name, help, label string, more ...string) iter.Seq[Metric] {
	t.mu.Lock()
	counts := maps.Clone(t.counts)
	t.mu.Unlock()
	return func(yield func(Metric) bool) {
		words := slices.Sorted(maps.Keys(counts))
		counted := slices.DeleteFunc(slices.Clone(words), func(word K) bool { return counts[word] == 0 })
		if len(counted) == 0 {
			counted = words[:1]
		}
		for _, word := range counted {
			if !yield(NewMetric(name, help, counts[word], append([]string{label, string(word)}, more...)...)) {
				return
			}
		}
	}
}

// Times is a histogram of times. It is safe for concurrent use.
type Times struct {
	bounds []time.Duration // Set once: ascending

	mu        sync.Mutex
	counts    []uint64      // Guarded by mu: by bucket, not cumulative; the last one has the times above all bounds
	sum       time.Duration // Guarded by mu
	exemplars []Exemplar    // Guarded by mu: the newest of each bucket; nil: nothing was traced
}

// An Exemplar is one observed time, and its trace.
type Exemplar struct {
	Trace string // its id, 32 hexadecimal digits; "": none
	Took  time.Duration
	At    time.Time
}

// A TimesSnapshot is a [Times] at one moment.
type TimesSnapshot struct {
	Bounds []time.Duration // ascending
	Counts []uint64        // number of times up to each bound, cumulative
	Count  uint64          // number of all times
	Sum    time.Duration

	Exemplars []Exemplar // one for each bound and one above all of them, or nil
}

// NewTimes returns an empty histogram with these upper bounds, which must ascend.
func NewTimes(bounds ...time.Duration) *Times {
	return &Times{bounds: bounds, counts: make([]uint64, len(bounds)+1)}
}

// Observe adds a time. A negative one, from a clock that was set back, counts as 0.
func (t *Times) Observe(d time.Duration) { t.ObserveIn("", d) }

// ObserveIn adds a time that was measured in a span, whose W3C traceparent is parent. If the trace is recorded, the
// time is an exemplar.
func (t *Times) ObserveIn(parent string, d time.Duration) {
	d = max(d, 0)
	i, _ := slices.BinarySearch(t.bounds, d)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.counts[i]++
	t.sum += d
	if trace := recordedTrace(parent); trace != "" {
		if t.exemplars == nil {
			t.exemplars = make([]Exemplar, len(t.counts))
		}
		t.exemplars[i] = Exemplar{trace, d, time.Now()}
	}
}

// recordedTrace returns the trace id of a traceparent, or "" if its spans are not recorded.
func recordedTrace(parent string) string {
	parts := strings.Split(parent, "-") // version, trace, span, flags
	if len(parts) != 4 || parts[3] != "01" {
		return ""
	}
	return parts[1]
}

// Metric returns the histogram as a metric, with labels as for [NewMetric].
func (t *Times) Metric(name, help string, labels ...string) Metric {
	s := &TimesSnapshot{Bounds: t.bounds}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, n := range t.counts {
		s.Count += n
		s.Counts = append(s.Counts, s.Count)
	}
	s.Counts, s.Sum, s.Exemplars = s.Counts[:len(t.bounds)], t.sum, slices.Clone(t.exemplars)
	return Metric{Name: name, Help: help, Labels: labelsOf(labels), Times: s}
}

// Metrics yields the histogram, with labels as for [NewMetric], unless it is empty.
func (t *Times) Metrics(name, help string, labels ...string) iter.Seq[Metric] {
	return func(yield func(Metric) bool) {
		if m := t.Metric(name, help, labels...); m.Times.Count > 0 {
			yield(m)
		}
	}
}
