// What all clients share that look at the protocol's own events.
const { sleep } = require("./drive.cjs");

const instructions = "Be brief and kind.";
const weather = {
  type: "function", name: "weather", description: "The weather in a city.",
  parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
};
const report = (args) => `It rains in ${JSON.parse(args).city}.`;

/** Notes in a log what an event tells. */
function note(log, event) {
  switch (event.type) {
    case "error": return log.errors.push(event.error.message);
    case "response.output_audio_transcript.delta": return log.begun++;
    case "response.output_audio_transcript.done": return log.heard.push(event.transcript);
    case "response.done": return log.cut += event.response.status === "cancelled" ? 1 : 0;
    case "response.output_item.done": return event.item.type === "function_call" && log.calls.push(event.item.name);
  }
}

/** A client that speaks the protocol itself: send(event) sends one, and take(event) gets those that come. */
function talk(log, send) {
  let ready;
  const configured = new Promise((done) => (ready = done));
  return {
    take(event) {
      note(log, event);
      if (event.type === "session.updated") ready();
      if (event.type === "response.output_item.done" && event.item.name === "weather") {
        send({ type: "conversation.item.create", item: { type: "function_call_output", call_id: event.item.call_id, output: report(event.item.arguments) } });
        send({ type: "response.create" });
      }
    },
    configure() {
      send({ type: "session.update", session: { type: "realtime", instructions, tools: [weather] } });
      return configured;
    },
    say(text) {
      send({ type: "conversation.item.create", item: { type: "message", role: "user", content: [{ type: "input_text", text }] } });
      send({ type: "response.create" });
    },
    speak: () => pieces((sound) => send({ type: "input_audio_buffer.append", audio: base64(sound) })),
  };
}

/** Gives a second of a tone and one of silence, PCM16 at 24 kHz, in pieces of 40 ms and at their pace. */
async function pieces(give) {
  for (let n = 0; n < 50; n++) {
    give(Int16Array.from({ length: 960 }, (_, i) => (n < 25 ? Math.round(12000 * Math.sin((2 * Math.PI * 300 * i) / 24000)) : 0)));
    await sleep(40);
  }
}

/** Samples as the protocol carries them. */
const base64 = (sound) => btoa(String.fromCharCode(...new Uint8Array(sound.buffer)));

module.exports = { instructions, weather, report, note, talk, pieces, base64 };
