// Puts the page together: state, views, feed, call.

import * as api from "./api.js";
import { loadSettings, saveSettings } from "./audio.js";
import { Call } from "./call.js";
import { byId, dress, h, setText, show } from "./dom.js";
import { follow } from "./events.js";
import * as held from "./login.js";
import * as oneCall from "./one-call.js";
import { reader as speechReader } from "./speech.js";
import { toKeep } from "./state-talk.js";
import { ended, running } from "./state-work.js";
import { deviceView } from "./device.js";
import { chime } from "./sounds.js";
import { keepDismissed, loadDismissed } from "./dismissed.js";
import { go, wirePlaces } from "./places.js";
import { greeting } from "./greeting.js";
import { keysOf, shortcuts } from "./shortcuts.js";
import { connectionOf, factsView } from "./view-facts.js";
import { helpView } from "./view-help.js";
import { historyView } from "./view-history.js";
import { keepSaid } from "./keep-said.js";
import { dropCall, freeCall, holdCall, keepCall, keptCall } from "./keep-call.js";
import { onAsked, turnOff } from "./notices.js";
import { notifyPart } from "./view-notify.js";
import { needsView } from "./view-needs.js";
import { sessionsView } from "./view-sessions.js";
import { settingsView } from "./view-settings.js";
import { dispatch, get, note, onChange, refresh, toast, toastProblem } from "./store.js";
import { callView, meterOf } from "./view-call.js";
import { fleetView } from "./view-fleet.js";
import { codeFromAddress, loginView } from "./view-login.js";
import { noticesView } from "./view-notices.js";
import { reader as sessionReader } from "./view-reader.js";
import { prefill, talkView } from "./view-talk.js";
import { deeds, readCleared } from "./work-deeds.js";
import { workView } from "./view-work.js";
import { voiceErrors } from "./voice-errors.js";

const settings = loadSettings();
const remote = byId("remote");
let stopFeed = () => {};
let stopMeter = () => {};

// Each machine keeps one colour, by its place in the fleet.
const hues = new Map();
function hue(server) {
  if (!hues.has(server)) hues.set(server, hues.size % 6);
  return `hue-${hues.get(server)}`;
}

const aloud = speechReader((talking) => call.gateForSpeech(talking));

const call = new Call({
  remote,
  state: get,
  patch: (patch) => {
    if (patch.phase === "live" && !["live", "reconnecting"].includes(get().call.phase)) dispatch({ type: "call-began", at: performance.now() });
    dispatch({ type: "call", patch });
  },
  onEvent: voiceEvent,
  onProblem: (text, next) => toast(text, { next }),
  onBlocked: () => toast("Your browser holds the sound back.", { tone: "info", action: { label: "Play the voice", run: () => remote.play().catch(() => {}) } }),
  onMic: (stream) => {
    stopMeter();
    stopMeter = meterOf(stream);
  },
  input: () => settings.input,
  written: () => get().voice.simulated || !settings.play,
  wishes: () => settings,
  greeting: () => greeting(get().work, settings.language),
  onStats: (report) => {
    const found = connectionOf(report);
    if (found) dispatch({ type: "connection", ...found });
  },
});

function voiceEvent(event) {
  dispatch({ type: "voice", event, at: performance.now() });
  const { simulated } = get().voice;
  switch (event.type) {
    case "response.output_audio_transcript.done":
      if (simulated && settings.aloud && settings.play) aloud.say(event.transcript);
      break;
    case "response.output_text.done":
      if (settings.aloud && settings.play) aloud.say(event.text);
      break;
    case "input_audio_buffer.speech_started":
      aloud.stop();
      break;
    case "error":
      voiceErrors(event.error, toast);
  }
}

// Opens a call, unless one is held elsewhere: then it is offered to move it here and to do `then`.
let looking = null;
async function openCall(withMic, then) {
  if (!call.idle) return true;
  looking ??= oneCall.elsewhere().finally(() => { looking = null; });
  const others = await looking;
  if (!call.idle) return true;
  if (!others.length) {
    note("You called.");
    call.start(withMic).then(() => call.gate());
    return true;
  }
  const move = () => oneCall.take(others).then(then);
  toast("You are in a call in another window or on another device.", { next: "Two at once would talk over each other.", tone: "info", action: { label: "Move the call here", run: move } });
  return false;
}

const startCall = () => openCall(true, startCall);

oneCall.onTaken((id) => {
  if (!id || get().call.id !== id) return;
  aloud.stop();
  call.hangUp();
  note("The call was moved to another window.");
});

