// What is done with a piece of work from its card.

import * as api from "./api.js";
import { dispatch, get, toast, toastProblem } from "./store.js";

// More words for work that runs: into it, or after it. What is done with them is read back.
async function moreWork(id, way, text) {
  const r = get().work.records[id];
  try {
    if (way === "steer") await api.steer(id, text);
    else await api.give({ server: where(r), thread_id: r.thread_id, prompt: text, mode: "next" });
  } catch (error) {
    toastProblem(error);
    return false;
  }
  toast(way === "steer" ? `Added to the work that runs on ${r.server}: “${short(text)}”` : `Queued on ${r.server}, after the work that runs: “${short(text)}”`, { tone: "info" });
  return true;
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
  toast("Finished work was put away.", { next: "It stays in the history.", tone: "info", action: { label: "Undo", run: () => put(before) } });
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

/** Returns what a card can have done. `stop(id)` stops one piece of work, `session(s)` opens a session. */
export function deeds({ stop, session, aloud }) {
  return {
    stop,
    more: moreWork,
    // What is paused is begun in its place and with its words.
    begin: (id) => api.give({ begin: id }).then(() => toast(`Goes on on ${work(id).server}.`, { tone: "info" }), toastProblem),
    drop: (id) => api.stop(id).then(() => toast("Dropped. “Do it again” on its line begins it after all.", { tone: "info" }), toastProblem),
    clear: clearFinished,
    again: (id) => wholeOf(work(id))
      .then((r) => api.give({ server: where(r), thread_id: r.thread_id, prompt: r.prompt }))
      .then((r) => toast(`Given to ${r.server || work(id).server} again.`, { tone: "info" })).catch(toastProblem),
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
