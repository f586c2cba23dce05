package verbs

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/handoff"
)

// A far is a service that answers each request of a path in turn; the last answer stays.
type far struct {
	t     *testing.T
	paths map[string][]http.HandlerFunc
	seen  []string // method, path, and what identifies the request
	away  error    // of a request without an answer
	heard []string // work whose outcome was told
}

// RoundTrip implements [http.RoundTripper].
func (f *far) RoundTrip(r *http.Request) (*http.Response, error) {
	name := r.Method + " " + r.URL.Path
	if id, ok := strings.CutSuffix(r.URL.Path, "/heard"); ok {
		f.heard = append(f.heard, id)
		return &http.Response{StatusCode: http.StatusNoContent, Body: http.NoBody, Request: r}, nil
	}
	f.seen = append(f.seen, strings.TrimSpace(name+" "+r.Header.Get("Last-Event-ID")+r.Header.Get("Idempotency-Key")))
	answers := f.paths[name]
	if len(answers) == 0 {
		f.t.Errorf("asked for %s", name)
		return nil, io.ErrUnexpectedEOF
	}
	if len(answers) > 1 {
		f.paths[name] = answers[1:]
	}
	if answers[0] == nil {
		return nil, cmp.Or(f.away, errors.New("the connection was lost"))
	}
	w := httptest.NewRecorder()
	answers[0](w, r)
	return w.Result(), nil
}

func says(status int, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, text)
	}
}

