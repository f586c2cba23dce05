// The openai package with its WebSocket for node. It insists on TLS.
const OpenAI = require("openai").default;
const { OpenAIRealtimeWS } = require("openai/realtime/ws");
const { talk } = require("./protocol.cjs");

module.exports = ({ secure, key }, log) => {
  const client = new OpenAI({ apiKey: key, baseURL: `${secure}/v1` });
  const realtime = new OpenAIRealtimeWS({ model: "gpt-realtime-2.1", options: { rejectUnauthorized: false } }, client);
  const talking = talk(log, (event) => realtime.send(event));
  realtime.on("event", talking.take);
  realtime.on("error", (error) => log.errors.push(error.message));
  return {
    ...talking,
    async open() {
      await new Promise((open) => realtime.socket.on("open", open));
      await talking.configure();
    },
    close: () => new Promise((closed) => { realtime.socket.on("close", closed); realtime.close(); }),
  };
};
