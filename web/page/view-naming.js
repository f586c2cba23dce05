// Asks for another name of something, in a dialog of its own.

import { whileOpen } from "./confirm.js";
import { byId, setText, show } from "./dom.js";
import { toastProblem } from "./store.js";
import { problemWords } from "./words.js";

/**
 * Asks for a name, a machine's if `plain`, and has it given: `give(name)`. What that refuses is said in the dialog,
 * which then stays; or in a notice, where the person has left the dialog.
 */
export function naming({ title, label = "Name", name, plain = false, give }) {
  const dialog = byId("naming");
  const field = byId("naming-name");
  const problem = byId("naming-problem");
  setText(byId("naming-title"), title);
  setText(byId("naming-label"), label);
  Object.assign(field, { value: name, maxLength: plain ? 40 : 200, autocapitalize: plain ? "none" : "sentences", spellcheck: !plain });
  show(problem, false);
  byId("naming-yes").disabled = false;
  const signal = whileOpen(dialog);
  byId("naming-form").addEventListener("submit", async (event) => {
    event.preventDefault();
    byId("naming-yes").disabled = true;
    try {
      await give(field.value.trim());
      if (!signal.aborted) dialog.close();
    } catch (error) {
      if (signal.aborted) return toastProblem(error);
      setText(problem, problemWords(error));
      show(problem, true);
      byId("naming-yes").disabled = false;
    }
  }, { signal });
  byId("naming-no").addEventListener("click", () => dialog.close(), { signal });
  dialog.showModal();
  field.select();
}
