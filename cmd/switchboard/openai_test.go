package main

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"

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
