package main

import (
	"bytes"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"switchboard/web"
)

// TestMetrics: a scrape shows every part of the service, in names that Prometheus' own rules accept, and
// nothing that was said; a key that may not read it does not.
func TestMetrics(t *testing.T) {
	t.Parallel()
	const poor = "a-key-without-metrics"
	r := start(t, func(p *plan) { p.Access = append(p.Access, web.NewKey("poor", poor)) })
	r.outcome(r.hand(`{"server":"laptop","prompt":"what did you do?"}`))
	r.outcome(r.hand(`{"server":"attic","prompt":"what did you do?"}`)) // which is not there
	if status, body := r.ask(http.MethodPost, "/fleet/handoffs", `{"server":"a secret","prompt":"hello"}`); status/100 == 2 {
		t.Errorf("work for a machine that nobody has: %s", body)
	}
	status, body := r.ask(http.MethodGet, "/metrics", "")
	if status != http.StatusOK {
		t.Fatalf("%d %s", status, body)
	}
	problems, err := promlint.New(bytes.NewReader(body)).Lint()
	must(t, err)
	for _, p := range problems {
		if strings.HasPrefix(p.Metric, "switchboard_") {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
	for _, name := range []string{
		`switchboard_build_info{goversion="go`, `switchboard_runs{state="started"}`,
		`switchboard_runs_total{outcome="result",server="laptop"} 1`, `switchboard_runs_total{outcome="failed",server="attic"} 1`,
		`switchboard_run_start_seconds_bucket{server="laptop"`, `switchboard_run_seconds_count{server="laptop"} 1`,
		"switchboard_questions_open", `switchboard_questions_answered_total{by="api"} 0`, "switchboard_call_reports_dropped_total",
		"switchboard_feed_listeners_dropped_total", "switchboard_requests_refused_total", "switchboard_utterances_lost_total",
		`switchboard_store_seconds_bucket{op="commit"`, `switchboard_store_failures_total{op="commit"} 0`, "switchboard_store_bad_entries_total",
		`switchboard_server_up{server="bigpc"}`, `switchboard_server_connections_lost_total{server="bigpc"}`, `switchboard_codex_deltas_dropped_total{server="bigpc"}`,
		"switchboard_http_refused_total", "switchboard_event_streams_refused_total", "switchboard_connections_refused_total",
		`switchboard_calls_open{leg="webrtc"}`, `switchboard_calls_total{leg="websocket"}`, "switchboard_calls_ended_early_total", "switchboard_model_dials_failed_total",
		"switchboard_call_words_dropped_total", "switchboard_webrtc_packets_lost_total", "go_goroutines", "process_open_fds",
	} {
		if !strings.Contains(string(body), "\n"+name) {
			t.Errorf("%s is missing", name)
		}
	}
	if empty := regexp.MustCompile(`(?m)^switchboard_.*_count.* 0$`).FindAllString(string(body), -1); len(empty) > 0 {
		t.Errorf("distributions of nothing: %q", empty)
	}
	if strings.Contains(string(body), "a secret") || strings.Contains(string(body), poor) || strings.Contains(string(body), testKey) {
		t.Error("a key is in it")
	}
	if status, _ := r.ask(http.MethodGet, "/metrics", "", "Authorization", "Bearer "+poor); status != http.StatusForbidden {
		t.Errorf("a key without metrics got %d", status)
	}
	r.stop()
}
