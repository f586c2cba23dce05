package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// node runs a module with the Node that packages of today want; what it imports is in .tools.
func node(t *testing.T, script string, args ...string) string {
	t.Helper()
	run := exec.CommandContext(t.Context(), modernNode(t), append([]string{"--input-type=module", "-e", script}, args...)...)
	run.Dir = filepath.Dir(filepath.Dir(npmFile(t, "ai"))) // modules are looked for here
	var complaints strings.Builder
	run.Stderr = &complaints
	out, err := run.Output()
	if err != nil {
		t.Fatalf("%v: %s%s", err, out, &complaints)
	}
	return strings.TrimSpace(string(out))
}

// A chat keeps what was said, and sends it with each turn: by default as references to items that are kept here.
const aiChat = `
import { createOpenAI } from "@ai-sdk/openai";
import { generateText, streamText } from "ai";
const [base, apiKey] = process.argv.slice(1);
const sent = [];
const openai = createOpenAI({ baseURL: base + "/v1", apiKey, fetch: (url, init) => (sent.push(init.body), fetch(url, init)) });
const ask = (messages, more) => generateText({ model: openai("bigpc"), messages, maxRetries: 0, ...more });
const out = {};
for (const [name, options] of Object.entries({ chat: () => ({}), after: (id) => ({ previousResponseId: id }), unstored: () => ({ store: false }) })) {
  const messages = [{ role: "user", content: "which branch is it?" }];
  const first = await ask(messages, { providerOptions: { openai: options() } });
  messages.push(...first.response.messages, { role: "user", content: "run the benchmarks" });
  const last = await ask(messages, { providerOptions: { openai: options(first.providerMetadata.openai.responseId) } });
  out[name] = [first.text.includes("auth-refactor"), last.text.includes("benchmark"), sent.at(-1).includes("item_reference")];
  if (name !== "chat") continue;
  messages.push(...last.response.messages, { role: "user", content: "and which branch is it?" });
  const stream = streamText({ model: openai("bigpc"), system: "Be brief.", messages, maxRetries: 0 });
  out.streamed = (await stream.text).includes("auth-refactor");
}
console.log(JSON.stringify(out));
`

// TestAISDKChat: the AI SDK's chat works as it comes, and goes on in one session; also after a response by its id, and
// without anything being kept.
func TestAISDKChat(t *testing.T) {
	t.Parallel()
	c := fleetSDK(t)
	want := `{"chat":[true,true,true],"streamed":true,"after":[true,true,true],"unstored":[true,true,false]}`
	if got := node(t, aiChat, c.base, testKey); got != want {
		t.Errorf("got\n%s, want\n%s", got, want)
	}
	until(t, "what is not stored to be forgotten", func() bool { return len(c.handoffs()) == 5 })
	sessions := map[string]int{}
	for _, rec := range c.handoffs() {
		sessions[rec.ThreadID]++
	}
	if len(sessions) != 2 || sessions[c.handoffs()[0].ThreadID] != 3 {
		t.Errorf("in the sessions %v", sessions)
	}
}

// Its approvals are for tools of an MCP server; the machine is one, by its name.
const aiApproval = `
import { createOpenAI } from "@ai-sdk/openai";
import { generateText } from "ai";
const [base, apiKey] = process.argv.slice(1);
const openai = createOpenAI({ baseURL: base + "/v1", apiKey });
const tools = { bigpc: openai.tools.mcp({ serverLabel: "bigpc", serverUrl: base + "/mcp", requireApproval: "always" }) };
const ask = (messages) => generateText({ model: openai("bigpc"), tools, messages, maxRetries: 0 });
const out = [];
for (const approved of [true, false]) {
  const messages = [{ role: "user", content: "push the branch" }];
  const asked = await ask(messages);
  const questions = asked.content.filter((part) => part.type === "tool-approval-request");
  out.push(questions.map((q) => q.toolCall.input.command));
  messages.push(...asked.response.messages, { role: "tool", content: questions.map(({ approvalId }) =>
    ({ type: "tool-approval-response", approvalId, approved, providerExecuted: true })) });
  const done = await ask(messages);
  out.push(done.text);
  messages.push(...done.response.messages, { role: "user", content: "run the tests" });
  out.push((await ask(messages)).text.includes("TestRefresh"));
}
console.log(JSON.stringify(out));
`

