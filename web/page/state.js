// What the page knows, and how each thing that happens changes it. Pure: no DOM, no time, no network.

import { stillDismissed } from "./state-needs.js";
import { factsStart, reduceFacts } from "./state-facts.js";
import { talkStart, reduceTalk } from "./state-talk.js";
import { workStart, reduceWork } from "./state-work.js";

export const callStart = {
  phase: "idle", // idle, asking, connecting, live, reconnecting
  id: "",
  mic: "off", // off, asking, on, refused, taken: by the device, for a phone call perhaps
  micReason: "",
  muted: false,
  held: false,
  telephone: false,
  renewed: false, // for a moment: it goes on over another connection
  socket: false, // its sound goes over a WebSocket: WebRTC does not get through
};

export const start = {
  session: "unknown", // unknown, in, out
  feed: "connecting", // connecting, live, lost
  away: false, // Switchboard is not heard now; the feed counts as lost only after a moment
  seen: 0, // when the connection was lost, in ms: what is shown is from then
  loaded: false,
  voice: { simulated: false, model: "", chips: [] },
  servers: [],
  instances: [], // of Switchboard, where several are one: told to the owner alone
  machines: {}, // by name: how it is set up
  level: "milestones", // how much is told of work: quiet, milestones, chatty
  facts: factsStart,
  sessions: {}, // by machine: { state: loading | ready | failed, items, more, problem }
  mode: "open", // open, hold
  call: callStart,
  usedChips: [],
  dismissed: {}, // what needs nobody any more, by its key
  toasts: [], // the last is shown, in place of the one before; one that stays is shown again after it
  talk: talkStart,
  work: workStart,
};

/** Returns the state after an action. */
export function reduce(state, action) {
  switch (action.type) {
    case "session":
      return { ...state, session: action.session };
    case "away":
      return { ...state, away: action.on };
    case "feed":
      return { ...state, feed: action.state, seen: action.state === "lost" && state.feed !== "lost" ? action.at : state.seen };
    case "servers":
      return tidy({ ...state, loaded: true, servers: action.items, instances: action.instances ?? [], voice: { ...start.voice, ...action.voice } });
    case "machines":
      return { ...state, machines: action.machines };
    case "level":
      return { ...state, level: action.level };
    case "dismissed":
      return { ...state, dismissed: { ...state.dismissed, ...action.keys } };
    case "sessions":
      return { ...state, sessions: { ...state.sessions, [action.server]: action.value } };
    case "mode":
      return { ...state, mode: action.mode, call: { ...state.call, held: false } };
    case "toast":
      return { ...state, toasts: [...state.toasts.filter((t) => t.stays && t.text !== action.toast.text).slice(-1), action.toast] };
    case "untoast":
      return { ...state, toasts: state.toasts.filter((t) => t.id !== action.id) };
    case "call":
      return reduceCall(state, action.patch);
    default:
      return { ...state, usedChips: ticked(state, action), facts: reduceFacts(state.facts, action), talk: reduceTalk(state.talk, action), work: reduceWork(state.work, action) };
  }
}

// A sentence to try is ticked off when it was said by its button or typed, also in another case or with a full stop.
const bare = (text) => text.toLowerCase().replace(/\s+/g, " ").replace(/[\s.!?…]+$/, "").trim();
function ticked({ usedChips, voice }, { type, text }) {
  const chip = type === "typed" && voice.chips.find((c) => bare(c.text) === bare(text))?.text;
  return chip && !usedChips.includes(chip) ? [...usedChips, chip] : usedChips;
}

/** Tells of a sentence to try whether it was said, here or before the page was loaded anew: ticks(state)(chip). */
export function ticks({ usedChips, talk }) {
  const before = new Set(talk.entries.filter((e) => e.recalled && e.who === "you").map((e) => bare(e.text)));
  return (chip) => usedChips.includes(chip.text) || before.has(bare(chip.text));
}

const tidy = (state) => ({ ...state, dismissed: stillDismissed(state.dismissed, state) });

function reduceCall(state, patch) {
  const call = { ...state.call, ...patch };
  let talk = state.talk;
  const ended = call.phase === "idle" && state.call.phase !== "idle";
  if (ended) Object.assign(call, { id: "", held: false, muted: false, telephone: false, socket: false, renewed: false });
  // A call that comes back after a loss is another one: what the lost one was doing is over.
  if (ended || (state.call.id && call.id !== state.call.id)) talk = reduceTalk(talk, { type: "call-ended" });
  return { ...state, call, talk };
}
