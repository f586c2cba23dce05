package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"

	"switchboard/handoff"
)

// An sdk is OpenAI's own client, which knows nothing of us but the address and the key.
type sdk struct {
	Responses responses.ResponseService
	t         *testing.T
	*running
}

// fleetSDK starts a service with its simulated machines, and a client of it.
func fleetSDK(t *testing.T) sdk {
	r := start(t, func(p *plan) { p.Hurry = 20 })
	r.up("bigpc", "laptop")
	return sdk{responses.NewResponseService(option.WithBaseURL(r.base+"/v1"), option.WithAPIKey(testKey), option.WithMaxRetries(0)), t, r}
}

func asks(model, text string) responses.ResponseNewParams {
	return responses.ResponseNewParams{Model: model, Input: responses.ResponseNewParamsInputUnion{OfString: param.NewOpt(text)}}
}

// ok gives what a call returned, if it did.
func ok[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if api, is := errors.AsType[*responses.Error](err); is {
			t.Fatalf("%d %s %s: %s", api.StatusCode, api.Code, api.Param, api.Message)
		}
		must(t, err)
		return v
	}
}

// refusedAs reports whether an error is of a status and a code.
func refusedAs(t *testing.T, err error, status int, code string) {
	t.Helper()
	if api, is := errors.AsType[*responses.Error](err); !is || api.StatusCode != status || api.Code != code || api.Message == "" {
		t.Errorf("%v, want %d %q", err, status, code)
	}
}

// TestOpenAIResponses: OpenAI's Go client, unmodified, works with the fleet: a response, the one after it in the same
// session, a fork of the first, what was asked, and its end.
func TestOpenAIResponses(t *testing.T) {
	t.Parallel()
	c := fleetSDK(t)
	ctx := t.Context()
	first := ok[*responses.Response](t)(c.Responses.New(ctx, asks("bigpc/shop", "run the tests")))
	if first.Status != responses.ResponseStatusCompleted || !strings.Contains(first.OutputText(), "fail") || first.Model != "bigpc/shop" || first.CompletedAt == 0 {
		t.Fatalf("%s", first.RawJSON())
	}
	if i := slices.IndexFunc(first.Output, func(it responses.ResponseOutputItemUnion) bool { return it.Type == "mcp_call" }); i < 0 || first.Output[i].ServerLabel != "bigpc" || first.Output[i].Name != "shell" {
		t.Errorf("%s", first.RawJSON())
	}
	p := asks("bigpc", "fix it")
	p.PreviousResponseID, p.Metadata = param.NewOpt(first.ID), shared.Metadata{"ticket": "7"}
	second := ok[*responses.Response](t)(c.Responses.New(ctx, p))
	p.Input.OfString = param.NewOpt("what did you do?")
	forked := ok[*responses.Response](t)(c.Responses.New(ctx, p))
	got := ok[*responses.Response](t)(c.Responses.Get(ctx, second.ID, responses.ResponseGetParams{}))
	if got.RawJSON() != second.RawJSON() || got.Metadata["ticket"] != "7" || got.PreviousResponseID != first.ID {
		t.Errorf("created\n%s, then it is\n%s", second.RawJSON(), got.RawJSON())
	}
	work := map[string]handoff.Record{}
	for _, rec := range c.handoffs() {
		work["resp_"+rec.ID] = rec
	}
	if work[first.ID].ThreadID != work[second.ID].ThreadID || work[forked.ID].ThreadID == work[first.ID].ThreadID || work[forked.ID].Why != handoff.WhyCopy {
		t.Errorf("sessions %q, %q, %q", work[first.ID].ThreadID, work[second.ID].ThreadID, work[forked.ID].ThreadID)
	}
	items := c.Responses.InputItems.ListAutoPaging(ctx, second.ID, responses.InputItemListParams{Limit: param.NewOpt(int64(1))})
	n := 0
	for items.Next() {
		n++
	}
	if items.Err() != nil || n != 1 {
		t.Errorf("%d input items, %v", n, items.Err())
	}
	must(t, c.Responses.Delete(ctx, second.ID))
	_, err := c.Responses.Get(ctx, second.ID, responses.ResponseGetParams{})
	refusedAs(t, err, http.StatusNotFound, "")
	p.PreviousResponseID = param.NewOpt(second.ID)
	_, err = c.Responses.New(ctx, p)
	refusedAs(t, err, http.StatusBadRequest, "previous_response_not_found")
}

