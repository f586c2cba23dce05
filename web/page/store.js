// Holds the state and tells the views once a frame.

import { keepFocus } from "./dom.js";
import { reduce, start } from "./state.js";

let state = start;
let waiting = false;
const views = [];

export const get = () => state;

/** Applies an action now; the views follow with the next frame. */
export function dispatch(action) {
  const before = state;
  state = reduce(state, action);
  if (state !== before && !waiting) {
    waiting = true;
    // A page in the background gets no frames, and must announce all the same.
    if (document.hidden) setTimeout(render, 200);
    else requestAnimationFrame(render);
  }
}

function render() {
  if (!waiting) return;
  waiting = false;
  refresh();
}

export function onChange(view) {
  views.push(view);
}

let ids = 0;

/** Shows a message. A Problem brings its own next step. */
export function toast(text, { next = "", tone = "bad", action, stays = false } = {}) {
  dispatch({ type: "toast", toast: { id: ++ids, text, next, tone, action, stays } });
}

export const toastProblem = (error) => toast(error.message, { next: error.next });

/** Adds a quiet line to the conversation. */
export const note = (text) => dispatch({ type: "note", id: `note-${Date.now()}-${++ids}`, text });

/** Tells the views again, for what changes with time alone. */
export function refresh() {
  keepFocus(() => { for (const view of views) view(state); });
}

document.addEventListener("visibilitychange", () => {
  if (waiting) setTimeout(render, 0); // the frame it waits for may never come
});
