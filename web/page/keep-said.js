// Tells Switchboard what was said and heard on this page, so that it is history, also on other devices.

import * as api from "./api.js";

const collect = 1500; // lines come together
const most = 100; // at once

/** Wires it: enabled() says whether it is kept. Returns a view. */
export function keepSaid(enabled) {
  const known = new Map(); // id: when it came; null: it is not told, or was
  let timer = 0;
  let entries = [];
  async function tell() {
    timer = 0;
    const lines = entries.filter((e) => known.get(e.id) && settled(e)).slice(0, most)
      .map((e) => ({ id: e.id, who: e.who, text: e.text.slice(0, 4000), at: known.get(e.id) }));
    if (!lines.length) return;
    for (const l of lines) known.set(l.id, null);
    await api.addSaid(lines).catch(() => {}); // what is not kept is still on the page
  }
  return ({ talk, session }) => {
    if (session !== "in" || talk.entries === entries) return;
    entries = talk.entries;
    for (const e of entries) if (e.who !== "note" && !known.has(e.id)) known.set(e.id, e.recalled || !enabled() ? null : new Date().toISOString());
    if (!timer && entries.some((e) => known.get(e.id) && settled(e))) timer = setTimeout(tell, collect);
  };
}

const settled = (e) => (e.state === "done" || e.state === "cut") && e.delivery !== "waiting" && e.text.trim() !== "";