// streamed reads a stream to its end: the types of its events, the text of its deltas, and the last response.
func streamed(t *testing.T, s interface {
	Next() bool
	Current() responses.ResponseStreamEventUnion
	Err() error
}) (raw []string, text string, last responses.Response) {
	t.Helper()
	for s.Next() {
		e := s.Current()
		if int(e.SequenceNumber) != len(raw) {
			t.Fatalf("event %d has number %d", len(raw), e.SequenceNumber)
		}
		raw = append(raw, e.RawJSON())
		text += map[bool]string{true: e.Delta}[e.Type == "response.output_text.delta"]
		if e.Response.ID != "" {
			last = e.Response
		}
	}
	if s.Err() != nil {
		t.Fatal(s.Err())
	}
	return raw, text, last
}

// TestOpenAIStreams: a stream, one in the background that is read again from any event, and one that is cancelled.
func TestOpenAIStreams(t *testing.T) {
	t.Parallel()
	c := fleetSDK(t)
	ctx := t.Context()
	_, text, last := streamed(t, c.Responses.NewStreaming(ctx, asks("bigpc", "run the tests")))
	if last.Status != responses.ResponseStatusCompleted || text != last.OutputText() || text == "" {
		t.Errorf("%q of %s", text, last.RawJSON())
	}
	p := asks("bigpc", "fix it")
	p.Background, p.PreviousResponseID = param.NewOpt(true), param.NewOpt(last.ID)
	raw, _, last := streamed(t, c.Responses.NewStreaming(ctx, p))
	if last.Status != responses.ResponseStatusCompleted || !strings.Contains(raw[1], "response.queued") {
		t.Fatalf("%s", strings.Join(raw, "\n"))
	}
	again, _, _ := streamed(t, c.Responses.GetStreaming(ctx, last.ID, responses.ResponseGetParams{}))
	if !slices.Equal(again, raw) {
		t.Error("read again it is another")
	}
	for k := range raw {
		status, body := c.ask(http.MethodGet, fmt.Sprintf("/v1/responses/%s?stream=true&starting_after=%d", last.ID, k), "")
		var rest []string
		for line := range strings.Lines(string(body)) {
			if data, is := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "data: "); is {
				rest = append(rest, data)
			}
		}
		if status != http.StatusOK || !slices.Equal(rest, raw[k+1:]) {
			t.Fatalf("after %d: %d, %d events, want %d", k, status, len(rest), len(raw)-k-1)
		}
	}
	_, err := c.Responses.Cancel(ctx, last.ID)
	refusedAs(t, err, http.StatusBadRequest, "")
	p = asks("laptop", "run the benchmarks")
	p.Background = param.NewOpt(true)
	long := ok[*responses.Response](t)(c.Responses.New(ctx, p))
	_, err = c.Responses.Get(ctx, long.ID, responses.ResponseGetParams{}, option.WithQuery("stream", "true"))
	refusedAs(t, err, http.StatusBadRequest, "invalid_mode")
	refusedAs(t, c.Responses.Delete(ctx, long.ID), http.StatusBadRequest, "response_in_progress")
	for range 2 {
		if gone := ok[*responses.Response](t)(c.Responses.Cancel(ctx, long.ID)); gone.Status != responses.ResponseStatusCancelled || len(gone.Output) > 0 {
			t.Errorf("%s", gone.RawJSON())
		}
	}
	until(t, "the work to stop", func() bool {
		return c.whole(strings.TrimPrefix(long.ID, "resp_")).Outcome == handoff.OutcomeInterrupted
	})
	if got := ok[*responses.Response](t)(c.Responses.Get(ctx, long.ID, responses.ResponseGetParams{})); got.Status != responses.ResponseStatusCancelled {
		t.Errorf("afterwards it is %s", got.RawJSON())
	}
}

