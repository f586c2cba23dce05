// The work: what was asked of the machines, what they do, what they ask, which session is used where.
// Pure.

const keepItems = 200;
const keepText = 65536; // of one item, its end kept

export const workStart = {
  records: {}, // by id
  questions: {}, // by id, with `sending`: the decision that is on its way
  stickies: [],
  known: false, // the newest was read
  whole: true, // so was all before that
  told: {}, // ids of work that the feed told of before all was read
  incomplete: false, // there may be more, from before a restart
  cleared: "", // finished work that ended until then was put away
  stopping: {}, // ids of work that was told to stop
  read: {}, // by id: reading, whole or failed; stale: read before the last snapshot; else what came as events is here
};

export const ended = (record) => record.state === "completed" || record.state === "delivered";

/** Whether a piece of work is finished: what is paused still waits for a word. */
export const over = (record) => ended(record) && !record.paused;

/** Returns the work after an action. */
export function reduceWork(work, action) {
  switch (action.type) {
    case "snapshot":
      return {
        ...work, ...anew(work, action.records, action.more ? { ...work, read: notReading(work.read) } : workStart),
        stickies: action.stickies, known: true, whole: !action.more, told: {}, incomplete: Boolean(action.incomplete), cleared: action.cleared ?? work.cleared,
        questions: Object.fromEntries(action.questions.map((q) => [q.id, { ...q, sending: work.questions[q.id]?.sending }])),
      };
    case "older":
      return { ...work, ...anew(work, action.records.filter((r) => !work.told[r.id]), work), incomplete: work.incomplete || Boolean(action.incomplete) };
    case "all": // what is in no page has been let go
      return { ...work, whole: true, told: {}, records: Object.fromEntries(Object.entries(work.records).filter(([id]) => action.ids.has(id) || work.told[id])) };
    case "cleared":
      return { ...work, cleared: action.at };
    case "stickies":
      return { ...work, stickies: action.items };
    case "reading":
      return { ...work, read: { ...work.read, [action.id]: action.state } };
    case "whole":
      return whole(work, action.record);
    case "event":
      return (handlers[action.event.kind] ?? unchanged)(work, action.event);
    case "deciding":
      return question(work, action.id, { sending: action.decision });
    case "undecided":
      return question(work, action.id, { sending: undefined });
    case "decided":
      return closed(work, { closed: action.id });
    case "stopping":
      return { ...work, stopping: { ...work.stopping, [action.id]: action.on } };
    default:
      return work;
  }
}

const unchanged = (work) => work;

// Records as they were read, over the ones that are kept. What was shown of them stays until it is read anew.
function anew(work, read, kept) {
  const records = read.map((r) => [r.id, { ...r, items: r.item_count ? work.records[r.id]?.items : undefined }]);
  const stale = read.filter((r) => work.records[r.id]?.items).map((r) => [r.id, "stale"]);
  return { records: { ...kept.records, ...Object.fromEntries(records) }, read: { ...kept.read, ...Object.fromEntries(stale) } };
}

// A reading that began before a snapshot is discarded, so it must be read again.
const notReading = (read) => Object.fromEntries(Object.entries(read).filter(([, state]) => state !== "reading"));

const question = (work, id, change) =>
  work.questions[id] ? { ...work, questions: { ...work.questions, [id]: { ...work.questions[id], ...change } } } : work;

function closed(work, { closed: id }) {
  const { [id]: gone, ...questions } = work.questions;
  return gone ? { ...work, questions } : work;
}

const withRecord = (work, record) => ({ ...work, records: { ...work.records, [record.id]: named(record) } });

// What is watched has no words of its own: it is named by its session.
const named = (r) => (r.why === "watched" && !r.prompt ? { ...r, prompt: r.title || "a session" } : r);

// A record on the feed says nothing about its items: those that are here stay.
function record(work, { record: r }) {
  if (!r) return work;
  const told = work.whole ? work.told : { ...work.told, [r.id]: true };
  return withRecord({ ...work, told }, { ...r, items: r.items ?? work.records[r.id]?.items, answers: r.answers ?? work.records[r.id]?.answers });
}

// What was read of one piece. Where it stands is what the feed said last.
function whole(work, r) {
  const known = work.records[r.id];
  if (!known) return work;
  const next = { ...known, items: r.items ?? [], prompt: r.prompt, answers: r.answers };
  if (known.clipped) Object.assign(next, { clipped: false, text: r.text, spoken: r.spoken, error: r.error, undelivered: r.undelivered });
  next.item_count = steps(next).length;
  return { ...withRecord(work, next), read: { ...work.read, [r.id]: "whole" } };
}

