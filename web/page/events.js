// The feed of events: Server-Sent Events read through fetch, so that a refused stream is known and the
// place to go on from is ours to keep.

const silence = 40_000; // Switchboard says something every 15 s
const waits = [500, 1000, 2000, 4000, 8000];

/** Splits a stream of text into events { id, event, data }. */
export function parser(emit) {
  let rest = "";
  let event = {};
  return (text) => {
    const lines = (rest + text).split("\n");
    rest = lines.pop();
    for (const raw of lines) {
      const line = raw.endsWith("\r") ? raw.slice(0, -1) : raw;
      if (line === "") {
        if (event.data !== undefined) emit(event);
        event = {};
        continue;
      }
      const colon = line.indexOf(":");
      if (colon === 0) continue; // a comment: only a sign of life
      const name = colon < 0 ? line : line.slice(0, colon);
      const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
      if (name === "data") event.data = event.data === undefined ? value : event.data + "\n" + value;
      else if (name === "id" || name === "event") event[name] = value;
    }
  };
}

/**
 * Follows the feed until stopped. Calls onState("live" | "lost" | "out"), onReset() when everything must be
 * read anew, onEvent(event) for each event. Returns a function that stops.
 */
export function follow({ onState, onReset, onEvent }) {
  let last = "";
  let tries = 0;
  let stopped = false;
  let current = null;
  let wake = null;

  async function once() {
    current = new AbortController();
    let watch;
    const alive = () => {
      clearTimeout(watch);
      watch = setTimeout(() => current.abort(), silence);
    };
    try {
      alive();
      const headers = last ? { "Last-Event-ID": last } : {};
      const answer = await fetch("/fleet/events", { headers, credentials: "same-origin", cache: "no-store", signal: current.signal });
      if (answer.status === 401) return "out";
      if (!answer.ok || !answer.body) return "lost";
      tries = 0;
      onState("live");
      const take = parser((e) => {
        if (e.id) last = e.id;
        if (e.event === "reset") onReset();
        else onEvent(JSON.parse(e.data));
      });
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return "lost";
        alive();
        take(value);
      }
    } catch {
      return "lost";
    } finally {
      clearTimeout(watch);
      current.abort();
    }
  }

  async function run() {
    while (!stopped) {
      const state = await once();
      if (stopped) return;
      onState(state);
      if (state === "out") return;
      await new Promise((resolve) => {
        wake = resolve;
        setTimeout(resolve, waits[Math.min(tries++, waits.length - 1)]);
      });
    }
  }
  const hurry = () => wake?.();
  addEventListener("online", hurry);
  run();
  return () => {
    stopped = true;
    removeEventListener("online", hurry);
    current?.abort();
    wake?.();
  };
}
