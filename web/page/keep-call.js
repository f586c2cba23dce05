// A call outlives a reload of its page: where it is lies in the storage of this window meanwhile, and no key.
// A copy of the window (the browser's "Duplicate") gets that storage, too; a lock tells it that the call is in use.

import { keep, recall } from "./storage.js";

const place = "switchboard-call";
const lockOf = (id) => `switchboard-call-${id}`;
const leaving = 2000; // for the page before this one to be gone, in ms
let held = { id: "", end() {} };

const lockOfPage = (name) => `switchboard-page-${name}`;

/** The name of this page, by which a later page in this window finds out whether this one still exists. */
export const page = String(crypto.getRandomValues(new Uint32Array(4)));
navigator.locks?.request(lockOfPage(page), () => new Promise(() => {}));

/** Keeps a call { of, id, mic, muted, began } for the page that comes next in this window; false: it cannot be kept. */
export const keepCall = (call) => keep("sessionStorage", place, call);

/** Forgets it: this page is still there. */
export const dropCall = () => keep("sessionStorage", place, null);

/** Takes the call that the page before this one was in, as this login; null: none. */
export function keptCall(of) {
  const call = recall("sessionStorage", place);
  dropCall();
  return call?.id && of && call.of === of ? call : null;
}

/** Tells the other windows of this browser that this one is in the call with this id; "": in none. */
export function holdCall(id) {
  if (id === held.id) return;
  held.end();
  const { promise, resolve } = Promise.withResolvers();
  held = { id, end: resolve };
  if (id) navigator.locks?.request(lockOf(id), () => promise); // only pages that are secure have locks
}

/** Resolves to whether no other window is in the call: false means that this window is a copy of the one that is. */
export const freeCall = (id) => free(lockOf(id));

/** Resolves to whether a page is gone: false means that this window is a copy of its window. */
export const isGone = (name) => free(lockOfPage(name));

async function free(lock) {
  try {
    return await (navigator.locks?.request(lock, { signal: AbortSignal.timeout(leaving) }, () => true) ?? true);
  } catch (error) {
    return error.name !== "TimeoutError";
  }
}