/** What a piece of work did, but for the message that is its answer. */
export const steps = (r) => (r.items ?? []).filter((i) => !(r.text && i.kind === "message" && i.text.trim() === r.text.trim()));

/** Whether there is more of a piece than what is here. */
export function unread(work, r) {
  const count = r.item_count ?? 0;
  if (work.read[r.id] === "stale") return Boolean(r.clipped) || count > 0;
  return !work.read[r.id] && (Boolean(r.clipped) || count > steps(r).length);
}

function changeItems(work, id, change) {
  const r = work.records[id];
  return r ? withRecord(work, { ...r, items: change(r.items ?? []).slice(-keepItems) }) : work;
}

function item(work, { handoff, item: it }) {
  if (!it) return work;
  return changeItems(work, handoff, (items) =>
    items.some((i) => i.id === it.id) ? items.map((i) => (i.id === it.id ? it : i)) : [...items, it]);
}

function delta(work, { handoff, item_id: id, delta: text = "" }) {
  return changeItems(work, handoff, (items) =>
    items.map((i) => {
      if (i.id !== id) return i;
      const field = i.kind === "command" ? "output" : "text";
      return { ...i, [field]: ((i[field] ?? "") + text).slice(-keepText) };
    }));
}

// A message that is withdrawn comes anew; what a command did until it was stopped has happened.
function dropped(work, { handoff, item_id: id }) {
  return changeItems(work, handoff, (items) =>
    items.filter((i) => i.id !== id || i.kind === "command").map((i) => (i.id === id ? { ...i, state: "stopped" } : i)));
}

const handlers = {
  __proto__: null, // a name is only what is listed here
  handoff: record,
  item,
  delta,
  dropped,
  question: (work, { question: q }) =>
    q ? { ...work, questions: { ...work.questions, [q.id]: { ...q, sending: work.questions[q.id]?.sending } } } : work,
  closed,
};

// Keeps what was made of the records until they change: each view asks for it, in each frame.
const perRecords = (make) => {
  const made = new WeakMap();
  return (work) => {
    if (!made.has(work.records)) made.set(work.records, make(work));
    return made.get(work.records);
  };
};

/** The work, newest first. What was paused and went on as work of its own is that work. */
export const newestFirst = perRecords((work) =>
  Object.values(work.records).filter((r) => !r.went_on).sort((a, b) => (a.created_at < b.created_at ? 1 : a.created_at > b.created_at ? -1 : a.id < b.id ? 1 : -1)));

const endOf = (r) => r.ended_at ?? r.created_at;

/** The finished work that was put away. */
export const away = (work, r) => over(r) && work.cleared !== "" && endOf(r) <= work.cleared;

/** When the newest finished work ended, which puts all of it away; "": there is none to put away. */
export const newestEnd = (work) => Object.values(work.records).filter((r) => over(r) && !away(work, r)).map(endOf).sort().at(-1) ?? "";

// What a person did not name is found by what they see: the words of the work, where it is, where it stands and what came
// of it.
const ends = { result: "done", failed: "failed", unknown: "unclear failed", interrupted: "stopped", cancelled: "stopped" };
const whereItStands = (r) => (over(r) ? `${r.crashed ? "crashed failed" : ends[r.outcome]}${r.tests === "failed" ? " tests fail failed" : ""}` : r.paused ? "paused" : r.waits ? "waiting" : "working running");
const wordsOf = (r) => [r.prompt, ...(r.undelivered ?? []), r.title, r.server, r.project, r.client, whereItStands(r), r.text, r.spoken, r.error?.message].filter(Boolean).join(" ").toLowerCase();

const sessionOf = (r) => [r.server, r.project ?? "", r.thread_id ?? ""].join(" ");

/**
 * What belongs to another piece of work and has no line of its own, by the id of that piece: words that were added to it
 * while it ran, { added, tries }, oldest first, and the tries before it that came to nothing.
 */
