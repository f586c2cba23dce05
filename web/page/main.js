// Puts the page together: state, views, feed, call.

import * as api from "./api.js";
import { anchored } from "./anchor.js";
import { confirmed } from "./confirm.js";
import { loadSettings, saveSettings } from "./audio.js";
import { calling } from "./calling.js";
import { byId, dress, h, setText, show } from "./dom.js";
import { follow } from "./events.js";
import * as held from "./login.js";
import { toKeep } from "./state-talk.js";
import { running } from "./state-work.js";
import { deviceView } from "./device.js";
import { chime } from "./sounds.js";
import { keepDismissed, loadDismissed } from "./dismissed.js";
import { palette } from "./palette.js";
import { at, go, onEnter, onLeave, onThing, wirePlaces } from "./places.js";
import { keysOf, shortcuts } from "./shortcuts.js";
import { factsView } from "./view-facts.js";
import { helpView } from "./view-help.js";
import { historyView } from "./view-history.js";
import { keepSaid } from "./keep-said.js";
import { dropCall, holdCall, isGone, page } from "./keep-call.js";
import { onAsked, turnOff } from "./notices.js";
import { hue, lookAgain, pageEvent, readServers, readSessions, readStickies, readWork, snapshot } from "./reading.js";
import { notifyPart } from "./view-notify.js";
import { pieceView } from "./view-piece.js";
import { askedView } from "./view-asked.js";
import { needsView } from "./view-needs.js";
import { sessionsView } from "./view-sessions.js";
import { settingsView } from "./view-settings.js";
import { keep, recall } from "./storage.js";
import { dispatch, get, note, onChange, refresh, toast, toastProblem } from "./store.js";
import { callView } from "./view-call.js";
import { fleetView } from "./view-fleet.js";
import { joinView } from "./view-join.js";
import { codeFromAddress, loginView } from "./view-login.js";
import { noticesView } from "./view-notices.js";
import { reader as sessionReader } from "./view-reader.js";
import { choose, talkView } from "./view-talk.js";
import { names, problemWords } from "./words.js";
import { deeds } from "./work-deeds.js";
import { workView } from "./view-work.js";

const settings = loadSettings();
const remote = byId("remote");
let stopFeed = () => {};
const talk = calling({ settings, remote });
const { call, aloud, mute } = talk;

async function decide(id, decision, answers) {
  const question = get().work.questions[id];
  if (!question || question.sending) return;
  dispatch({ type: "deciding", id, decision });
  try {
    await api.decide(id, decision, answers);
    dispatch({ type: "decided", id });
  } catch (error) {
    // Answered elsewhere, or gone with its work: there is nothing left to press.
    dispatch({ type: error.code === "not_pending" || error.status === 404 ? "decided" : "undecided", id });
    toastProblem(error);
  }
}

const stopPatience = 15_000; // ms: a stop that has not ended the work by then may not have arrived
async function stopWork(id) {
  if (get().work.stopping[id]) return;
  const { why, waits, server } = get().work.records[id] ?? {};
  const theirs = why === "watched" && !waits;
  if (theirs && !(await confirmed({ title: "Stop it there?", text: `Somebody else began this on ${server}.`, yes: "Stop it" }))) return;
  dispatch({ type: "stopping", id, on: true });
  try {
    await api.stop(id, theirs && "sure");
    setTimeout(() => dispatch({ type: "stopping", id, on: false }), stopPatience); // it can be pressed again
  } catch (error) {
    dispatch({ type: "stopping", id, on: false });
    toastProblem(error);
  }
}

// What waits is stopped first: else it would be paused.
const stopAll = async () => {
  const asked = running(get().work).filter((r) => r.why !== "watched"); // each of these is asked about
  const waits = asked.filter((r) => r.waits).length;
  const text = `${asked.length} pieces of work on ${names(asked.map((r) => r.server))}${waits ? `, ${waits} of which wait and are dropped` : ""}.`;
  if (!(await confirmed({ title: "Stop all work?", text, yes: `Stop ${asked.length}` }))) return;
  const known = new Set(asked.map((r) => r.id)); // what came meanwhile was not asked about
  const all = running(get().work).filter((r) => known.has(r.id));
  await Promise.all(all.filter((r) => r.waits).map((r) => stopWork(r.id)));
  all.filter((r) => !r.waits).forEach((r) => stopWork(r.id));
};

async function forget(server) {
  try {
    await api.forget(server);
    await readStickies();
    byId("fleet-title").focus();
  } catch (error) {
    toastProblem(error);
  }
}