function hangUp() {
  if (call.idle) return;
  aloud.stop();
  const { unsaid } = call;
  const what = ["asking", "connecting"].includes(get().call.phase) ? "You cancelled the call." : "You hung up.";
  call.hangUp();
  note([what, unsaid && "What you typed was not said; it is in the box again.", running(get().work).length && "Work goes on; its result will be here."].filter(Boolean).join(" "));
  if (unsaid) prefill([unsaid, byId("say").value].filter(Boolean).join("\n"));
}

async function say(text) {
  if (!(await openCall(false, () => say(byId("say").value.trim() || text)))) {
    prefill(text);
    return;
  }
  if (byId("say").value === text) prefill("");
  aloud.stop();
  dispatch({ type: "typed", id: call.say(text), text, at: performance.now() });
}

async function decide(id, decision, text) {
  const question = get().work.questions[id];
  if (!question || question.sending) return;
  dispatch({ type: "deciding", id, decision });
  try {
    await api.decide(id, decision, text);
    dispatch({ type: "decided", id });
  } catch (error) {
    // Answered elsewhere, or gone with its work: there is nothing left to press.
    dispatch({ type: error.code === "not_pending" || error.status === 404 ? "decided" : "undecided", id });
    toastProblem(error);
  }
}

async function stopWork(id) {
  if (get().work.stopping[id]) return;
  dispatch({ type: "stopping", id, on: true });
  try {
    await api.stop(id);
  } catch (error) {
    dispatch({ type: "stopping", id, on: false });
    toastProblem(error);
  }
}

// What waits is stopped first: else it would be paused.
const stopAll = async () => {
  const all = running(get().work);
  await Promise.all(all.filter((r) => r.waits).map((r) => stopWork(r.id)));
  all.filter((r) => !r.waits).forEach((r) => stopWork(r.id));
};

// What a piece of work did is read when its card shows it. Events of it wait meanwhile, as for everything.
const wholes = new Map();
async function readWork(id) {
  if (["reading", "whole"].includes(get().work.read[id])) return;
  const late = [];
  wholes.set(id, late);
  dispatch({ type: "reading", id, state: "reading" });
  try {
    const record = await api.handoff(id);
    if (wholes.get(id) === late) dispatch({ type: "whole", record });
  } catch (error) {
    if (wholes.get(id) === late) dispatch({ type: "reading", id, state: "failed" });
  }
  if (wholes.get(id) !== late) return;
  wholes.delete(id);
  for (const event of late) if (event.kind !== "delta") pageEvent(event);
}

async function readStickies() {
  dispatch({ type: "stickies", items: (await api.stickies()).items });
}

async function readServers() {
  const [{ items, voice }, about] = await Promise.all([api.servers(), api.machines().catch(() => null)]);
  for (const s of items) hue(s.name);
  const machines = about && Object.fromEntries(about.items.map((m) => [m.name, m]));
  dispatch({ type: "servers", items, voice, machines });
}

async function readSessions(server) {
  const before = get().sessions[server]?.items ?? [];
  dispatch({ type: "sessions", server, value: { state: "loading", items: before } });
  try {
    const { items, more, errors } = await api.sessions(server);
    const problem = errors?.find((e) => e.server === server)?.message;
    dispatch({ type: "sessions", server, value: problem ? { state: "failed", items, problem } : { state: "ready", items, more } });
  } catch (error) {
    dispatch({ type: "sessions", server, value: { state: "failed", items: [], problem: error.message } });
  }
}

async function forget(server) {
  try {
    await api.forget(server);
    await readStickies();
    byId("fleet-title").focus();
  } catch (error) {
    toastProblem(error);
  }
}

const ofItems = new Set(["item", "delta", "dropped"]);

// What arrives while everything is read anew waits; pieces of text among it are in what is read.
let waiting = null;
let askAgain = 0;
async function snapshot() {
  const mine = (waiting = []);
  try {
    const [work, questions, stickies, cleared] = await Promise.all([api.handoffs(), api.questions(), api.stickies(), api.cleared().catch(() => undefined), readServers()]);
    if (mine !== waiting) return;
    wholes.clear();
    dispatch({ type: "snapshot", records: work.items, incomplete: work.incomplete, questions: questions.items, stickies: stickies.items, cleared });
  } catch (error) {
    if (mine !== waiting) return;
    if (error.status === 401) return signedOut();
    setTimeout(() => { if (mine === waiting) snapshot(); }, 2000);
    return;
  }
  waiting = null;
  clearTimeout(askAgain);
  if (get().work.incomplete) askAgain = setTimeout(snapshot, 3000);
  for (const event of mine) if (event.kind !== "delta") pageEvent(event);
}