// hangs answers nothing until the client gives up.
func hangs(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

func (f *far) terminal(out, errs io.Writer) *Terminal {
	return &Terminal{Client: Client{HTTP: &http.Client{Transport: f}, Base: "http://far"}, Out: out, Err: errs,
		Name: "switchboard"}
}

const (
	ended = "id: l-9\ndata: {\"type\":\"ended\",\"record\":{\"id\":\"r1\",\"server\":\"bigpc\",\"outcome\":\"result\",\"text\":\"Done.\"}}\n\n"
	given = `{"id":"r1","server":"bigpc","state":"accepted"}`
	work  = "/fleet/handoffs/r1"
)

// TestGiveAndFollow: work is given once however often it is tried, followed over drops from where they were, and its
// outcome is known in the end.
func TestGiveAndFollow(t *testing.T) {
	post, events, get := "POST /fleet/handoffs", "GET "+work+"/events", "GET "+work
	first := says(200, "retry: 1000\n\nid: l-3\ndata: "+done("m",
		"One.")+"\n\n: alive\n\nid: l-4\ndata: {\"type\":\"usage\"}\n")
	for _, tc := range []struct {
		name    string
		paths   map[string][]http.HandlerFunc
		seen    []string
		outcome handoff.Outcome
		out     string
		err     string // of the verb, or in what it tells people
	}{
		{"once", map[string][]http.HandlerFunc{post: {says(202, given)}, events: {says(200, ended)}},
			[]string{post + " k", events}, handoff.OutcomeResult, "Done.\n", ""},
		{"the answer was lost", map[string][]http.HandlerFunc{post: {nil, says(202, given)}, events: {says(200, ended)}},
			[]string{post + " k", post + " k", events}, handoff.OutcomeResult, "Done.\n", ""},
		{"nobody there", map[string][]http.HandlerFunc{post: {nil}}, []string{post + " k", post + " k", post + " k"}, "", "",
			"\nNobody knows whether the work began. Run the same command again with --idempotency-key k, and it begins once."},
		{"a proxy that lost it", map[string][]http.HandlerFunc{post: {says(502, "<html>"), says(202, given)},
			events: {says(200, ended)}}, []string{post + " k", post + " k", events}, handoff.OutcomeResult, "Done.\n", ""},
		{"half an answer", map[string][]http.HandlerFunc{post: {says(202, given[:9])}}, nil, "", "", "--idempotency-key k"},
		{"refused by the service", map[string][]http.HandlerFunc{post: {says(404,
			`{"error":{"code":"unknown_server","message":"No such machine.","next":"Name one."}}`)}}, []string{post + " k"}, "",
			"", "No such machine. Name one."},
		{"refused by somebody else's port", map[string][]http.HandlerFunc{post: {says(404, `<html>`)}}, []string{post + " k"}, "", "",
			"there is no Switchboard: 404"},
		{"a drop", map[string][]http.HandlerFunc{post: {says(202, given)}, events: {first, nil, says(200, ended)}},
			[]string{post + " k", events, events + " l-3", events + " l-3"}, handoff.OutcomeResult, "One.\nDone.\n",
			"trying again"},
		{"a dead connection", map[string][]http.HandlerFunc{post: {says(202, given)}, events: {hangs, says(200, ended)}},
			[]string{post + " k", events, events}, handoff.OutcomeResult, "Done.\n", "nothing was heard of it"},
		{"over meanwhile", map[string][]http.HandlerFunc{post: {says(202, given)}, events: {first, says(204, "")},
			get: {says(200, `{"id":"r1","server":"bigpc","outcome":"failed"}`)}},
			[]string{post + " k", events, events + " l-3", get}, handoff.OutcomeFailed, "One.\n", "failed"},
		{"a snapshot of its end", map[string][]http.HandlerFunc{post: {says(202, given)},
			events: {says(200, strings.Replace(ended, `"ended"`, `"snapshot"`, 1))}}, []string{post + " k", events},
			handoff.OutcomeResult, "Done.\n", ""},
		{"of an earlier life", map[string][]http.HandlerFunc{post: {says(202, given)},
			events: {says(404, `{"error":{"code":"not_found"}}`)},
			get:    {says(200, `{"id":"r1","server":"bigpc","outcome":"unknown"}`)}},
			[]string{post + " k", events, get}, handoff.OutcomeUnknown, "", "nobody knows"},
		{"away for long", map[string][]http.HandlerFunc{post: {says(202, given)}, events: {nil}}, nil, "", "",
			"no Switchboard answers"},
		{"its events are not told", map[string][]http.HandlerFunc{post: {says(202, given)}, events: {says(503,
			`{"error":{"code":"overloaded","message":"Switchboard has too much to do right now."}}`)}}, nil, "", "",
			"too much to do"},
		{"its events were forgotten", map[string][]http.HandlerFunc{post: {says(202, given)},
			events:                {says(404, `{"error":{"code":"not_found"}}`)},
			get:                   {says(404, `{"error":{"code":"not_found","message":"There is no r1."}}`)},
			"GET /fleet/handoffs": {says(200, `{}`)}, "GET /fleet/questions": {says(200, `{}`)}}, nil, "", "", "There is no r1"},
		{"refused after a lost answer", map[string][]http.HandlerFunc{post: {nil, says(503,
			`{"error":{"code":"overloaded","message":"Too much to do."}}`)}}, []string{post + " k", post + " k"}, "", "",
			"--idempotency-key k"},
		{"the instance that read it was lost", map[string][]http.HandlerFunc{post: {says(502,
			`{"error":{"code":"unknown_start","message":"Lost."}}`), says(202, given)}, events: {says(200, ended)}},
			[]string{post + " k", post + " k", events}, handoff.OutcomeResult, "Done.\n", ""},
		{"its words went elsewhere",
			map[string][]http.HandlerFunc{post: {says(202, strings.Replace(given, "r1", "r0", 1))}, events: {says(200, ended)},
				"GET /fleet/handoffs/r0/events": {says(200,
					"id: l-1\ndata: {\"type\":\"steered\",\"into\":\"r1\"}\n\n"+strings.Replace(ended, "Done.", "", 1))}},
			[]string{post + " k", "GET /fleet/handoffs/r0/events", events}, handoff.OutcomeResult, "Done.\n", ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			var out, errs bytes.Buffer
			f := &far{t: t, paths: tc.paths}
			term := f.terminal(&out, &errs)
			outcome, err := term.give(t.Context(), order{Server: "bigpc", Prompt: "do it", Key: "k"})
			told := errs.String()
			if err != nil {
				told += err.Error()
			}
			if err != nil {
				want := Outcome(handoff.OutcomeUnknown)
				if strings.HasPrefix(tc.name, "refused by") {
					want = Outcome(handoff.OutcomeCancelled)
				}
				if end := term.outcome(outcome, err); !errors.Is(end, want) {
					t.Errorf("%s: it ends with %q", tc.name, end)
				}
			}
			if outcome != tc.outcome || out.String() != tc.out || !strings.Contains(told, tc.err) ||
				(err == nil) != (outcome != "") {
				t.Errorf("%s: %q %q %q", tc.name, outcome, out.String(), told)
			}
			if heard := slices.Contains(f.heard, work); heard != (outcome != "") {
				t.Errorf("%s: outcome %q, heard %q", tc.name, outcome, f.heard)
			}
			if tc.seen != nil && strings.Join(f.seen, "\n") != strings.Join(tc.seen, "\n") {
				t.Errorf("%s: asked %q", tc.name, f.seen)
			}
		})
	}
}