// A short loss is not worth a word.
let lostTimer = 0;
let lostAt = 0;
function feedState(state) {
  if (state === "out") return signedOut();
  if (state === "lost") held.doubt();
  dispatch({ type: "away", on: state === "lost" });
  clearTimeout(lostTimer);
  if (state === "live") {
    lostAt = 0;
    dispatch({ type: "feed", state });
    talk.sendWaiting();
  }
  else {
    const at = (lostAt ||= Date.now());
    lostTimer = setTimeout(() => dispatch({ type: "feed", state, at }), 1500);
  }
}

// The conversation lasts as long as this window, also when its page is loaded anew.
const place = "switchboard-talk";
const recent = 3 * 3600_000; // what was said before is in the history
let recalling = false; // what the page before this one kept is not here yet, and stays kept
function keepTalk(last) {
  if (recalling || get().session !== "in") return;
  if (last) note(last);
  keep("sessionStorage", place, { of: held.mine()?.id, page, entries: toKeep(get().talk) });
}
function dropTalk() {
  if (!recalling) keep("sessionStorage", place, null);
}
async function recallTalk() {
  const { of, page: from, entries = [] } = recall("sessionStorage", place, {});
  if (of && of === held.mine()?.id) {
    recalling = true;
    const alone = await isGone(from);
    recalling = false;
    dropTalk();
    if (of !== held.mine()?.id) return; // logged out meanwhile
    const mine = entries.filter((e) => alone || e?.delivery !== "waiting"); // if this window is a copy, the original sends those
    dispatch({ type: "kept", entries: mine });
    talk.wait(mine);
    if (get().feed === "live") talk.sendWaiting(); // else it is still to come
  }
  else {
    dropTalk();
    if (settings.history) recallSaid();
  }
}

// A new window, or another device, begins with what was said lately.
async function recallSaid() {
  const { items } = await api.said("", "").catch(() => ({ items: [] }));
  const lately = items.filter((l) => Date.now() - Date.parse(l.at) < recent).reverse();
  if (lately.length && get().session === "in") dispatch({ type: "kept", entries: lately.map(({ id, who, text }) => ({ id, who, text, state: "done" })) });
}

function signedOut() {
  held.drop();
  stopFeed();
  talk.giveUp();
  dispatch({ type: "session", session: "out" });
  showLogin("");
}

// The page is shown once it has something to show, so that nothing moves while it comes up.
const longestBlank = 1500; // ms
function reveal() {
  if (get().session !== "in" || !byId("app").hidden) return;
  show(byId("opening"), false);
  show(byId("app"), true);
  refresh();
  api.level().then((level) => dispatch({ type: "level", level }), () => {}); // the usual one is shown
}

let whose = ""; // the person whose things the page has shown
function signedIn() {
  const { principal } = held.mine();
  if (whose && principal !== whose) return location.reload(); // nothing of theirs stays
  whose = principal;
  dispatch({ type: "session", session: "in" });
  show(byId("login"), false);
  show(byId("opening"), byId("app").hidden);
  setTimeout(reveal, longestBlank);
  recallTalk();
  talk.recall();
  refresh();
  if (location.hash.length > 1) go(location.hash.slice(1), { remember: false });
  stopFeed();
  stopFeed = follow({ onState: feedState, onReset: () => snapshot(signedOut), onEvent: pageEvent });
}

const showLogin = loginView(signedIn);
const openSession = sessionReader(at, (s) => {
  go("talk");
  choose(`in ${s.server} ${s.id}`, s.title || s.label);
}, showWork);

function changed(name) {
  saveSettings(settings);
  if (name === "mode") dispatch({ type: "mode", mode: settings.mode });
  if (name === "input" && !call.idle && get().call.mic === "on") call.useMicrophone();
  if (name === "output") remote.setSinkId?.(settings.output).catch(() => toast("That speaker cannot be used.", { next: "Choose another one." }));
  if (name === "play") remote.muted = !settings.play;
  if (name === "aloud" || name === "play") aloud.stop();
  call.gate();
}

let find = () => {};
function findWork(words) {
  go("work");
  find(words);
}
// Shows the page of a piece of work.
function showWork(id) {
  go(`work/${encodeURIComponent(id)}`);
}

