package handoff

import (
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// A Metric is a number that a package shows to operators, or a distribution. Packages yield theirs from a
// method Metrics() iter.Seq[Metric], which takes no longer than a lock; only the edge knows the format.
//
// Names follow Prometheus: "switchboard_", the thing, its unit, and "_total" for what only grows since the
// process began. The Help of a name is the same with all its labels.
type Metric struct {
	Name   string
	Help   string // what is counted, as a sentence
	Labels []MetricLabel
	Value  float64
	Times  *TimesSnapshot // set: a distribution of times; Value does not count
}

// A MetricLabel tells metrics of one name apart. There are few values, all known from the code or the
// configuration: never a caller, a thread or a text.
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

// tallyOther is what a [Tally] counts under when it does not know a word.
const tallyOther = "other"

// A Tally counts by words of a vocabulary. Words outside of it count together, so that a text from elsewhere
// never makes a label. It is safe for concurrent use.
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

// Metrics yields a metric for each word that was counted, with the word as the value of label; one without any is
// yielded for the first word, so that the name is there. More labels follow as name, value.
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

// Times counts how long something took, by upper bounds. It is safe for concurrent use.
type Times struct {
	bounds []time.Duration // Set once: ascending

	mu        sync.Mutex
	counts    []uint64      // Guarded by mu: of each bound alone, and beyond all
	sum       time.Duration // Guarded by mu
	exemplars []Exemplar    // Guarded by mu: the newest of each bound, and beyond all; nil: nothing was traced
}

// An Exemplar is one of the times that were counted, with the trace in which it was taken.
type Exemplar struct {
	Trace string // its id, 32 hexadecimal digits; "": there is none
	Took  time.Duration
	At    time.Time
}

// A TimesSnapshot is a [Times] at one moment.
type TimesSnapshot struct {
	Bounds []time.Duration // ascending
	Counts []uint64        // of times up to each bound, those up to smaller ones included
	Count  uint64          // of all
	Sum    time.Duration

	Exemplars []Exemplar // one a bound and one beyond all, or none at all
}

// NewTimes returns a distribution with these upper bounds, which ascend.
func NewTimes(bounds ...time.Duration) *Times {
	return &Times{bounds: bounds, counts: make([]uint64, len(bounds)+1)}
}

// Observe counts one. A time before zero, as of a clock that was set back, counts as none at all.
func (t *Times) Observe(d time.Duration) { t.ObserveIn("", d) }

// ObserveIn counts one that was taken below a span, which is given as its W3C traceparent. It is an exemplar if that
// is recorded.
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

// recordedTrace is the id of the trace of a traceparent, or "" where its spans are not recorded.
func recordedTrace(parent string) string {
	parts := strings.Split(parent, "-") // version, trace, span, flags
	if len(parts) != 4 || parts[3] != "01" {
		return ""
	}
	return parts[1]
}

// Metric returns the distribution, with labels as [NewMetric] takes them.
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

// Metrics yields the distribution once something was observed, with labels as [NewMetric] takes them.
func (t *Times) Metrics(name, help string, labels ...string) iter.Seq[Metric] {
	return func(yield func(Metric) bool) {
		if m := t.Metric(name, help, labels...); m.Times.Count > 0 {
			yield(m)
		}
	}
}
