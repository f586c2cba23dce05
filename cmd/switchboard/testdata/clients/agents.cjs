// @openai/agents-realtime, over either transport.
const { RealtimeAgent, RealtimeSession, tool } = require("@openai/agents-realtime");
const { instructions, weather, report, note, pieces } = require("./protocol.cjs");

module.exports = ({ base, key, transport, speak }, log) => {
  const own = tool({
    name: weather.name, description: weather.description, strict: false, parameters: { ...weather.parameters, additionalProperties: true },
    execute: (args) => report(JSON.stringify(args)),
  });
  const agent = new RealtimeAgent({ name: "elsewhere", instructions, tools: [own] });
  const session = new RealtimeSession(agent, { transport, model: "gpt-realtime-2.1" });
  session.on("error", (error) => log.errors.push(JSON.stringify(error)));
  session.transport.on("*", (event) => event.type !== "error" && note(log, event));
  const url = transport === "webrtc" ? `${base}/v1/realtime/calls` : `${base.replace("http", "ws")}/v1/realtime`;
  return {
    open: () => session.connect({ apiKey: key, url }),
    say: (words) => session.sendMessage(words),
    speak: speak ?? (() => pieces((sound) => session.sendAudio(sound.buffer))),
    close: () => session.close(),
  };
};
