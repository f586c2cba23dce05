// The feed of events: Server-Sent Events read through fetch, so that a refused stream is known and the
// place to go on from is ours to keep.

import { request } from "./api.js";
import { doubt } from "./login.js";

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
 * read anew, onEvent(event) for each event. One tab reads the stream for all tabs of this browser: the one
 * that holds the lock; the others hear it from there. Returns a function that stops.
 */
export function follow({ onState, onReset, onEvent }) {
  const others = new BroadcastChannel("switchboard-feed");
  const stopped = new AbortController();
  const listener = { last: "", watch: 0 };
  let leads = false; // else what it knows of the stream
  let fresh = true; // knows nothing yet; the stream itself begins with a reset
  const hear = (m) => {
    if (m.id) listener.last = m.id;
    if (m.reset) onReset();
    else if (m.event) onEvent(m.event);
    else if (m.state) onState(m.state);
  };
  const tell = (m) => {
    others.postMessage(m);
    hear(m);
  };
  // A tab that sleeps in the background may hold the lock and read nothing: after a silence another one takes it.
  const alive = (patience = silence + 5000) => {
    clearTimeout(listener.watch);
    listener.watch = setTimeout(() => lead({ steal: true }), patience);
  };
  others.onmessage = ({ data }) => {
    if (stopped.signal.aborted) return;
    if (data.hello) {
      if (leads) others.postMessage({ state: leads });
      return;
    }
    alive();
    if (fresh) onReset();
    fresh = false;
    hear(data);
  };

  function lead(how) {
    const mine = new AbortController();
    const end = () => mine.abort();
    stopped.signal.addEventListener("abort", end);
    navigator.locks.request("switchboard-feed", how.steal ? how : { signal: stopped.signal }, async () => {
      clearTimeout(listener.watch);
      leads = "lost";
      fresh = false;
      await read(listener, mine.signal, (m) => {
        if (m.state) leads = m.state;
        tell(m);
      });
    }).catch(() => {
      mine.abort(); // stopped, or the lock was stolen: then this tab listens
      leads = false;
      if (stopped.signal.aborted) return;
      alive();
      lead({});
    }).finally(() => stopped.signal.removeEventListener("abort", end));
  }

  alive(3000); // whoever leads answers at once
  lead({});
  others.postMessage({ hello: true });
  return () => {
    stopped.abort();
    clearTimeout(listener.watch);
    others.close();
  };
}

// Reads the stream and tells what comes, until the signal or until nobody is logged in.
async function read(listener, signal, tell) {
  let tries = 0;
  const once = async () => {
    const current = new AbortController();
    const end = () => current.abort();
    signal.addEventListener("abort", end);
    let watch;
    const alive = () => {
      clearTimeout(watch);
      watch = setTimeout(end, silence);
      tell({});
    };
    try {
      alive();
      const headers = listener.last ? { "Last-Event-ID": listener.last } : {};
      const answer = await request("/fleet/events", { headers, signal: current.signal });
      tries = 0;
      tell({ state: "live" });
      const take = parser((e) => tell(e.event === "reset" ? { id: e.id, reset: true } : { id: e.id, event: JSON.parse(e.data) }));
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return "lost";
        alive();
        take(value);
      }
    } catch (error) {
      return error.status === 401 ? "out" : "lost";
    } finally {
      clearTimeout(watch);
      signal.removeEventListener("abort", end);
      current.abort();
    }
  };
  while (!signal.aborted) {
    const state = await once();
    if (signal.aborted) return;
    doubt(); // whoever listens there now has to prove itself anew
    tell({ state });
    if (state === "out") return;
    await pause(waits[Math.min(tries++, waits.length - 1)], signal);
  }
}

// Waits, but not longer than until the network is back.
const pause = (ms, signal) => new Promise((resolve) => {
  const timer = setTimeout(over, ms);
  function over() {
    clearTimeout(timer);
    removeEventListener("online", over);
    signal.removeEventListener("abort", over);
    resolve();
  }
  addEventListener("online", over);
  signal.addEventListener("abort", over);
});
