// What this browser keeps by name: in "sessionStorage" as long as its window, in "localStorage" for good. In a private
// window, or where the person forbids it, it may keep nothing.

/** What is kept under a name; `none`: nothing that is ours. */
export function recall(storage, name, none) {
  try {
    return JSON.parse(window[storage].getItem(name)) ?? none;
  } catch {
    return none;
  }
}

/** Keeps a value under a name, and nothing for null. Returns whether it could. */
export function keep(storage, name, value) {
  try {
    if (value === null) window[storage].removeItem(name);
    else window[storage].setItem(name, JSON.stringify(value));
    return true;
  } catch {
    return false;
  }
}
