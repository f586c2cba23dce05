// The openai package with its WebSocket for browsers. It insists on TLS, and a key as a subprotocol.
const OpenAI = require("openai").default;
const { OpenAIRealtimeWebSocket } = require("openai/realtime/websocket");
const { talk } = require("./protocol.cjs");

module.exports = ({ secure, key }, log) => {
  const client = new OpenAI({ apiKey: key, baseURL: `${secure}/v1`, dangerouslyAllowBrowser: true });
  let realtime;
  const talking = talk(log, (event) => realtime.send(event));
  return {
    ...talking,
    async open() {
      realtime = new OpenAIRealtimeWebSocket({ model: "gpt-realtime-2.1" }, client);
      realtime.on("event", talking.take);
      realtime.on("error", (error) => log.errors.push(error.message));
      await new Promise((open) => realtime.socket.addEventListener("open", open));
      await talking.configure();
    },
    close: () => new Promise((closed) => { realtime.socket.addEventListener("close", closed); realtime.close(); }),
  };
};
