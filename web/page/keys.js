// Push to talk: a button to hold, and Space anywhere that is not a text field. Who came to a button by
// keyboard keeps Space for that button.

const textual = new Set(["text", "password", "search", "email", "url", "tel", "number", ""]);

/** Whether an element takes what is typed. */
export function takesText(el) {
  if (el.isContentEditable || el instanceof HTMLTextAreaElement || el instanceof HTMLSelectElement) return true;
  return el instanceof HTMLInputElement && textual.has(el.type);
}

const isControl = (el) => el.matches?.("button, summary, a, input, dialog *, [popover] *");

/** Wires push to talk. active() says whether it is on now, hold(on) is told when to talk. */
export function pushToTalk(button, active, hold) {
  let byKeyboard = false;
  let held = false;
  const set = (on) => {
    if (held !== on) hold((held = on));
  };
  const release = () => set(false);

  document.addEventListener("pointerdown", () => { byKeyboard = false; }, true);
  document.addEventListener("keydown", (e) => {
    if (e.key === "Tab" || e.key.startsWith("Arrow")) byKeyboard = true;
    if (e.code !== "Space" || e.ctrlKey || e.altKey || e.metaKey || !active()) return;
    if (e.target !== button && (takesText(e.target) || (byKeyboard && isControl(e.target)))) return;
    e.preventDefault();
    set(true);
  });
  document.addEventListener("keyup", (e) => {
    if (e.code !== "Space" || !held) return;
    e.preventDefault(); // else a focused button would be pressed
    release();
  });
  button.addEventListener("keydown", (e) => {
    if (e.key !== "Enter" || !active()) return;
    e.preventDefault();
    if (!e.repeat) set(!held); // a key that cannot be held everywhere switches
  });
  button.addEventListener("pointerdown", (e) => {
    if (!active() || e.button !== 0) return;
    button.setPointerCapture(e.pointerId);
    set(true);
  });
  for (const type of ["pointerup", "pointercancel", "lostpointercapture"]) button.addEventListener(type, release);
  button.addEventListener("contextmenu", (e) => e.preventDefault());
  button.addEventListener("click", (e) => {
    if (active() && e.detail === 0 && !held) set(true); // a screen reader's press
    else if (e.detail === 0) release();
  });
  addEventListener("blur", release);
  document.addEventListener("visibilitychange", () => document.hidden && release());
}