function pageEvent(event) {
  if (waiting) {
    waiting.push(event);
    return;
  }
  if (ofItems.has(event.kind) && wholes.has(event.handoff)) {
    wholes.get(event.handoff).push(event);
    return;
  }
  if (event.kind === "sticky") readStickies().catch(() => {}); // the next event or reset reads them again
  else if (event.kind === "cleared") readCleared().catch(() => {}); // so is this
  else if (event.kind === "servers") readServers().catch(() => {});
  else dispatch({ type: "event", event });
  if (event.kind === "handoff" && event.record && ended(event.record)) lookAgain();
}

// What a machine does beside our own work is not told as it happens: it is looked at when work of ours ends,
// and now and then while a machine works. What is told of a machine may be two seconds old, hence the second look.
let looks = [];
function lookAgain() {
  looks.forEach(clearTimeout);
  looks = [300, 2600].map((ms) => setTimeout(() => readServers().catch(() => {}), ms));
}

// A short loss is not worth a word.
let lostTimer = 0;
function feedState(state) {
  if (state === "out") return signedOut();
  if (state === "lost") held.doubt();
  clearTimeout(lostTimer);
  if (state === "live") dispatch({ type: "feed", state });
  else lostTimer = setTimeout(() => dispatch({ type: "feed", state }), 1500);
}

// The conversation lasts as long as this window, also when its page is loaded anew.
const place = "switchboard-talk";
const recent = 3 * 3600_000; // what was said before is in the history
function keepTalk(last) {
  if (get().session !== "in") return;
  if (last) note(last);
  try {
    sessionStorage.setItem(place, JSON.stringify({ of: held.mine()?.id, entries: toKeep(get().talk) }));
  } catch { /* private window: it ends with the page */ }
}
function recallTalk() {
  try {
    const { of, entries } = JSON.parse(sessionStorage.getItem(place) ?? "{}");
    if (of && of === held.mine()?.id) dispatch({ type: "kept", entries });
    else if (settings.history) recallSaid();
  } catch { /* not ours: nothing is shown */ }
  sessionStorage.removeItem(place);
}

// A new window, or another device, begins with what was said lately.
async function recallSaid() {
  const { items } = await api.said("", "").catch(() => ({ items: [] }));
  const lately = items.filter((l) => Date.now() - Date.parse(l.at) < recent).reverse();
  if (lately.length && get().session === "in") dispatch({ type: "kept", entries: lately.map(({ id, who, text }) => ({ id, who, text, state: "done" })) });
}

// So does a call, from one page of this window to the next.
function keptPlace() {
  const { call: { muted }, facts } = get();
  return call.place && keepCall({ ...call.place, of: held.mine()?.id, muted, began: Date.now() - (performance.now() - facts.began) });
}
async function recallCall() {
  const kept = keptCall(held.mine()?.id);
  if (!kept || !(await freeCall(kept.id)) || !call.idle || get().session !== "in") return;
  dispatch({ type: "call-began", at: performance.now() - (Date.now() - kept.began) });
  mute(kept.muted);
  call.rejoin(kept).then(() => call.gate());
}

function signedOut() {
  held.drop();
  stopFeed();
  call.hangUp();
  dispatch({ type: "session", session: "out" });
  showLogin("");
}

function signedIn() {
  dispatch({ type: "session", session: "in" });
  show(byId("opening"), false);
  show(byId("login"), false);
  show(byId("app"), true);
  recallTalk();
  recallCall();
  refresh();
  api.level().then((level) => dispatch({ type: "level", level }), () => {}); // the usual one is shown
  if (location.hash.length > 1) go(location.hash.slice(1), { remember: false });
  stopFeed();
  stopFeed = follow({ onState: feedState, onReset: snapshot, onEvent: pageEvent });
}

const showLogin = loginView(signedIn);
const openSession = sessionReader((s) => {
  go("talk");
  prefill(`On ${s.server}, continue “${s.title || s.label}”: `);
});

function changed(name) {
  saveSettings(settings);
  if (name === "mode") dispatch({ type: "mode", mode: settings.mode });
  if (name === "input" && !call.idle && get().call.mic === "on") call.useMicrophone();
  if (name === "output") remote.setSinkId?.(settings.output).catch(() => toast("That speaker cannot be used.", { next: "Choose another one." }));
  if (name === "play") remote.muted = !settings.play;
  if (name === "aloud" || name === "play") aloud.stop();
  call.gate();
}

function quiet() {
  aloud.stop();
  call.stopTalking();
}

function mute(muted) {
  dispatch({ type: "call", patch: { muted } });
  call.gate();
}

// Brings a piece of work into sight.
let showAll = () => {};
function showWork(id) {
  go("work");
  showAll(id);
  const card = byId(`card-${id}`);
  card?.scrollIntoView({ block: "nearest" });
  card?.focus({ preventScroll: true });
}