export const attached = perRecords((work) => {
  const all = newestFirst(work);
  const of = new Map();
  const put = (id, kind, r) => {
    if (!of.has(id)) of.set(id, { added: [], tries: [] });
    of.get(id)[kind].unshift(r);
  };
  const newest = new Map(); // by what was asked where: the newest piece
  const runs = Map.groupBy(all.filter((r) => r.why !== "added"), sessionOf);
  for (const r of all) {
    const host = r.why === "added" && (work.records[r.into] ?? runs.get(sessionOf(r))?.find((h) => h.created_at <= r.created_at && (!h.ended_at || h.ended_at >= r.created_at)));
    if (host) put(host.id, "added", r);
    if (r.why === "added") continue;
    const key = `${r.server} ${r.project ?? ""} ${r.prompt}`;
    const next = newest.get(key);
    const failed = over(r) && r.outcome !== "result";
    if (next && failed && (!r.thread_id || r.thread_id === next.thread_id)) put(next.id, "tries", r);
    else newest.set(key, r);
  }
  return of;
});

/** What waits, in the order in which it is begun: what nobody has moved comes last, as it was asked for. */
export const queued = (open) => open.filter((r) => r.waits && r.why !== "watched" && !r.paused).reverse().sort((a, b) => (a.place || Infinity) - (b.place || Infinity) || 0);

/** What waits in the session of a piece of work, in its turn. */
export const queueOf = (work, r) => queued(newestFirst(work).filter((o) => !ended(o) && sessionOf(o) === sessionOf(r)));

/** The turns of all that waits, { at, of } by id. */
export const turnsOf = perRecords((work) => {
  const queues = Map.groupBy(queued(newestFirst(work).filter((r) => !ended(r))), sessionOf);
  return new Map([...queues.values()].flatMap((q) => q.map((r, i) => [r.id, { at: i + 1, of: q.length }])));
});

// What waits stands below what it waits for, in its turn.
function inTurn(open) {
  const waiting = queued(open);
  const bySession = Map.groupBy(waiting, sessionOf);
  const rows = open.filter((r) => !waiting.includes(r)).flatMap((r) => {
    const behind = bySession.get(sessionOf(r)) ?? [];
    bySession.delete(sessionOf(r));
    return [r, ...behind];
  });
  return [...rows, ...[...bySession.values()].flat()];
}

/**
 * The work as it is listed, as far as it has all of some words: what is not finished, newest first, what waits below
 * what it waits for, then the finished by session, { key, server, title, items }, the session whose work ended last
 * first. What an agent asked for stands below that agent's work, finished or not. Where it runs on when that work has
 * ended, both stand below what a person asked for, above the finished. `under` has the ids of what stands below other
 * work. `parts` is what `attached` gives.
 */
export function listed(work, words = "", parts = attached(work)) {
  const within = new Set([...parts.values()].flatMap((p) => [...p.added, ...p.tries]));
  const want = words.toLowerCase().split(/\s+/).filter(Boolean);
  const fits = (r) => !want.length || ((text) => want.every((w) => text.includes(w)))(wordsOf(r));
  const all = newestFirst(work).filter((r) => !within.has(r) && !away(work, r));
  const found = all.filter(fits);
  const open = inTurn(found.filter((r) => !over(r)));
  const done = found.filter(over).sort((a, b) => (endOf(a) < endOf(b) ? 1 : endOf(a) > endOf(b) ? -1 : 0));
  const byId = new Map(found.map((r) => [r.id, r]));
  const asked = Map.groupBy([...open, ...done].filter((r) => byId.has(r.parent)), (r) => r.parent);
  const under = new Set([...asked.values()].flat().map((r) => r.id));
  const withAsked = (r) => [r, ...(asked.get(r.id) ?? []).flatMap(withAsked)];
  const [finished, goesOn] = [true, false].map((all) => done.filter((r) => !under.has(r.id) && withAsked(r).every(over) === all));
  const groups = Map.groupBy(finished, sessionOf);
  return {
    all, under, open: [...open.filter((r) => !under.has(r.id)), ...goesOn].flatMap(withAsked),
    groups: [...groups].map(([key, own]) => ({ key, server: own[0].server, title: own.find((r) => r.title)?.title ?? "", items: own.flatMap(withAsked) })),
  };
}

export const running = perRecords((work) => newestFirst(work).filter((r) => !ended(r)));

/** The work of each machine, newest first: a Map by its name. */
export const ofServers = perRecords((work) => Map.groupBy(newestFirst(work), (r) => r.server));

/** The questions, oldest first: they are answered in the order they were asked. */
export const openQuestions = (work) =>
  Object.values(work.questions).sort((a, b) => (a.asked < b.asked ? -1 : a.asked > b.asked ? 1 : a.id < b.id ? -1 : 1));