// TestLeavingBefore: who leaves before work is promised is told its key, which was made for it; who was refused
// is not, nor who found nobody there.
func TestLeavingBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, leave := context.WithTimeout(t.Context(), time.Second)
		defer leave()
		var out, errs bytes.Buffer
		f := &far{t: t, paths: map[string][]http.HandlerFunc{"POST /fleet/handoffs": {hangs}}}
		_, err := f.terminal(&out, &errs).give(ctx, order{Server: "bigpc", Prompt: "do it"})
		_, key, _ := strings.Cut(f.seen[0], "/fleet/handoffs ")
		if err == nil || key == "" || !strings.Contains(errs.String(), "--idempotency-key "+key+",") {
			t.Errorf("%v, told %q, asked %q", err, errs.String(), f.seen)
		}
		errs.Reset()
		f.paths["POST /fleet/handoffs"] = []http.HandlerFunc{says(404, `{"error":{"code":"unknown_server"}}`)}
		if _, err := f.terminal(&out, &errs).give(t.Context(), order{Server: "bigpc", Prompt: "do it"}); err == nil ||
			strings.Contains(errs.String(), "--idempotency-key") {
			t.Errorf("refused: %v, told %q", err, errs.String())
		}
		for _, why := range []error{syscall.ECONNREFUSED, syscall.ENOENT} {
			errs.Reset()
			f := &far{t: t, paths: map[string][]http.HandlerFunc{"POST /fleet/handoffs": {nil}}, away: why}
			if _, err := f.terminal(&out, &errs).give(t.Context(), order{Server: "bigpc", Prompt: "do it"}); !errors.Is(err,
				Outcome(handoff.OutcomeCancelled)) || strings.Contains(errs.String(), "--idempotency-key") {
				t.Errorf("nobody there: %v, told %q", err, errs.String())
			}
			if _, err := f.terminal(&out, &errs).give(t.Context(), order{Key: "k"}); !errors.Is(err, Outcome(handoff.OutcomeUnknown)) {
				t.Errorf("nobody there, under a name that may have been used before: %v", err)
			}
		}
	})
}

// A full disk takes nothing.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

// TestUnheard: what could not be written whole is told in the next call.
func TestUnheard(t *testing.T) {
	for _, inJSON := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			f := &far{t: t, paths: map[string][]http.HandlerFunc{"GET " + work + "/events": {says(200, ended)}}}
			term := f.terminal(full{}, io.Discard)
			term.JSON = inJSON
			if outcome, err := term.follow(t.Context(), "r1"); err != nil || outcome != handoff.OutcomeResult ||
				len(f.heard) > 0 {
				t.Errorf("JSON %t: %q, %v, heard %q", inJSON, outcome, err, f.heard)
			}
		})
	}
}

// TestLeaving: who leaves is told how to see the work again; it is not touched.
func TestLeaving(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, leave := context.WithTimeout(t.Context(), time.Second)
		defer leave()
		var out, errs bytes.Buffer
		f := &far{t: t, paths: map[string][]http.HandlerFunc{"GET " + work + "/events": {hangs}}}
		if _, err := f.terminal(&out, &errs).follow(ctx, "r1"); err == nil {
			t.Error("it ended")
		}
		if want := "--follow r1`, end it with `switchboard handoff --stop r1`"; !strings.Contains(errs.String(), want) || len(f.seen) != 1 {
			t.Errorf("told %q, asked %q", errs.String(), f.seen)
		}
	})
}

// TestWatchGoesOn: a watch is followed turn after turn, also one that has ended meanwhile, until it is over.
func TestWatchGoesOn(t *testing.T) {
	at := func(id, thread string, minute int, more string) string {
		return fmt.Sprintf(`{"id":%q,"server":"bigpc","thread_id":%q,"why":"watched","created_at":"2026-01-01T00:%02d:00Z"%s}`,
			id, thread, minute, more)
	}
	ends := func(id string, minute int, more string) []http.HandlerFunc {
		return []http.HandlerFunc{says(200, "id: l-1\ndata: {\"type\":\"ended\",\"record\":"+at(id, "t1", minute, more)+"}\n\n")}
	}
	var out, errs bytes.Buffer
	f := &far{t: t, paths: map[string][]http.HandlerFunc{
		"GET /fleet/handoffs/r1/events": ends("r1", 1, `,"outcome":"result","text":"One."`),
		"GET /fleet/handoffs/r2/events": ends("r2", 2, `,"outcome":"result","text":"Two."`),
		"GET /fleet/handoffs/r4/events": ends("r4", 4, `,"outcome":"cancelled"`),
		"GET /fleet/handoffs": {says(200, `{"items":[`+strings.Join([]string{at("r4", "t1", 4, ""), at("r3", "t2", 3, ""),
			at("r2", "t1", 2, `,"outcome":"result"`), at("r1", "t1", 1, `,"outcome":"result"`)}, ",")+`]}`)},
	}}
	outcome, err := f.terminal(&out, &errs).follow(t.Context(), "r1")
	if outcome != handoff.OutcomeResult || err != nil || out.String() != "One.\nTwo.\n" || len(f.heard) != 3 {
		t.Errorf("%s, %v: %q %q, heard %q", outcome, err, out.String(), errs.String(), f.heard)
	}
}
