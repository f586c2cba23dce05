// codex as a voice client: an app-server holds the call (thread/realtime), and is spoken to over its own API. Its
// tool is its own agent: background_agent. All is said by voice.
const { spawn } = require("node:child_process");
const { createInterface } = require("node:readline");
const { instructions, pieces, base64 } = require("./protocol.cjs");

module.exports = ({ program, env, cwd, transport }, log) => {
  const child = spawn(program, ["app-server"], { env, cwd, stdio: ["pipe", "pipe", "ignore"] });
  const gone = new Promise((done) => child.once("exit", done));
  child.stdin.on("error", () => {}); // what it no longer reads: gone says it
  // It has ended before its folders are removed.
  const kill = () => (child.kill("SIGKILL"), gone);
  const waiting = new Map();
  let started, closed, thread, talks, cut;
  const begun = new Promise((done, failed) => (started = { done, failed }));
  const ended = new Promise((done) => (closed = done));
  const take = {
    "thread/realtime/started": () => started.done(),
    "thread/realtime/error": ({ message }) => { log.errors.push(message); started.failed(new Error(message)); },
    "thread/realtime/closed": () => closed(),
    "thread/realtime/transcript/delta": ({ role }) => {
      if (role !== "assistant") return;
      log.begun++;
      talks = true;
    },
    "thread/realtime/transcript/done": ({ role, text }) => {
      if (role !== "assistant") return;
      log.heard.push(text);
      log.cut += cut ? 1 : 0;
      talks = cut = false;
    },
    "thread/realtime/itemAdded": ({ item }) => { cut ||= talks && item.type === "input_audio_buffer.speech_started"; },
  };
  createInterface({ input: child.stdout }).on("line", (line) => {
    const { id, method, params, result, error } = JSON.parse(line);
    if (method) return take[method]?.(params);
    const { done, failed } = waiting.get(id);
    error ? failed(new Error(error.message)) : done(result);
  });
  const ask = (method, params) => new Promise((done, failed) => {
    const id = waiting.size;
    waiting.set(id, { done, failed });
    child.stdin.write(`${JSON.stringify({ id, method, params })}\n`);
  });
  const speak = () => pieces((sound) => ask("thread/realtime/appendAudio", {
    threadId: thread, audio: { data: base64(sound), sampleRate: 24000, numChannels: 1, samplesPerChannel: sound.length },
  }));
  return {
    async open() {
      await ask("initialize", { clientInfo: { name: "test", version: "1" }, capabilities: { experimentalApi: true } });
      child.stdin.write('{"method":"initialized"}\n');
      thread = (await ask("thread/start", { cwd })).thread.id;
      const voice = { outputModality: "audio", version: "v2", transport, prompt: instructions };
      try {
        // Its refusal may come before the answer.
        await Promise.all([ask("thread/realtime/start", { threadId: thread, ...voice }), begun]);
      } catch (error) {
        await kill();
        throw error;
      }
    },
    say: speak,
    speak,
    async close() {
      await ask("thread/realtime/stop", { threadId: thread });
      await ended;
      await kill();
    },
  };
};
