// The call: its state in words, its controls, and the sound settings.

import { canChooseOutput, devices, meter, onDevices } from "./audio.js";
import { byId, dress, h, setAttr, setText, show } from "./dom.js";
import { pushToTalk } from "./keys.js";
import { running } from "./state-work.js";
import { hasVoices, onVoices } from "./speech.js";
import { callWords } from "./words.js";

/** Wires the controls. `acts`: start, hangUp, mute, hold(on), quiet, useMic, settings (object), changed(name). */
export function callView(acts) {
  const el = Object.fromEntries(["status", "status-text", "status-detail", "start", "mute", "hold", "quiet", "hangup", "sound", "hangup-hint", "meter", "telephone", "by-socket", "dock-fold"]
    .map((id) => [id.replace(/-(.)/g, (_, c) => c.toUpperCase()), byId(id)]));
  let now;
  dress(el.sound, "sound", "Sound");
  let folded = false; // by the person, for this call
  el.dockFold.addEventListener("click", () => { folded = !folded; fold(); });
  const fold = () => {
    const { phase } = now.call;
    if (phase === "idle") folded = false;
    setAttr(document.body, "data-dock", folded || phase === "idle" ? "line" : null);
    show(el.dockFold, phase !== "idle");
    dress(el.dockFold, "chevron", "");
    setAttr(el.dockFold, "aria-label", folded ? "Show all of the call" : "Fold the call into a line");
    setAttr(el.dockFold, "aria-expanded", String(!folded));
  };
  el.start.addEventListener("click", acts.start);
  el.hangup.addEventListener("click", acts.hangUp);
  el.quiet.addEventListener("click", acts.quiet);
  el.mute.addEventListener("click", () => (now.call.mic === "on" || now.call.mic === "asking" ? acts.mute(!now.call.muted) : acts.useMic()));
  pushToTalk(el.hold, () => now?.mode === "hold" && now.call.phase !== "idle" && now.call.mic === "on", acts.hold);
  const settings = soundMenu(acts);

  return (state) => {
    now = state;
    const { call, talk, mode } = state;
    const words = callWords(state);
    const inCall = call.phase !== "idle";
    const hasMic = call.mic === "on" || call.mic === "asking";
    setText(el.statusText, words.text);
    setText(el.statusDetail, words.detail);
    setAttr(el.status, "data-tone", words.tone);
    const focus = document.activeElement;
    show(el.start, !inCall);
    show(el.mute, inCall && !(mode === "hold" && hasMic));
    show(el.hold, inCall && mode === "hold" && hasMic);
    show(el.quiet, call.phase === "live");
    const talks = talk.speaking || talk.responding;
    show(el.hangup, inCall);
    setText(el.hangupHint, inCall && running(state.work).length > 0 ? "Hanging up does not stop the work." : "");
    show(el.bySocket, call.phase === "live" && call.socket);
    show(el.telephone, call.phase === "live" && call.telephone && hasMic);
    show(el.meter, call.phase === "live" && call.mic === "on");
    dress(el.start, "phone", "Call");
    dress(el.hangup, "phone", call.phase === "asking" || call.phase === "connecting" ? "Cancel" : "Hang up");
    dress(el.quiet, "stop", "Stop talking");
    const muted = call.muted;
    dress(el.mute, !hasMic || muted ? "micOff" : "mic", hasMic ? (muted ? "Unmute" : "Mute") : "Use mic");
    setAttr(el.mute, "aria-pressed", hasMic ? String(muted) : null);
    dress(el.hold, "mic", call.held ? "Talking…" : "Hold to talk");
    setAttr(el.hold, "aria-pressed", String(call.held));
    el.quiet.classList.toggle("hot", talk.speaking);
    el.quiet.classList.toggle("idle", !talks); // its place stays, so that no other button moves under a finger
    keepFocus(focus, el, inCall, mode);
    settings(state);
    fold();
  };
}

// A control that vanishes under the keyboard's focus hands it to the one that follows it.
function keepFocus(focus, el, inCall, mode) {
  if (!(focus?.hidden || focus?.classList.contains("idle")) || ![el.start, el.hangup, el.mute, el.hold, el.quiet].includes(focus)) return;
  if (!inCall) el.start.focus();
  else (mode === "hold" && !el.hold.hidden ? el.hold : el.mute).focus();
}

/** Shows how loud the microphone is. */
export function meterOf(stream) {
  return stream ? meter(stream, [...byId("meter").children]) : () => {};
}

function soundMenu({ settings, changed }) {
  const menu = byId("sound-menu");
  const input = byId("input-device");
  const output = byId("output-device");
  const radios = [...menu.querySelectorAll("input[name=mode]")];
  for (const r of radios) r.addEventListener("change", () => { settings.mode = r.value; changed("mode"); });
  for (const id of ["play", "aloud"]) {
    byId(id).checked = settings[id];
    byId(id).addEventListener("change", (e) => { settings[id] = e.target.checked; changed(id); });
  }
  input.addEventListener("change", () => { settings.input = input.value; changed("input"); });
  output.addEventListener("change", () => { settings.output = output.value; changed("output"); });
  show(byId("output-field"), canChooseOutput());

  const fill = (select, list, chosen, none) => {
    select.replaceChildren(h("option", { value: "", text: none }), ...list.map((d) => h("option", { value: d.id, text: d.label })));
    select.value = list.some((d) => d.id === chosen) ? chosen : "";
  };
  const read = async () => {
    const { inputs, outputs } = await devices();
    fill(input, inputs, settings.input, "Default");
    fill(output, outputs, settings.output, "Default");
  };
  onDevices(read);
  menu.addEventListener("toggle", (e) => { if (e.newState === "open") read(); });
  onVoices(() => notes());

  let simulated = false;
  const notes = () => {
    show(byId("aloud-field"), simulated && hasVoices());
    show(byId("aloud-note"), simulated && !hasVoices());
  };
  return (state) => {
    for (const r of radios) r.checked = r.value === state.mode;
    simulated = state.voice.simulated;
    notes();
  };
}
