// Pipecat's transport for OpenAI, over WebRTC in a browser. It knows OpenAI's address alone, and has the microphone from
// a program that it loads from Daily's: here both are put right. It reads the names of the beta protocol, so that what is
// heard is read beside it.
const { PipecatClient } = require("@pipecat-ai/client-js");
const { OpenAIRealTimeWebRTCTransport } = require("@pipecat-ai/openai-realtime-webrtc-transport");
const { instructions, weather, note } = require("./protocol.cjs");
const { until } = require("./drive.cjs");

class Transport extends OpenAIRealTimeWebRTCTransport {
  async initDevices() { this.state = "initialized"; }
}

module.exports = ({ base, key, speak }, log) => {
  const fetched = window.fetch;
  window.fetch = (url, options) => fetched(String(url).replace("https://api.openai.com/v1/realtime?", `${base}/v1/realtime/calls?`), options);
  const transport = new Transport({ api_key: key, settings: { instructions, tools: [weather] } });
  const client = new PipecatClient({ transport, enableMic: true });
  return {
    async open() {
      transport._openai_channel.addEventListener("message", ({ data }) => note(log, JSON.parse(data)));
      await client.connect();
      await until("its configuration to be refused", () => log.errors.some((message) => message.includes("session.type")));
    },
    say: (content) => client.appendToContext({ role: "user", content, run_immediately: true }),
    speak,
    close: () => client.disconnect(),
  };
};
