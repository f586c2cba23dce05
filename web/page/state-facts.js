// What is known of the call as such: how long the last answer took, and what was used. Pure: `at` is milliseconds.

export const factsStart = {
  began: 0, // when the call came up
  asked: 0, // when the caller had spoken, until the answer is heard
  begun: false, // since then the voice model has begun an answer
  answered: 0, // how long the last answer took to begin, at least 1 ms; 0: none has
  tokens: 0, // of the responses that were seen
  used: { text_in: 0, text_cached: 0, text_out: 0, audio_in: 0, audio_cached: 0, audio_out: 0, image_in: 0, image_cached: 0 }, // the same by kind; null: not told
  rtt: null, // ms
  lost: null, // share of packets
};

const begins = new Set(["response.output_audio_transcript.delta", "response.output_text.delta", "output_audio_buffer.started"]);

/** Returns the facts after an action. */
export function reduceFacts(facts, action) {
  switch (action.type) {
    case "call-began":
      return { ...factsStart, began: action.at };
    case "connection":
      return { ...facts, rtt: action.rtt, lost: action.lost };
    case "typed":
      return { ...facts, asked: action.at ?? 0, begun: false };
    case "voice":
      return ofVoice(facts, action.event, action.at ?? 0);
    default:
      return facts;
  }
}

function ofVoice(facts, event, at) {
  if (event.type === "input_audio_buffer.speech_stopped") return { ...facts, asked: at, begun: false };
  if (event.type === "response.created") return { ...facts, begun: true };
  if (begins.has(event.type) && facts.asked && facts.begun) return { ...facts, asked: 0, answered: Math.max(1, at - facts.asked) };
  const usage = event.type === "response.done" && event.response?.usage;
  if (usage) return { ...facts, tokens: facts.tokens + (usage.total_tokens ?? 0), used: added(facts.used, usage) };
  return facts;
}

// Adds what a response used. What was cached is told as a part of what went in.
function added(used, { input_token_details: into, output_token_details: out }) {
  if (!used || !into || !out) return null;
  const cached = into.cached_tokens_details ?? { text_tokens: into.cached_tokens };
  const [text, audio, image] = [cached.text_tokens ?? 0, cached.audio_tokens ?? 0, cached.image_tokens ?? 0];
  const one = {
    text_in: (into.text_tokens ?? 0) - text, text_cached: text, text_out: out.text_tokens ?? 0,
    audio_in: (into.audio_tokens ?? 0) - audio, audio_cached: audio, audio_out: out.audio_tokens ?? 0,
    image_in: (into.image_tokens ?? 0) - image, image_cached: image,
  };
  return Object.fromEntries(Object.keys(used).map((kind) => [kind, used[kind] + Math.max(0, one[kind])]));
}

const dollars = new Intl.NumberFormat("en", { style: "currency", currency: "USD" });

/** What a call has cost so far, in words: money where the prices are known, else tokens. */
export function costWords({ tokens, used }, { simulated, prices }) {
  if (simulated && !prices) return "no cost";
  if (!tokens) return "";
  if (!prices || !used) return `${tokens.toLocaleString("en")} tokens`;
  const cost = Object.keys(used).reduce((sum, kind) => sum + used[kind] * prices[kind] / 1e6, 0);
  return cost < 0.01 ? "less than a cent" : `about ${dollars.format(cost)}`;
}

/** The facts in words: [what, value]. `at` is now. */
export function factWords({ facts, call, voice }, at) {
  if (call.phase !== "live" && call.phase !== "reconnecting") return [];
  const seconds = Math.max(0, Math.floor((at - facts.began) / 1000));
  const two = (n) => String(n).padStart(2, "0");
  const time = seconds < 3600 ? `${Math.floor(seconds / 60)}:${two(seconds % 60)}` : `${Math.floor(seconds / 3600)}:${two(Math.floor(seconds / 60) % 60)}:${two(seconds % 60)}`;
  return [
    ["In the call", time],
    ["Voice", voice.simulated ? "simulated" : [voice.model, voice.host].filter(Boolean).join(" at ")],
    ["Connection", call.socket ? "over HTTPS: nothing else gets through" : facts.rtt === null ? "" : `${Math.round(facts.rtt)} ms, ${facts.lost > 0 ? `${(facts.lost * 100).toFixed(1)} % lost` : "nothing lost"}`],
    ["Last answer", facts.answered ? `answered in ${Math.max(0.1, facts.answered / 1000).toFixed(1)} s` : ""],
    ["Cost so far", costWords(facts, voice)],
  ].filter(([, value]) => value);
}
