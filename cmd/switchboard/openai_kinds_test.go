package main

import (
	"encoding/json"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/pagination"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"

	"switchboard/handoff"
	"switchboard/servers"
	agents "switchboard/servers/responses"
)

// behind starts a service with one machine, and a client of it. What the machine's model was sent is in the provider.
func behind(t *testing.T, change func(*plan)) sdk {
	r := start(t, change)
	r.up("bigpc")
	return sdk{responses.NewResponseService(option.WithBaseURL(r.base+"/v1"), option.WithAPIKey(testKey), option.WithMaxRetries(0)), t, r}
}

// knew tells which of some words the model was sent with its newest request.
func (p *fakeProvider) knew(words ...string) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	body := p.bodies[len(p.bodies)-1]
	return slices.DeleteFunc(words, func(w string) bool { return !strings.Contains(body, w) })
}

// TestOpenAIAgent: OpenAI's Go client, unmodified, works with an agent that Switchboard runs itself: a response, one
// after it, one that branches off at the first, one of which nothing is kept, a picture, and one that is cancelled.
// What was asked is read again, and a response is deleted.
func TestOpenAIAgent(t *testing.T) {
	t.Parallel()
	provider := newProvider(t)
	state := t.TempDir()
	c := agentBehind(t, provider, state)
	c.threads(provider)
	c.cancels(asks("bigpc", "slow 60"))
	made := ok[*responses.Response](t)(c.Responses.New(t.Context(), asks("bigpc", "one more")))
	if items := ok[*pagination.CursorPage[responses.ResponseItemUnion]](t)(c.Responses.InputItems.List(t.Context(), made.ID,
		responses.InputItemListParams{Limit: param.NewOpt(int64(1))})); len(items.Data) != 1 {
		t.Errorf("input items: %s", items.RawJSON())
	}
	must(t, c.Responses.Delete(t.Context(), made.ID))
	_, err := c.Responses.Get(t.Context(), made.ID, responses.ResponseGetParams{})
	refusedAs(t, err, http.StatusNotFound, "")
	_, err = c.Responses.New(t.Context(), after(made.ID, "and that?"))
	refusedAs(t, err, http.StatusBadRequest, "previous_response_not_found")
	c.stop()
	keptNothing(t, state)
}

// agentBehind starts a service with an agent of its own, which sends its model all that was before.
func agentBehind(t *testing.T, model *fakeProvider, state string) sdk {
	work := t.TempDir()
	return behind(t, func(p *plan) {
		p.StateDir = state
		p.Servers = []servers.Spec{{
			Name: "bigpc", Kind: agents.Name, Dir: work,
			Own: &agents.Settings{URL: model.URL + "/v1", Model: "m", Workspace: work, Continuation: agents.Replay,
				Key: func() (string, error) { return "k3y", nil }},
		}}
	})
}

// keptNothing holds that of what was not to be stored nothing lies in these directories, and of the rest something.
func keptNothing(t *testing.T, dirs ...string) {
	t.Helper()
	for _, dir := range dirs {
		found := map[string]string{}
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			data, err := os.ReadFile(path)
			for _, words := range []string{"in passing", "and more"} {
				if strings.Contains(string(data), words) {
					found[words] = path
				}
			}
			return err
		})
		if err != nil || found["in passing"] != "" || found["and more"] == "" {
			t.Errorf("%s: %v, found %v", dir, err, found)
		}
	}
}

// after asks for something after a response.
func after(id, text string) responses.ResponseNewParams {
	p := asks("bigpc", text)
	p.PreviousResponseID = param.NewOpt(id)
	return p
}

// threads goes on from a response: at its end, beside it, at an older one, and without storing anything.
func (c sdk) threads(model *fakeProvider) {
	t, ctx := c.t, c.t.Context()
	t.Helper()
	all := []string{"the first words", "and more", "a branch", "in passing", "at last"}
	say := func(p responses.ResponseNewParams, knows ...string) *responses.Response {
		t.Helper()
		got := ok[*responses.Response](t)(c.Responses.New(ctx, p))
		if got.Status != responses.ResponseStatusCompleted || got.OutputText() != "answer to: "+knows[len(knows)-1] {
			t.Fatalf("%s", got.RawJSON())
		}
		if knew := model.knew(slices.Clone(all)...); !slices.Equal(knew, knows) {
			t.Errorf("for %q the model knew %q, want %q", p.Input.OfString.Value, knew, knows)
		}
		return got
	}
	first := say(asks("bigpc", "the first words"), "the first words")
	_, text, second := streamed(t, c.Responses.NewStreaming(ctx, after(first.ID, "and more")))
	if text != "answer to: and more" || second.PreviousResponseID != first.ID {
		t.Errorf("%q in %s", text, second.RawJSON())
	}
	branch := say(after(first.ID, "a branch"), "the first words", "a branch")
	beside := after(second.ID, "in passing")
	beside.Store = param.NewOpt(false)
	var before []string
	until(t, "both sessions to be listed", func() bool { // codex lists what is new a moment later
		before = sessionIDs(c.running)
		return len(before) == 2
	})
	say(beside, "the first words", "and more", "in passing")
	if now := sessionIDs(c.running); !slices.Equal(now, before) {
		t.Errorf("sessions are %v, and were %v", now, before)
	}
	third := say(after(second.ID, "at last"), "the first words", "and more", "at last")
	threads := map[string]string{}
	for _, rec := range c.handoffs() {
		threads["resp_"+rec.ID] = rec.ThreadID
	}
	if threads[first.ID] != threads[second.ID] || threads[third.ID] != threads[first.ID] || threads[branch.ID] == threads[first.ID] {
		t.Errorf("sessions %v", threads)
	}
	picture := asks("bigpc", "")
	picture.Input = responses.ResponseNewParamsInputUnion{OfInputItemList: responses.ResponseInputParam{param.Override[responses.ResponseInputItemUnionParam](
		json.RawMessage(`{"role":"user","content":[{"type":"input_image","image_url":"` + onePixel + `"},{"type":"input_text","text":"the first words"}]}`))}}
	say(picture, "the first words")
	if n := model.pictures(); n != 1 {
		t.Errorf("the model saw %d pictures", n)
	}
	picture.Input.OfInputItemList[0] = param.Override[responses.ResponseInputItemUnionParam](json.RawMessage(`{"role":"user","content":[{"type":"input_image","image_url":"file:///etc/passwd"}]}`))
	_, err := c.Responses.New(ctx, picture)
	refusedAs(t, err, http.StatusBadRequest, "invalid_value")
}

const onePixel = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="

// cancels cancels long work in the background: its turn is interrupted.
func (c sdk) cancels(p responses.ResponseNewParams) {
	t, ctx := c.t, c.t.Context()
	t.Helper()
	p.Background = param.NewOpt(true)
	long := ok[*responses.Response](t)(c.Responses.New(ctx, p))
	id := strings.TrimPrefix(long.ID, "resp_")
	until(t, "the long work to run", func() bool { return len(c.whole(id).Items) > 0 })
	if gone := ok[*responses.Response](t)(c.Responses.Cancel(ctx, long.ID)); gone.Status != responses.ResponseStatusCancelled {
		t.Errorf("%s", gone.RawJSON())
	}
	until(t, "the turn to be interrupted", func() bool { return c.whole(id).Outcome == handoff.OutcomeInterrupted })
}
