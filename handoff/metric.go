package handoff

import (
	"iter"
	"maps"
	"slices"
	"sync"
)

// A Metric is a number for operators. Packages yield their metrics from a method Metrics() iter.Seq[Metric], which
// waits for nothing but a lock. Only the edge knows the format on the wire.
//
// Names follow Prometheus: "switchboard_", the thing, its unit, and "_total" for counters. All metrics of one name have
// the same Help.
type Metric struct {
	Name   string
	Help   string // what is counted, as a sentence
	Labels []MetricLabel
	Value  float64
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
