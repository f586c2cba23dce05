// Keys that work anywhere but in text boxes, and the sheet that shows them.

const keys = {
  m: ["M", "Mute, or unmute", "mute"],
  s: ["S", "Stop the voice talking", "quiet"],
  n: ["N", "Go to the next question", "next"],
  a: ["A", "Go to Allow; Enter allows", "allow"],
  d: ["D", "Go to Decline; Enter declines", "decline"],
  j: ["J", "Next piece of work; Enter opens it", "down"],
  k: ["K", "Piece of work before it", "up"],
  "shift j": ["⇧ J", "Move waiting work down", "later"],
  "shift k": ["⇧ K", "Move waiting work up", "sooner"],
  c: ["C", "Call", "call"],
  h: ["H", "Hang up", "hangUp"],
  "/": ["/", "Type", "type"],
  "?": ["?", "Show these keys", "sheet"],
};

/** The keys: [key, what it does]. */
export const keysOf = () => [[/Mac|iPhone|iPad/.test(navigator.userAgent) ? "⌘ K" : "Ctrl K", "Go anywhere"], ...Object.values(keys).map(([key, what]) => [key, what]), ["Space", "Talk while it is held, with push to talk"]];

const typing = (el) => el.isContentEditable || /^(input|textarea|select)$/i.test(el.tagName);

/** Wires the keys: acts has a function for each, enabled() says whether they count now. */
export function shortcuts(acts, enabled) {
  document.addEventListener("keydown", (e) => {
    if (!enabled() || e.ctrlKey || e.altKey || e.metaKey || e.repeat || typing(e.target) || document.querySelector("dialog[open]")) return;
    const key = e.key.toLowerCase();
    const [, , act] = (e.shiftKey && keys[`shift ${key}`]) || keys[key] || [];
    if (!act) return;
    e.preventDefault();
    acts[act]();
  });
}
