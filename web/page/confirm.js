// Asks before something is done that cannot be undone; and what dialogs have in common that ask Switchboard something.

import { byId, setText } from "./dom.js";

/** A signal that ends when a dialog that is open closes: what is answered later is not for whoever opens it next. */
export function whileOpen(dialog) {
  const end = new AbortController();
  dialog.addEventListener("close", () => end.abort(), { once: true });
  return end.signal;
}

/**
 * Asks in a dialog of its own; resolves to whether the person agreed, and resolves to false at once if another question
 * is open. `yes` says what is done; calm: nothing is lost by it.
 */
export async function confirmed({ title, text, yes, calm = false }) {
  const dialog = byId("confirm");
  if (dialog.open) return false;
  setText(byId("confirm-title"), title);
  setText(byId("confirm-text"), text);
  setText(byId("confirm-yes"), yes);
  byId("confirm-yes").classList.toggle("danger", !calm);
  byId("confirm-yes").classList.toggle("primary", calm);
  return new Promise((resolve) => {
    const end = new AbortController();
    const answer = (agreed) => {
      end.abort();
      dialog.close();
      resolve(agreed);
    };
    byId("confirm-no").addEventListener("click", () => answer(false), end);
    byId("confirm-yes").addEventListener("click", () => answer(true), end);
    dialog.addEventListener("cancel", () => answer(false), end);
    dialog.showModal();
    byId(calm ? "confirm-yes" : "confirm-no").focus();
  });
}
