// What the person has put away of what needs them, on this browser.

import { keep, recall } from "./storage.js";

const place = "switchboard-dismissed";
let written = "";

/** The keys that were dismissed here. */
export const loadDismissed = () => recall("localStorage", place, {});

/** Writes them down when they change. */
export function keepDismissed({ dismissed }) {
  const text = JSON.stringify(dismissed);
  if (text === written) return;
  written = text;
  keep("localStorage", place, dismissed);
}
