// Microphones and speakers of this machine, and what the person chose.

import { keep, recall } from "./storage.js";
import { micWords } from "./words.js";

const defaults = { mode: "open", input: "", output: "", play: true, aloud: true, sounds: true, history: true, keys: true, voice: "", speed: "1", language: "", interrupt: true, to: "", toTitle: "" };
const place = "switchboard-sound";

/** What the person chose on this browser. A browser that keeps nothing gives the defaults. */
export const loadSettings = () => ({ ...defaults, ...recall("localStorage", place) });

export const saveSettings = (settings) => keep("localStorage", place, settings);

/** Asks for the microphone. Throws an Error whose message says in words why there is none. */
export async function openMicrophone(deviceId) {
  if (!navigator.mediaDevices?.getUserMedia) throw new Error(micWords(null, isSecureContext));
  const wish = { echoCancellation: true, noiseSuppression: true, autoGainControl: true };
  const ask = (audio) => navigator.mediaDevices.getUserMedia({ audio });
  try {
    return await ask(deviceId ? { ...wish, deviceId: { exact: deviceId } } : wish);
  } catch (error) {
    if (!deviceId || error.name !== "OverconstrainedError") throw new Error(micWords(error, isSecureContext));
  }
  try {
    return await ask(wish); // the chosen one is unplugged
  } catch (error) {
    throw new Error(micWords(error, isSecureContext));
  }
}

/** Lists devices: { inputs, outputs }, each { id, label }. */
export async function devices() {
  const all = (await navigator.mediaDevices?.enumerateDevices?.().catch(() => [])) ?? [];
  const of = (kind, word) =>
    all.filter((d) => d.kind === kind && d.deviceId && d.deviceId !== "default")
      .map((d, i) => ({ id: d.deviceId, label: d.label || `${word} ${i + 1}` }));
  return { inputs: of("audioinput", "Microphone"), outputs: of("audiooutput", "Speaker") };
}

export const canChooseOutput = () => "setSinkId" in HTMLMediaElement.prototype;

export function onDevices(f) {
  navigator.mediaDevices?.addEventListener?.("devicechange", f);
}

/** Shows how loud a stream is on five bars. Returns a function that ends it. */
export function meter(stream, bars) {
  if (!window.AudioContext) return () => {};
  const context = new AudioContext();
  const analyser = context.createAnalyser();
  analyser.fftSize = 512;
  context.createMediaStreamSource(stream).connect(analyser);
  const samples = new Float32Array(analyser.fftSize);
  const timer = setInterval(() => {
    analyser.getFloatTimeDomainData(samples);
    let sum = 0;
    for (const s of samples) sum += s * s;
    const level = Math.min(1, Math.sqrt(sum / samples.length) * 6);
    bars.forEach((bar, i) => bar.classList.toggle("on", level * bars.length > i + 0.2));
  }, 80);
  return () => {
    clearInterval(timer);
    bars.forEach((bar) => bar.classList.remove("on"));
    context.close().catch(() => {});
  };
}
