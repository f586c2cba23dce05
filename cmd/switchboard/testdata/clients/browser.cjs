// Puts a client through everything in a browser. `seen` is what the test put there: it makes a sound. `sound` tells how
// it travelled, there and back.
const { drive, newLog, sleep } = require("./drive.cjs");

const clients = {
  agents: require("./agents.cjs"), openai_webrtc: require("./openai_webrtc.cjs"), openai_websocket: require("./openai_websocket.cjs"), pipecat: require("./pipecat.cjs"),
};

/** Says by which codecs sound goes out and comes in. The browser may know them a little later than it sounds. */
async function travelled() {
  for (let tries = 0; ; tries++, await sleep(50)) {
    const stats = [...(await window.seen.peers.at(-1).getStats()).values()];
    const codec = (type) => stats.find(({ id }) => id === stats.find((s) => s.type === type)?.codecId)?.mimeType;
    const out = codec("outbound-rtp"), back = codec("inbound-rtp");
    if ((out && back) || tries === 100) return `${out} ${back}`;
  }
}

window.put = (name, { skip, lacks, ...about }) => {
  const log = newLog();
  const speak = async () => {
    window.seen.makeSound(true);
    await sleep(1000);
    window.seen.makeSound(false);
    await sleep(800);
    window.sound = await travelled();
  };
  return drive(clients[name]({ ...about, speak }, log), log, skip, lacks);
};