// What is left of the list when the page of a piece is shown: where it was, and at which line.
let kept = { top: 0, id: "" };
const listBox = () => document.querySelector("#work .scroll");
function leaveList() {
  const card = document.activeElement.closest?.("#work .card");
  if (listBox().checkVisibility()) kept = { top: listBox().scrollTop, id: card?.id ?? "" };
}
function backToList() {
  if (!kept.id) return;
  const { top, id } = kept;
  kept = { top: 0, id: "" };
  requestAnimationFrame(() => { // once it is laid out again
    listBox().scrollTop = top;
    byId(id)?.querySelector(".line-open")?.focus({ preventScroll: true });
  });
}

// Brings what needs the person into sight, the first question first.
function review(decision) {
  if (typeof decision !== "string") decision = "";
  const first = document.querySelector(decision ? `.question [data-decision="${decision}"]` : ".question"); // never a button by itself
  if (decision && !first) return;
  go("work");
  queueMicrotask(() => { // once it is back in the list
    first?.closest(".question").scrollIntoView({ block: "nearest" });
    first?.focus({ preventScroll: true });
  });
}

// Goes from one piece of work to the next.
function step(by) {
  go("work");
  const lines = [...document.querySelectorAll("#work .line-open")];
  const now = lines.indexOf(document.activeElement.closest(".card")?.querySelector(".line-open"));
  lines[Math.max(0, Math.min(lines.length - 1, now + by))]?.focus();
}

// Shows what an address names; work is there once it was read.
let openPiece = () => {};
function showThing(area, [name, id]) {
  if (area === "piece") waitFor(() => get().work.known && (get().work.whole || get().work.records[name]), () => {
    if (get().work.records[name]) return openPiece(name);
    go("work", { remember: false });
    toast("That work is no longer listed.", { next: "It may be in the history.", tone: "info" });
  });
  if (area === "fleet") waitFor(() => get().loaded, () => showMachine(name));
  if (area === "sessions" && id) openSession({ server: name, id });
  if (area === "talk" && name === "answer") waitFor(() => get().loaded, ring);
}

// Offers the call that a notification rang for: a browser lets a page speak and listen only after a tap.
async function ring() {
  at("talk"); // once
  if (!call.idle) return go("work");
  const [asks] = Object.values(get().work.questions);
  const text = asks ? `${asks.server} asks you something. In a call it is asked at once.` : "In a call you are told at once what happened.";
  if (await confirmed({ title: "Switchboard rings", text, yes: "Answer", calm: true })) talk.start();
}

function waitFor(there, act) {
  if (there() && !byId("app").hidden) setTimeout(act); // once it is drawn: what is hidden takes no focus
  else setTimeout(() => waitFor(there, act), 100);
}

// What can be done from the palette now.
function commands() {
  const idle = call.idle;
  return [
    ...(idle ? [["Call", talk.start]] : [["Hang up", talk.hangUp], [get().call.muted ? "Unmute" : "Mute", () => mute(!get().call.muted)]]),
    ...(running(get().work).length > 1 ? [["Stop all work", stopAll]] : []),
    ...["Sessions", "History", "Settings", "Help"].map((name) => [name, () => go(name.toLowerCase())]),
    ["Keyboard shortcuts", () => byId("keys-sheet").showModal()],
  ];
}

// Brings a machine into sight.
function showMachine(name) {
  go("fleet");
  const machine = byId(`machine-${name}`)?.closest(".machine");
  machine?.querySelector('.machine-line[aria-expanded="false"]')?.click();
  machine?.scrollIntoView({ block: "nearest" });
  machine?.focus({ preventScroll: true });
}

async function setLevel(level) {
  dispatch({ type: "level", level });
  await api.setLevel(level).catch(toastProblem);
}

function wireKeys(move) {
  const moved = (by) => { // the piece that the keyboard is at
    const card = document.activeElement.closest(".card");
    if (card) move(card.id.slice("card-".length), by);
  };
  const sheet = byId("keys-sheet");
  byId("keys-list").append(...keysOf().flatMap(([key, what]) => [h("dt", {}, h("kbd", { text: key })), h("dd", { text: what })]));
  dress(byId("keys-close"), "close", "");
  byId("keys-close").addEventListener("click", () => sheet.close());
  shortcuts({
    mute: () => { if (!call.idle) mute(!get().call.muted); },
    quiet: talk.quiet, hangUp: talk.hangUp,
    call: () => { if (call.idle) talk.start(); },
    next: review,
    allow: () => review("accept"),
    decline: () => review("decline"),
    down: () => step(1),
    up: () => step(-1),
    later: () => moved(1),
    sooner: () => moved(-1),
    type: () => {
      go("talk");
      byId("say").focus();
    },
    sheet: () => sheet.showModal(),
  }, () => settings.keys && get().session === "in");
}

