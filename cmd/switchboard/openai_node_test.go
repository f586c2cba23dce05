package main

import (
	"cmp"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

// The strictest of OpenAI's clients: it throws at an event that does not fit those before it.
const openaiNode = `
import OpenAI from "openai";
const [base, key] = process.argv.slice(1);
const client = new OpenAI({baseURL: base + "/v1", apiKey: key, maxRetries: 0});
const out = {};
out.models = (await client.models.list()).data.length >= 4;
const stream = client.responses.stream({model: "bigpc", input: [{role: "user", content: "run the tests"}]});
let text = "";
stream.on("response.output_text.delta", e => text += e.delta);
const final = await stream.finalResponse();
out.streamed = final.status === "completed" && final.output_text === text && text.length > 0;
const back = client.responses.stream({model: "bigpc", input: "fix it", previous_response_id: final.id, background: true});
const first = await back.finalResponse();
const replay = client.responses.stream({response_id: first.id, starting_after: 3});
const seen = [];
replay.on("event", e => seen.push(e.sequence_number));
out.replayed = (await replay.finalResponse()).output_text === first.output_text && seen[0] === 4;
const stopped = client.responses.stream({model: "laptop", input: "run the benchmarks", background: true, store: true});
for await (const e of stopped) if (e.type === "response.in_progress") await client.responses.cancel(e.response.id);
out.cancelled = (await stopped.finalResponse()).status;
const talk = await client.conversations.create({
	metadata: {topic: "demo"}, items: [{type: "message", role: "user", content: "and be brief"}],
});
await client.responses.create({model: "bigpc", input: "run the tests", conversation: talk.id});
const second = await client.responses.create({model: "bigpc", input: "fix it", conversation: talk.id});
out.conversation = second.conversation.id === talk.id;
out.topic = (await client.conversations.retrieve(talk.id)).metadata.topic;
out.dropped = (await client.conversations.delete(talk.id)).deleted;
try { await client.conversations.retrieve(talk.id) } catch (e) { out.gone = e.status }
try { await client.responses.create({model: "nowhere", input: "x"}) } catch (e) { out.unknown = e.code }
console.log(JSON.stringify(out));
`

// TestOpenAINode: OpenAI's JavaScript client, unmodified, reads our streams, a replay, a cancelled one and
// conversations.
func TestOpenAINode(t *testing.T) {
	t.Parallel()
	c := fleetSDK(t)
	want := `{"models":true,"streamed":true,"replayed":true,"cancelled":"cancelled","conversation":true,"topic":"demo","dropped":true,"gone":404,"unknown":"model_not_found"}`
	if got := node(t, openaiNode, c.base, testKey); got != want {
		t.Errorf("got\n%s, want\n%s", got, want)
	}
}

// What a schema asks for comes as an object, and an answer in words does not pass for one.
const openaiParse = `
import OpenAI from "openai";
import { zodTextFormat } from "openai/helpers/zod";
import { z } from "zod";
const [base, key] = process.argv.slice(1);
const client = new OpenAI({baseURL: base + "/v1", apiKey: key, maxRetries: 0});
const format = zodTextFormat(z.object({branch: z.string(), failing: z.number()}), "state");
const out = {};
const ask = input => client.responses.parse({model: "bigpc", input, text: {format}});
out.parsed = (await ask("as JSON")).output_parsed;
out.fenced = (await ask("as JSON in a fence")).output_parsed;
const stream = client.responses.stream({model: "bigpc", input: "as JSON", text: {format}});
out.streamed = (await stream.finalResponse()).output_parsed;
const words = await ask("in words");
out.words = [words.status, words.error.code, words.output_parsed];
console.log(JSON.stringify(out));
`

// TestOpenAIParse: OpenAI's JavaScript client parses what a schema asked for.
func TestOpenAIParse(t *testing.T) {
	t.Parallel()
	provider := newProvider(t)
	provider.script = func(s *providerStream, items []providerItem) bool {
		text, _ := lastUser(items)
		if len(provider.knew("branch", "failing", "JSON schema")) != 3 {
			text = "the schema did not come"
		}
		said := map[string]string{"as JSON": `{"branch":"main","failing":1}`, "as JSON in a fence": "```json\n{\"branch\":\"main\",\"failing\":2}\n```"}[text]
		s.say(cmp.Or(said, text), 0)
		return true
	}
	c := agentBehind(t, provider, t.TempDir())
	want := `{"parsed":{"branch":"main","failing":1},"fenced":{"branch":"main","failing":2},"streamed":{"branch":"main","failing":1},"words":["failed","server_error",null]}`
	if got := node(t, openaiParse, c.base, testKey); got != want {
		t.Errorf("got\n%s, want\n%s", got, want)
	}
}

// send posts a response with more headers, and returns the status and the answer.
func (c sdk) send(body string, headers ...string) (int, map[string]any) {
	c.t.Helper()
	return c.post("/v1/responses", body, headers...)
}

func (c sdk) post(path, body string, headers ...string) (int, map[string]any) {
	c.t.Helper()
	status, data := c.ask(http.MethodPost, path, body, headers...)
	got := map[string]any{}
	if err := json.Unmarshal(data, &got); err != nil {
		c.t.Errorf("%v in %q", err, data)
	}
	return status, got
}

// made posts what must be done, and returns the answer.
func (r *running) made(path, body string, headers ...string) (got map[string]any) {
	r.t.Helper()
	status, data := r.ask(http.MethodPost, path, body, headers...)
	if err := json.Unmarshal(data, &got); err != nil || status != http.StatusOK {
		r.t.Fatalf("%s: %d %s", body, status, data)
	}
	return got
}

// TestReadmeSnippets: what the README says in JavaScript and to curl works as it stands.
func TestReadmeSnippets(t *testing.T) {
	t.Parallel()
	c := fleetSDK(t)
	text := strings.ReplaceAll(readmeText(t), "http://127.0.0.1:8080", c.base)
	snippets := blocks(text, "js")
	if len(snippets) != 1 {
		t.Fatalf("%d snippets", len(snippets))
	}
	if said := node(t, "const KEY = process.argv[1];"+snippets[0], testKey); !strings.Contains(said, "fail") {
		t.Errorf("it says %q", said)
	}
	for _, shell := range blocks(text, "sh") {
		if !strings.Contains(shell, "/v1/responses") {
			continue
		}
		_, body, _ := strings.Cut(shell, "-d '")
		if status, got := c.send(strings.TrimSuffix(strings.TrimSpace(body), "'")); status != http.StatusOK || got["status"] != "completed" {
			t.Errorf("%d %v", status, got)
		}
	}
}
