// What is done with a piece of work from its card.

import * as api from "./api.js";
import { confirmed } from "./confirm.js";
import { byId, setText } from "./dom.js";
import { ended, queueOf } from "./state-work.js";
import { dispatch, get, toast, toastProblem } from "./store.js";
import { turnWords } from "./words.js";

const patience = 15_000; // ms, for work to be stopped

// More words for work that runs: into it, or after it. What is done with them is read back.
async function moreWork(id, way, text) {
  const r = get().work.records[id];
  try {
    if (way === "reword") return await reword(id, text);
    if (way === "steer") await api.steer(id, text);
    else await api.give({ server: where(r), thread_id: r.thread_id, prompt: text, mode: "next" });
  } catch (error) {
    toastProblem(error);
    return false;
  }
  toast(way === "steer" ? `Added to the running work on ${r.server}: “${short(text)}”` : `Queued on ${r.server}, after the current work: “${short(text)}”`, { tone: "info" });
  return true;
}

// Drops work that waits, and reports whether it had not begun: only then may its words be given anew.
async function dropped(id) {
  await api.stop(id);
  let r = await api.handoff(id);
  for (const until = Date.now() + patience; !ended(r) && Date.now() < until; r = await api.handoff(id)) await new Promise((next) => setTimeout(next, 200));
  if (r.outcome === "cancelled") return true;
  toast("It had begun already, and was stopped.", { next: "“Do it again” begins it anew." });
  return false;
}

// Gives what waits anew with other words, in its turn. Words that were not taken stay where they were typed.
async function reword(id, prompt) {
  const r = get().work.records[id];
  const queue = queueOf(get().work, r);
  const next = queue[queue.findIndex((o) => o.id === id) + 1]?.id;
  try {
    if (!(await dropped(id))) return false;
  } catch (error) {
    toastProblem(error);
    return false;
  }
  try {
    const anew = await api.give({ server: where(r), thread_id: r.thread_id, prompt, mode: "next" });
    if (next) await api.move(anew.id, next).catch(() => {}); // it has begun, or the next one has
    return true;
  } catch (error) {
    toastProblem(error);
    return false;
  }
}

// Changes the turn of what waits: by so many places, at most to either end.
async function move(id, by) {
  const r = get().work.records[id];
  const queue = r?.waits && !r.paused ? queueOf(get().work, r).map((o) => o.id) : [];
  const to = Math.max(0, Math.min(queue.length - 1, queue.indexOf(id) + by));
  const others = queue.filter((o) => o !== id);
  if (!others.length || queue[to] === id) return;
  try {
    await api.move(id, others[to] ?? "");
    setText(byId("urgent"), `${turnWords({ at: to + 1, of: queue.length })} on ${r.server}`); // who sees it needs no word
  } catch (error) {
    toastProblem(error);
  }
}

// Stops what runs before it, and begins it.
async function beginNow(id) {
  const r = get().work.records[id];
  // What was given before the other had its session waits without knowing which one that is.
  const same = (o) => o.thread_id === r.thread_id || (!r.thread_id && o.project === r.project);
  const before = Object.values(get().work.records).find((o) => o.server === r.server && same(o) && !ended(o) && !o.waits);
  if (before && !(await confirmed({ title: "Begin this now?", text: `This stops what runs there: “${short(before.prompt)}”`, yes: "Stop it and begin" }))) return;
  try {
    if (before) await api.stop(before.id);
    const until = Date.now() + patience;
    while (!get().work.records[id]?.paused && get().work.records[id]?.waits && Date.now() < until) await new Promise((next) => setTimeout(next, 100));
    if (get().work.records[id]?.paused) await api.give({ begin: id });
  } catch (error) {
    toastProblem(error);
  }
}

