// What the page reads of Switchboard: everything at once at first and after a gap in the feed, then what each event
// changes; one piece of work, a machine's sessions or the sessions in use when they are wanted.

import * as api from "./api.js";
import { ended } from "./state-work.js";
import { dispatch, get } from "./store.js";
import { readCleared } from "./work-deeds.js";

let hues = {}; // by name, as Switchboard keeps them

/** The colour of a machine as a class: the same on every device. One that is gone has a colour by its name. */
export const hue = (server) => `hue-${hues[server] ?? [...server].reduce((sum, c) => sum + c.codePointAt(0), 0) % 6}`;

// What a piece of work did is read when its card shows it. Events of it wait meanwhile, as for everything.
const wholes = new Map();
export async function readWork(id) {
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

// One read at a time, and one more for all that was asked for meanwhile: a rush of events is no rush of requests.
function inTurn(read) {
  let now = null;
  let next = null;
  return () => {
    if (!now) return (now = read().finally(() => { now = null; }));
    return (next ??= now.catch(() => {}).then(() => { next = null; return (now = read().finally(() => { now = null; })); }));
  };
}

export const readStickies = inTurn(async () => dispatch({ type: "stickies", items: (await api.stickies()).items }));

export const readServers = inTurn(async () => {
  const { items, voice, instances, colours } = await api.servers();
  hues = colours ?? {};
  dispatch({ type: "servers", items, voice, instances });
  api.machines().then((about) => dispatch({ type: "machines", machines: Object.fromEntries(about.items.map((m) => [m.name, m])) }), () => {}); // nothing of it is seen at first
});

export async function readSessions(server) {
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

const ofItems = new Set(["item", "delta", "dropped"]);

// What arrives while everything is read anew waits; pieces of text among it are in what is read.
let waiting = null;
let latest = null; // of the snapshot that was asked for last
let askAgain = 0;

// The work before the newest comes in while the page is used. What the feed tells of it meanwhile is newer.
async function readOlder(pages, newest, counts) {
  const ids = new Set(newest.map((r) => r.id));
  try {
    for await (const { items, incomplete } of pages) {
      if (!counts()) return;
      for (const r of items) ids.add(r.id);
      dispatch({ type: "older", records: items, incomplete });
    }
    if (counts()) dispatch({ type: "all", ids });
  } catch { /* the connection is gone: once it is back, everything is read anew */ }
}

export async function snapshot(signedOut) {
  const mine = (latest = waiting = []);
  try {
    const work = api.handoffs();
    const [{ value: newest }, questions, stickies, cleared] = await Promise.all([work.next(), api.questions(), api.stickies(), api.cleared().catch(() => undefined), readServers()]);
    if (mine !== waiting) return;
    wholes.clear();
    dispatch({ type: "snapshot", records: newest.items, more: newest.more, incomplete: newest.incomplete, questions: questions.items, stickies: stickies.items, cleared });
    if (newest.more) readOlder(work, newest.items, () => mine === latest);
  } catch (error) {
    if (mine !== waiting) return;
    if (error.status === 401) return signedOut();
    setTimeout(() => { if (mine === waiting) snapshot(signedOut); }, 2000);
    return;
  }
  waiting = null;
  clearTimeout(askAgain);
  if (get().work.incomplete) askAgain = setTimeout(() => snapshot(signedOut), 3000);
  for (const event of mine) if (event.kind !== "delta") pageEvent(event);
}

export function pageEvent(event) {
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
// and now and then while a machine works. So are the instances, which no event tells of. What is told of a machine may be two seconds old, hence the second look.
let looks = [];
export function lookAgain() {
  looks.forEach(clearTimeout);
  looks = [300, 2600].map((ms) => setTimeout(() => readServers().catch(() => {}), ms));
}

