package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"net/http"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// noCounters are fields that look like counters and are none, with the reason.
var noCounters = map[string]string{
	"handoff/router.last": "the last id given, not how many",
}

// elsewhere are metrics that a plain service does not show, by the beginning of their names.
var elsewhere = map[string]string{
	"switchboard_redis_":   "the store is SQLite",
	"switchboard_peer_":    "it is the only instance",
	"switchboard_notices_": "no webhook is configured",
	"switchboard_acp_":     "there is no machine of this kind",
	"switchboard_trace_":   "the environment names no collector",
}

// queues are all buffered channels that hold more than one, by package and bound: what happens when one is
// full, and which metric tells. Simulators are left out: they are another program's side.
var queues = map[string]struct{ policy, metric string }{
	"handoff.FeedQueue": {
		"the listener is dropped and reads a snapshot",
		"switchboard_feed_listeners_dropped_total",
	},
	"realtime/rtc.packetQueue": {
		"their reader waits, and the system drops packets",
		"switchboard_webrtc_packets_lost_total",
	},
	"cmd/switchboard/traces.maxQueued": {"the span is dropped", "switchboard_trace_spans_total"},
	"servers.frames":                   {"the request is refused", "switchboard_codex_frames_full_total"},
	"servers/codex.maxResubscriptions": {
		"the resubscription is left out",
		"switchboard_codex_resubscriptions_left_out_total",
	},
}

// A metricScan is what the code says of counters.
type metricScan struct {
	counters map[string]bool // "package.field", and whether it is a struct's that others are added up in
	shown    map[string]bool // fields that are given to a metric
	summed   map[string]bool // fields that are added up first
	names    map[string]bool // of metrics
	queues   map[string]bool // "package.bound"
}

var (
	countsType = regexp.MustCompile(`(?i)(counts?|stats)$`)
	metricName = regexp.MustCompile(
		`^"([a-z_]+(?:_total|_seconds|_info|_bytes|_open|_busy|_up|_runs|_callers|_listeners|_subscriptions|_waiting|_joined|_most))"$`,
	)
	namePrefix  = regexp.MustCompile(`^"(switchboard_[a-z_]*_)"$`)
	summingFunc = []string{"add", "addPaced", "Load"}
)

func scanMetrics(t *testing.T) metricScan {
	t.Helper()
	all := metricScan{map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]bool{}}
	for name, text := range sources(t) {
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") || strings.Contains(name, "simulator/") ||
			strings.Contains(name, "test/") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, text, 0)
		must(t, err)
		room := path.Dir(name)
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.TypeSpec:
				if s, ok := n.Type.(*ast.StructType); ok {
					all.fields(room, n.Name.Name, s)
				}
			case *ast.CallExpr:
				all.queue(room, n)
			}
			return true
		})
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Body != nil {
				all.function(f)
			}
		}
	}
	return all
}

// fields takes the counters of a struct.
func (a metricScan) fields(room, of string, s *ast.StructType) {
	for _, f := range s.Fields.List {
		kind, sum := "", countsType.MatchString(of)
		switch t := f.Type.(type) {
		case *ast.SelectorExpr:
			kind = t.Sel.Name
		case *ast.Ident:
			kind = t.Name
		}
		for _, n := range f.Names {
			if kind == "Uint64" || sum && (kind == "int" || kind == "uint64") {
				a.counters[room+"."+n.Name] = sum && kind != "Uint64"
			}
		}
	}
}

// queue takes a buffered channel.
func (a metricScan) queue(room string, call *ast.CallExpr) {
	if fun, ok := call.Fun.(*ast.Ident); !ok || fun.Name != "make" || len(call.Args) != 2 {
		return
	}
	if _, ok := call.Args[0].(*ast.ChanType); !ok {
		return
	}
	switch n := call.Args[1].(type) {
	case *ast.BasicLit:
		if n.Value != "1" {
			a.queues[room+"."+n.Value] = true
		}
	case *ast.Ident:
		if elem, ok := call.Args[0].(*ast.ChanType).Value.(*ast.StructType); !ok || len(elem.Fields.List) > 0 { // places hold nothing
			a.queues[room+"."+n.Name] = true
		}
	case *ast.CallExpr: // of len: as many as there are
	default:
		a.queues[room+".an expression"] = true
	}
}

// function takes what a function shows, names and adds up.
func (a metricScan) function(f *ast.FuncDecl) {
	shows, prefix := false, ""
	ast.Inspect(f.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Ident:
			shows = shows || n.Name == "newTimes"
		case *ast.SelectorExpr:
			shows = shows || slices.Contains([]string{"NewMetric", "Metric", "JoinMetrics", "NewCounters"}, n.Sel.Name)
		case *ast.BinaryExpr:
			if lit, ok := n.X.(*ast.BasicLit); ok {
				if m := namePrefix.FindStringSubmatch(lit.Value); m != nil {
					prefix = m[1]
				} else if lit.Value == `"switchboard_"` {
					prefix = "switchboard_"
				}
			}
		}
		return true
	})
	into := a.shown
	switch {
	case slices.Contains(summingFunc, f.Name.Name):
		into = a.summed
	case !shows:
		return
	}
	ast.Inspect(f.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			into[n.Sel.Name] = true
		case *ast.BasicLit:
			if m := metricName.FindStringSubmatch(n.Value); m != nil && shows {
				a.names[prefix+strings.TrimPrefix(m[1], prefix)] = true
			}
		}
		return true
	})
}

// TestEveryCounterIsShown: what is counted can be read, and every queue tells when it was full.
func TestEveryCounterIsShown(t *testing.T) {
	t.Parallel()
	scan := scanMetrics(t)
	for counter, sum := range scan.counters {
		_, name, _ := strings.Cut(counter, ".")
		if shown := scan.shown[name] || !sum && scan.summed[name] || scan.summed[name] && strings.HasPrefix(counter, "handoff/speech."); !shown &&
			noCounters[counter] == "" {
			t.Errorf("%s is counted, and no metric shows it", counter)
		}
	}
	for name := range noCounters {
		if _, there := scan.counters[name]; !there {
			t.Errorf("%s is excused and not there", name)
		}
	}
	if got, want := slices.Sorted(maps.Keys(scan.queues)), slices.Sorted(maps.Keys(queues)); !slices.Equal(got, want) {
		t.Errorf("queues in the code %q, in the table %q", got, want)
	}
	r := start(t, func(*plan) {})
	r.outcome(
		r.hand(`{"server":"laptop","prompt":"what did you do?"}`),
	) // what is counted by server begins with its first run
	_, body := r.ask(http.MethodGet, "/metrics", "")
	r.stop()
	scrape := string(body)
	for name := range scan.names {
		apart := slices.ContainsFunc(
			slices.Collect(maps.Keys(elsewhere)),
			func(p string) bool { return strings.HasPrefix(name, p) },
		)
		if there := strings.Contains(scrape, "# HELP "+name+" "); there == apart {
			t.Errorf("%s is in the code; in a scrape: %v", name, there)
		}
	}
	for line := range strings.SplitSeq(scrape, "\n") {
		if name, ok := strings.CutPrefix(line, "# HELP switchboard_"); ok {
			if name, _, _ = strings.Cut(name, " "); !scan.names["switchboard_"+name] {
				t.Errorf("switchboard_%s is in a scrape, and the code names no such metric", name)
			}
		}
	}
	for queue, q := range queues {
		if !scan.names[q.metric] {
			t.Errorf("the queue %s (%s) is shown by %s, which is not there", queue, q.policy, q.metric)
		}
	}
}
