// Puts a client through everything in a browser. `seen` is what the test put there: it makes a sound. `sound` tells how
// it travelled, there and back.
const { drive, newLog, sleep } = require("./drive.cjs");

const clients = {
  agents: require("./agents.cjs"), openai_webrtc: require("./openai_webrtc.cjs"), openai_websocket: require("./openai_websocket.cjs"), pipecat: require("./pipecat.cjs"),
};

window.put = (name, { skip, lacks, ...about }) => {
  const log = newLog();
  const speak = async () => {
    window.seen.makeSound(true);
    await sleep(1000);
    window.seen.makeSound(false);
    await sleep(800);
    const stats = [...(await window.seen.peers.at(-1).getStats()).values()];
    const codec = (type) => stats.find(({ id }) => id === stats.find((s) => s.type === type)?.codecId)?.mimeType;
    window.sound = `${codec("outbound-rtp")} ${codec("inbound-rtp")}`;
  };
  return drive(clients[name]({ ...about, speak }, log), log, skip, lacks);
};
