// What the person has put away of what needs them, on this browser.

const place = "switchboard-dismissed";
let written = "";

/** The keys that were dismissed here. */
export function loadDismissed() {
  try {
    return JSON.parse(localStorage.getItem(place) ?? "{}") ?? {};
  } catch {
    return {};
  }
}

/** Writes them down when they change. */
export function keepDismissed({ dismissed }) {
  const text = JSON.stringify(dismissed);
  if (text === written) return;
  written = text;
  try {
    localStorage.setItem(place, text);
  } catch { /* private window: it holds as long as the page */ }
}
