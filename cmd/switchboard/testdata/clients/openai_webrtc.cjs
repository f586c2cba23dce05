// The openai package over WebRTC, in a browser.
const { OpenAIRealtimeWebRTC } = require("openai/realtime/webrtc");
const { talk } = require("./protocol.cjs");

module.exports = ({ base, key, speak }, log) => {
  const realtime = new OpenAIRealtimeWebRTC();
  const talking = talk(log, (event) => realtime.send(event));
  realtime.onEvent(talking.take);
  const exchangeSdp = async (body, { signal }) => {
    const answer = await fetch(`${base}/v1/realtime/calls`, { method: "POST", body, signal, headers: { authorization: `Bearer ${key}`, "content-type": "application/sdp" } });
    if (!answer.ok) throw new Error(await answer.text());
    return answer.text();
  };
  return {
    ...talking,
    speak,
    async open() {
      const mic = await navigator.mediaDevices.getUserMedia({ audio: true });
      realtime.peerConnection.addTrack(mic.getTracks()[0], mic);
      await realtime.connect({ exchangeSdp });
      await talking.configure();
    },
    close: () => realtime.close(),
  };
};
