// A raw socket of the ws package.
const WebSocket = require("ws");
const { talk } = require("./protocol.cjs");

module.exports = ({ base, key }, log) => {
  const socket = new WebSocket(`${base.replace("http", "ws")}/v1/realtime?model=gpt-realtime-2.1`, { headers: { authorization: `Bearer ${key}` } });
  const talking = talk(log, (event) => socket.send(JSON.stringify(event)));
  socket.on("message", (data) => talking.take(JSON.parse(data)));
  return {
    ...talking,
    async open() {
      await new Promise((open, failed) => socket.on("open", open).on("error", failed));
      await talking.configure();
    },
    close: () => new Promise((closed) => socket.on("close", closed).close()),
  };
};
