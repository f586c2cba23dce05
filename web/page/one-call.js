// One call for one person: what another window or device holds is moved here, never doubled.

import * as api from "./api.js";
import { keep, recall } from "./storage.js";

const windows = new BroadcastChannel("switchboard-call");
const place = "switchboard-left";

// The calls that this window has left: they may be listed for a moment yet, also after a reload.
const gone = () => recall("sessionStorage", place, []);

/** Notes that this window has left a call. */
export function left(id) {
  if (id) keep("sessionStorage", place, [...gone(), id].slice(-20)); // where it cannot: a question too many
}

/** The ids of the person's calls in other windows and on other devices. Who cannot be asked holds none; one whose page is gone gives way. */
export async function elsewhere() {
  const { items } = await api.calls().catch(() => ({ items: [] }));
  const mine = gone();
  return items.filter((c) => !c.held && !mine.includes(c.id)).map((c) => c.id);
}

/** Ends calls elsewhere; their windows are told why. */
export async function take(ids) {
  for (const id of ids) {
    windows.postMessage({ taken: id });
    await api.hangup(id).catch(() => {}); // it may have ended by itself
    left(id);
  }
}

/** Calls f(id) when another window of this browser takes a call. */
export function onTaken(f) {
  windows.onmessage = ({ data }) => f(data.taken);
}