// TestAISDKApproval: what an agent asks reaches the AI SDK's approvals, its answer the agent, and the chat goes on.
func TestAISDKApproval(t *testing.T) {
	t.Parallel()
	c := fleetSDK(t)
	push := `["/bin/bash -lc 'git push origin auth-refactor'"]`
	want := `[` + push + `,"The branch auth-refactor is pushed.",true,` + push + `,"I did not push the branch, because you said no.",true]`
	if got := node(t, aiApproval, c.base, testKey); got != want {
		t.Errorf("got\n%s, want\n%s", got, want)
	}
	sessions := map[string]bool{}
	for _, rec := range c.handoffs() {
		sessions[rec.ThreadID] = true
	}
	if len(sessions) != 2 || len(c.handoffs()) != 4 {
		t.Errorf("%d in the sessions %v", len(c.handoffs()), sessions)
	}
}

// An agent of the Agents SDK has a machine as its model, and the machine's name as a hosted MCP tool for its questions.
const agentsApproval = `
import OpenAI from "openai";
import { Agent, Runner, OpenAIResponsesModel, hostedMcpTool, setTracingDisabled } from "@openai/agents";
const [base, apiKey] = process.argv.slice(1);
setTracingDisabled(true);
const model = new OpenAIResponsesModel(new OpenAI({ baseURL: base + "/v1", apiKey, maxRetries: 0 }), "bigpc");
const agent = (more) => new Agent({ name: "coder", instructions: "Be brief.", model,
  tools: [hostedMcpTool({ serverLabel: "bigpc", requireApproval: "always", ...more })] });
const runner = new Runner();
const out = {};
const coder = agent();
for (const answer of ["approve", "reject"]) {
  let result = await runner.run(coder, "push the branch");
  const asked = result.interruptions.map((i) => JSON.parse(i.rawItem.providerData.arguments).command);
  for (const i of result.interruptions) result.state[answer](i);
  result = await runner.run(coder, result.state);
  out[answer] = [asked, result.finalOutput];
  const next = await runner.run(coder, "run the tests", { previousResponseId: result.lastResponseId });
  out[answer].push(next.finalOutput.includes("TestRefresh"));
  const history = await runner.run(coder, [...result.history, { role: "user", content: "run the tests" }]);
  out[answer].push(history.finalOutput.includes("TestRefresh"));
}
const asked = [];
const itself = agent({ onApproval: async (_, item) => (asked.push(item.rawItem.name), { approve: true }) });
const stream = await runner.run(itself, "push the branch", { stream: true });
await stream.completed;
out.itself = [asked, stream.finalOutput];
console.log(JSON.stringify(out));
`

// TestAgentsSDKApproval: what a machine asks reaches the approvals of @openai/agents, as interruptions and by its
// callback, and the run goes on.
func TestAgentsSDKApproval(t *testing.T) {
	t.Parallel()
	c := fleetSDK(t)
	push := `["/bin/bash -lc 'git push origin auth-refactor'"]`
	want := `{"approve":[` + push + `,"The branch auth-refactor is pushed.",true,true],"reject":[` + push +
		`,"I did not push the branch, because you said no.",true,true],"itself":[["shell"],"The branch auth-refactor is pushed."]}`
	if got := node(t, agentsApproval, c.base, testKey); got != want {
		t.Errorf("got\n%s, want\n%s", got, want)
	}
	if _, got := c.send(`{"model":"bigpc","input":"hi","tools":[{"type":"mcp","server_label":"laptop"}]}`); !strings.Contains(c.errorOf(got), "'bigpc'") {
		t.Errorf("another label: %v", got)
	}
}

func (c sdk) errorOf(got map[string]any) string {
	e, _ := got["error"].(map[string]any)
	message, _ := e["message"].(string)
	return message
}
