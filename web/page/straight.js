// Words that go straight to a machine or session that was chosen beside the text box, past the voice. While Switchboard
// is gone they wait, as those for the voice do.

import * as api from "./api.js";

/** The machine or session of a choice: { server, thread_id? }. "bigpc" is the session in use there, "new bigpc" a new one, "tree bigpc/api" a new one in a worktree, "in bigpc ID" the one with that id. */
export function placeOf(to) {
  const [how, server, id] = to.split(" ");
  if (how === "tree" && server) return { server, thread_id: "new", worktree: true };
  return how === "new" && server ? { server, thread_id: "new" } : how === "in" && id ? { server, thread_id: id } : { server: to };
}

const away = (error) => [0, 502, 503, 504].includes(error.status); // the next try may do it

/** Makes what gives the words. sent(id) hears that a machine has them, refused(words, error) that it never will. */
export function straight({ sent, refused }) {
  let waiting = []; // { id, text, to }, in order
  let busy = false;
  async function flush() {
    if (busy) return;
    busy = true;
    try {
      while (waiting.length) {
        const [words] = waiting;
        const problem = await api.give({ ...placeOf(words.to), prompt: words.text }).then(() => null, (error) => error);
        if (problem && away(problem)) return;
        const wanted = waiting.includes(words); // and not taken back meanwhile
        waiting = waiting.filter((w) => w !== words);
        if (!problem) sent(words.id);
        else if (wanted) refused(words, problem);
      }
    } finally {
      busy = false;
    }
  }
  return {
    flush,
    /** Gives the words { id, text, to }, now or as soon as Switchboard is back. */
    say(words) {
      waiting.push(words);
      return flush();
    },
    takeBack(id) { waiting = waiting.filter((w) => w.id !== id); },
  };
}