// TestOpenAIApproval: what an agent asks ends the response; the answer goes on in the next one.
func TestOpenAIApproval(t *testing.T) {
	t.Parallel()
	c := fleetSDK(t)
	ctx := t.Context()
	for _, approve := range []bool{true, false} {
		asked := ok[*responses.Response](t)(c.Responses.New(ctx, asks("bigpc", "push the branch")))
		it := asked.Output[len(asked.Output)-1]
		if asked.Status != responses.ResponseStatusCompleted || it.Type != "mcp_approval_request" || !strings.Contains(it.Arguments.OfString, "git push") {
			t.Fatalf("%s", asked.RawJSON())
		}
		p := asks("bigpc", "and now?")
		p.PreviousResponseID = param.NewOpt(asked.ID)
		_, err := c.Responses.New(ctx, p)
		refusedAs(t, err, http.StatusBadRequest, "approval_required")
		answer := func(id string) responses.ResponseNewParams {
			p.Input = responses.ResponseNewParamsInputUnion{OfInputItemList: responses.ResponseInputParam{
				param.Override[responses.ResponseInputItemUnionParam](json.RawMessage(fmt.Sprintf(`{"type":"mcp_approval_response","approval_request_id":%q,"approve":%t}`, id, approve))),
			}}
			return p
		}
		_, err = c.Responses.New(ctx, answer("mcpr_nobody"))
		refusedAs(t, err, http.StatusBadRequest, "")
		said := ok[*responses.Response](t)(c.Responses.New(ctx, answer(it.ID)))
		if said.Status != responses.ResponseStatusCompleted || said.OutputText() == "" || said.PreviousResponseID != asked.ID {
			t.Fatalf("%s", said.RawJSON())
		}
		_, err = c.Responses.New(ctx, answer(it.ID))
		refusedAs(t, err, http.StatusConflict, "response_in_use")
	}
}

// TestVoiceThenSDKThenVoice: one session begins by voice, goes on from an SDK by the response of the spoken work, and
// ends by voice, on a machine of each kind.
func TestVoiceThenSDKThenVoice(t *testing.T) {
	t.Parallel()
	for machine, said := range map[string]struct{ voice, answers, sdk, again, atLast string }{
		"bigpc":  {"run the tests", "fail", "fix it", "run the tests", "pass"},
		"laptop": {"run the tests", "pass", "write the release notes", "what did you do?", "In this session I ran the tests, and all passed, and last I wrote the release notes for version 2.4."},
	} {
		t.Run(machine, func(t *testing.T) {
			t.Parallel()
			c := fleetSDK(t)
			ctx := t.Context()
			p := c.call()
			p.say(fmt.Sprintf(`codex {"server":%q,"thread_id":"new","prompt":%q}`, machine, said.voice))
			var spoken handoff.Record
			until(t, "the spoken work", func() bool {
				all := c.handoffs()
				if len(all) == 1 {
					spoken = all[0]
				}
				return spoken.Outcome == handoff.OutcomeResult
			})
			began := ok[*responses.Response](t)(c.Responses.Get(ctx, "resp_"+spoken.ID, responses.ResponseGetParams{}))
			if began.Status != responses.ResponseStatusCompleted || !strings.Contains(began.OutputText(), said.answers) {
				t.Fatalf("%s", began.RawJSON())
			}
			next := asks(machine, said.sdk)
			next.PreviousResponseID = param.NewOpt(began.ID)
			between := ok[*responses.Response](t)(c.Responses.New(ctx, next))
			p.say("On " + machine + ", " + said.again)
			until(t, "the last work", func() bool {
				all := c.handoffs()
				return len(all) == 3 && all[2].Outcome == handoff.OutcomeResult
			})
			for _, rec := range c.handoffs() {
				if rec.ThreadID != spoken.ThreadID {
					t.Errorf("%q went to another session", rec.Prompt)
				}
			}
			if text := c.handoffs()[2].Text; !strings.Contains(text, said.atLast) {
				t.Errorf("at last: %q, after %q", text, between.OutputText())
			}
		})
	}
}
