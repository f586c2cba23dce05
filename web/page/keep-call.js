// A call outlives a reload of its page: where it is lies in the storage of this window meanwhile, and no key.

const place = "switchboard-call";

/** Keeps a call { of, id, mic, muted, began } for the page that comes next in this window; false: it cannot be kept. */
export function keepCall(call) {
  try {
    sessionStorage.setItem(place, JSON.stringify(call));
    return true;
  } catch {
    return false; // a private window
  }
}

/** Forgets it: this page is still there. */
export function dropCall() {
  try {
    sessionStorage.removeItem(place);
  } catch { /* nothing is kept */ }
}

/** Takes the call that the page before this one was in, as this login; null: none. */
export function keptCall(of) {
  try {
    const call = JSON.parse(sessionStorage.getItem(place));
    dropCall();
    return call?.id && of && call.of === of ? call : null;
  } catch {
    return null; // not ours
  }
}