async function setLevel(level) {
  dispatch({ type: "level", level });
  await api.setLevel(level).catch(toastProblem);
}

function wireKeys() {
  const sheet = byId("keys-sheet");
  byId("keys-list").append(...keysOf().flatMap(([key, what]) => [h("dt", {}, h("kbd", { text: key })), h("dd", { text: what })]));
  dress(byId("keys-close"), "close", "");
  byId("keys-close").addEventListener("click", () => sheet.close());
  shortcuts({
    mute: () => { if (!call.idle) mute(!get().call.muted); },
    quiet, hangUp,
    call: () => { if (call.idle) startCall(); },
    next: () => {
      go("work");
      document.querySelector(".question button, .question textarea, .question input")?.focus();
    },
    type: () => {
      go("talk");
      byId("say").focus();
    },
    sheet: () => sheet.showModal(),
  }, () => settings.keys && get().session === "in");
}

function wire() {
  onChange(talkView(say));
  onChange(callView({
    settings, changed,
    start: startCall,
    hangUp,
    quiet, mute,
    hold: (held) => {
      if (held) aloud.stop();
      dispatch({ type: "call", patch: { held } });
      call.gate();
    },
    useMic: () => call.useMicrophone(),
  }));
  const done = deeds({ stop: stopWork, session: (s) => openSession(s), aloud });
  onChange(needsView({ decide, go, again: done.again, dismiss: (key) => dispatch({ type: "dismissed", keys: { [key]: true } }), show: showWork }, hue));
  onChange(keepDismissed);
  onChange(({ call: { phase, id } }) => { if (id || phase === "idle") holdCall(id); });
  const list = workView({ ...done, stopAll, read: readWork }, hue);
  showAll = list.reveal;
  onChange(list);
  onChange(fleetView({ sessions: readSessions, read: openSession, forget }, hue));
  onChange(sessionsView({ read: openSession, fresh: (server) => { go("talk"); prefill(`On ${server}, in a new session: `); }, stickies: readStickies }, hue));
  onChange(settingsView({ settings, changed, level: setLevel, leaving: () => Promise.all([call.hangUp(), turnOff().catch(() => {})]), signedOut }, [notifyPart()]));
  onAsked(go);
  historyView({ settings, changed }, hue);
  helpView();
  onChange(keepSaid(() => settings.history));
  const facts = factsView(setLevel);
  onChange(facts);
  setInterval(() => { if (!call.idle && !document.hidden) facts(get()); }, 1000);
  const counted = deviceView({ hangUp, mute, quiet });
  onChange(noticesView({ go, untoast: (id) => dispatch({ type: "untoast", id }), counted, sound: (kind) => { if (settings.sounds) chime(kind); } }));
  dispatch({ type: "dismissed", keys: loadDismissed() });
  wirePlaces();
  wireKeys();
  addEventListener("pagehide", () => {
    if (call.idle) dropCall(); // it may have been kept for a page that did not come
    const kept = call.idle || keptPlace();
    keepTalk(kept ? "" : "The page was left, which ended the call.");
    if (!kept) call.leave();
  });
  addEventListener("visibilitychange", () => { // a phone may end a hidden page without a word
    if (document.hidden) keptPlace();
    else dropCall();
  });
  addEventListener("beforeunload", (event) => { if (!call.idle && !keptPlace()) event.preventDefault(); }); // it would end the call, one by text as well
  setInterval(refresh, 10_000);
  setInterval(() => { if (!document.hidden && get().feed === "live" && get().servers.some((s) => s.working?.length)) lookAgain(); }, 10_000);
  remote.muted = !settings.play;
  if (settings.output) remote.setSinkId?.(settings.output).catch(() => {}); // unplugged: the usual one plays
  dispatch({ type: "mode", mode: settings.mode });
}

async function open() {
  if (!held.possible()) {
    showLogin("This address is not secure. Open the page over HTTPS, or on the machine itself.");
    return;
  }
  const code = codeFromAddress();
  if (code) {
    try {
      await api.login({ code });
    } catch (error) {
      showLogin(error.next ? `${error.message} ${error.next}` : error.message);
      return;
    }
    signedIn();
    return;
  }
  if (!(await held.recall())) {
    showLogin("");
    return;
  }
  for (;;) {
    try {
      await api.servers();
      signedIn();
      return;
    } catch (error) {
      if (error.status === 401) return signedOut();
      setText(byId("opening"), `${error.message} ${error.next ?? ""}`);
      await new Promise((resolve) => setTimeout(resolve, 2000));
    }
  }
}

wire();
open();
addEventListener("hashchange", () => { if (location.hash.includes("login=")) open(); });
