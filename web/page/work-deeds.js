// What is done with a piece of work from its card.

import * as api from "./api.js";
import { running } from "./state-work.js";
import { get, toast, toastProblem } from "./store.js";

// What waits behind work that is stopped does not begin by itself: it is put aside, and can be done again.
async function stopWithQueue(id, stop) {
  const { records } = get().work;
  const behind = running(get().work).filter((r) => r.id !== id && r.waits && r.server === records[id]?.server && r.thread_id === records[id]?.thread_id);
  await Promise.all(behind.map((r) => stop(r.id)));
  await stop(id);
  if (behind.length) toast(behind.length > 1 ? "What waited behind it was put aside." : "The work that waited behind it was put aside.", { next: "“Do it again” on its card begins it.", tone: "info" });
}

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

const where = (r) => (r.project ? `${r.server}/${r.project}` : r.server);
const short = (text) => (text.length > 80 ? `${text.slice(0, 79)}…` : text);
const wholeOf = (r) => (r.clipped ? api.handoff(r.id) : Promise.resolve(r));
const work = (id) => get().work.records[id];

/** Returns what a card can have done. `stop(id)` stops one piece of work, `session(s)` opens a session. */
export function deeds({ stop, session, aloud }) {
  return {
    stop: (id) => stopWithQueue(id, stop),
    more: moreWork,
    again: (id) => wholeOf(work(id))
      .then((r) => api.give({ server: where(r), thread_id: r.thread_id, prompt: r.prompt }))
      .then((r) => toast(`Given to ${r.server || work(id).server} again.`, { tone: "info" })).catch(toastProblem),
    copy: (id) => wholeOf(work(id)).then((r) => navigator.clipboard.writeText(r.text))
      .then(() => toast("Copied.", { tone: "info" }), () => toast("This browser does not let the page copy.")),
    aloud: (id) => {
      aloud.stop();
      aloud.say(work(id).spoken || work(id).text);
    },
    session: (id) => session({ ...work(id), id: work(id).thread_id }),
  };
}
