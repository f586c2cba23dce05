// Typed words on their way, in their order. What cannot be taken now is tried again, under the same id, so whoever
// receives them twice can tell.

const pause = 1000; // ms before the next try

/**
 * Whether an error is about Switchboard (gone, or too busy now) and not about the words. unknown_start: an instance was
 * lost with the words in hand; what it began it does not begin again under the same id.
 */
export const away = ({ status, code }) =>
  !status || ["shutdown", "store_down", "overloaded", "unknown_start"].includes(code) || (code === "internal" && [502, 503, 504].includes(status)); // which something on the way answered

/**
 * Makes an outbox of words { id, text, … }. send(words) sends them or throws; ready() tells whether it can now. sent(id)
 * hears that words arrived, unsure(id) that they may, held(ids) that they have to wait, and refused(words, error) that
 * they never will: the error is final.
 */
export function outbox({ send, ready = () => true, sent, unsure, held, refused, final = (error) => !away(error) }) {
  let waiting = []; // with those that are on their way
  let going = null; // the words that are on their way
  let timer = 0;
  async function flush() {
    clearTimeout(timer);
    while (!going && waiting.length && ready()) {
      const words = (going = waiting[0]);
      const problem = await send(words).then(() => null, (error) => error);
      going = null;
      if (!waiting.includes(words)) continue; // they were given up
      if (problem && !final(problem)) {
        timer = setTimeout(flush, pause);
        return held(waiting.map((w) => w.id));
      }
      waiting.shift();
      if (problem) refused(words, problem);
      else sent(words.id);
    }
  }
  return {
    flush,
    /** Sends words, now or as soon as it can be. */
    say(words) {
      waiting.push(words);
      flush();
    },
    /** Takes words back; false: they are on their way. */
    takeBack(id) {
      if (going?.id === id) return false;
      waiting = waiting.filter((w) => w.id !== id);
      return true;
    },
    /** What waits, but for what is on its way. */
    get unsent() { return waiting.filter((w) => w !== going); },
    /** Gives up what waits. What is on its way may arrive. */
    giveUp() {
      if (waiting.includes(going)) unsure(going.id);
      waiting = [];
    },
  };
}