// Puts away what is finished, on every device of this person; the history keeps it.
let putting = Promise.resolve(); // one after the other: what was wished last stays
async function clearFinished(at) {
  const before = get().work.cleared;
  const put = async (time) => {
    dispatch({ type: "cleared", at: time });
    await (putting = putting.then(() => api.setCleared(time)).catch(toastProblem));
  };
  await put(at);
  toast("Finished work cleared.", { next: "It stays in the history.", tone: "info", action: { label: "Undo", run: () => put(before) } });
}

/** Reads until when finished work was put away: another window or device may have done it. */
export async function readCleared() {
  await putting; // what is on its way from here counts
  dispatch({ type: "cleared", at: await api.cleared() });
}

const where = (r) => (r.project ? `${r.server}/${r.project}` : r.server);
const short = (text) => (text.length > 80 ? `${text.slice(0, 79)}…` : text);
const wholeOf = (r) => (r.clipped ? api.handoff(r.id) : Promise.resolve(r));
const work = (id) => get().work.records[id];

// Gives work that failed again, one after the other, until one cannot be given.
async function againAll(records) {
  const [{ server }] = records;
  if (records.length > 1 && !(await confirmed({ title: `Try all ${records.length} again?`, text: `They are given to ${server} once more, one after the other.`, yes: `Try ${records.length} again` }))) return;
  try {
    for (const r of records.toReversed()) await giveAgain(r); // in the order in which they were asked for
    toast(records.length > 1 ? `${records.length} are given to ${server} again.` : `Given to ${server} again.`, { tone: "info" });
  } catch (error) {
    toastProblem(error);
  }
}

const giveAgain = (record) => wholeOf(record).then((r) => api.give({ server: where(r), thread_id: r.thread_id, ...(r.why === "watched" ? { mode: "watch" } : { prompt: r.prompt }) }));

// From its own page: into it while it runs, else into its session, or behind what runs there.
async function send(id, way, text) {
  const r = work(id);
  if (!ended(r) && !r.waits && way === "now") return moreWork(id, "steer", text);
  try {
    await api.give({ server: where(r), thread_id: r.thread_id, prompt: text, mode: way === "next" || !ended(r) ? "next" : "now" });
  } catch (error) {
    toastProblem(error);
    return false;
  }
  toast(`Given to ${r.title ? `“${short(r.title)}” on ` : ""}${r.server}: “${short(text)}”`, { tone: "info" });
  return true;
}

/** Returns what a card can have done. `stop(id)` stops one piece of work, `session(s)` opens a session. */
export function deeds({ stop, session, aloud }) {
  return {
    stop,
    more: (id, way, text) => (ended(work(id)) ? send(id, "now", text) : moreWork(id, way, text)),
    send,
    words: (id) => wholeOf(work(id)).then((r) => r.prompt, toastProblem),
    move,
    beginNow,
    // What is paused is begun in its place and with its words.
    begin: (id) => api.give({ begin: id }).then(() => toast(`Resumed on ${work(id).server}.`, { tone: "info" }), toastProblem),
    drop: (id) => api.stop(id).then(() => toast("Dropped.", { tone: "info" }), toastProblem),
    unwatch: (id) => api.stop(id, "watching").then(() => toast(`${work(id).server} is watched no longer.`, { tone: "info" }), toastProblem),
    clear: clearFinished,
    again: (id) => againAll([work(id)]),
    againAll,
    // Words that it never heard, the i-th of them, go where it was.
    resend: (id, i) => wholeOf(work(id)).then(async (r) => {
      await api.give({ server: where(r), thread_id: r.thread_id, prompt: r.undelivered[i] });
      toast(`Given to ${r.server}: “${short(r.undelivered[i])}”`, { tone: "info" });
    }).catch(toastProblem),
    copy: (id) => wholeOf(work(id)).then((r) => navigator.clipboard.writeText(r.text))
      .then(() => toast("Copied.", { tone: "info" }), () => toast("This browser does not let the page copy.")),
    aloud: (id) => {
      aloud.stop();
      aloud.say(work(id).spoken || work(id).text);
    },
    session: (id) => session({ ...work(id), id: work(id).thread_id }),
  };
}