function wire() {
  onChange(talkView(talk, { settings, changed }));
  onChange(callView({
    settings, changed,
    start: talk.start,
    hangUp: talk.hangUp,
    quiet: talk.quiet, mute,
    hold: (held) => {
      if (held) aloud.stop();
      dispatch({ type: "call", patch: { held } });
      call.gate();
    },
    useMic: () => call.useMicrophone(),
  }));
  const done = deeds({ stop: stopWork, session: (s) => openSession(s), aloud });
  const rows = anchored(byId("cards").parentElement, byId("cards"));
  onChange(rows.before);
  onChange(needsView({
    decide, free: rows.free, machine: showMachine, again: done.againAll,
    dismiss: (keys) => dispatch({ type: "dismissed", keys: Object.fromEntries(keys.map((key) => [key, true])) }),
    show: ({ server, records }) => (records.length === 1 ? showWork(records[0].id) : findWork(`failed ${server}`)),
  }, hue));
  onChange(keepDismissed);
  onChange(({ call: { phase, id } }) => { if (id || phase === "idle") holdCall(id); });
  const list = workView({ ...done, stopAll, read: readWork, open: showWork }, hue);
  find = list.find;
  onChange(list);
  onChange(() => { rows.after(); list.settle(); });
  const piece = pieceView({ ...done, read: readWork, back: () => (history.state?.from ? history.back() : go("work")) }, hue);
  openPiece = piece.open;
  onChange(piece);
  for (const area of ["talk", "work", "fleet"]) {
    onLeave(area, leaveList);
    onEnter(area, backToList);
  }
  onChange(joinView());
  onChange(fleetView({ sessions: readSessions, read: openSession, forget }, hue));
  onChange(sessionsView({ read: openSession, fresh: (server) => { go("talk"); choose(`new ${server}`); }, stickies: readStickies }, hue));
  onChange(settingsView({ settings, changed, level: setLevel, leaving: () => Promise.all([talk.giveUp(), turnOff().catch(() => {})]), signedOut }, [notifyPart()]));
  onAsked(go);
  onChange(historyView({ settings, changed }, hue));
  helpView();
  onChange(keepSaid(() => settings.history));
  const facts = factsView(setLevel);
  onChange(facts);
  setInterval(() => { if (!call.idle && !document.hidden) facts(get()); }, 1000);
  const counted = deviceView({ hangUp: talk.hangUp, mute, quiet: talk.quiet });
  onChange(noticesView({ review, untoast: (id) => dispatch({ type: "untoast", id }), counted, sound: (kind) => { if (settings.sounds) chime(kind); } }));
  onChange(() => { // last: what the views have asked for is still to come
    const { loaded, work } = get();
    if (loaded && work.known && !Object.values(work.read).includes("reading")) reveal();
  });
  onChange(askedView());
  dispatch({ type: "dismissed", keys: loadDismissed() });
  wirePlaces();
  onThing(showThing);
  palette({ work: showWork, machine: showMachine, session: (t) => openSession({ server: t.server.split("/")[0], id: t.thread_id, title: t.title }), commands }, get, hue);
  wireKeys(done.move);
  addEventListener("pagehide", () => {
    if (call.idle) dropCall(); // it may have been kept for a page that did not come
    const kept = call.idle || talk.keep();
    keepTalk(kept ? "" : "The page was left, which ended the call.");
    if (!kept) call.leave();
  });
  addEventListener("visibilitychange", () => { // a phone may end a hidden page without a word
    if (document.hidden) {
      talk.keep();
      keepTalk();
    } else {
      dropCall();
      dropTalk();
    }
  });
  onChange(() => { if (document.hidden) keepTalk(); }); // what was sent meanwhile is not sent again
  addEventListener("beforeunload", (event) => { if (!call.idle && !talk.keep()) event.preventDefault(); }); // it would end the call, one by text as well
  setInterval(refresh, 10_000);
  setInterval(() => { if (!document.hidden && get().feed === "live" && (get().instances.length || get().servers.some((s) => s.working?.length))) lookAgain(); }, 10_000);
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
      showLogin(problemWords(error));
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
      await api.token();
      signedIn();
      return;
    } catch (error) {
      if (error.status === 401) return signedOut();
      setText(byId("opening"), problemWords(error));
      await new Promise((resolve) => setTimeout(resolve, 2000));
    }
  }
}

wire();
open();
addEventListener("hashchange", () => { if (location.hash.includes("login=")) open(); });
