// Asks for another name of something, in a dialog of its own.

import { byId, setText, show } from "./dom.js";
import { problemWords } from "./words.js";

/** Asks for a name, and has it given: `give(name)`. What that refuses is said in the dialog, which then stays. */
export function naming({ title, name, give }) {
  const dialog = byId("naming");
  const field = byId("naming-name");
  const problem = byId("naming-problem");
  const end = new AbortController();
  setText(byId("naming-title"), title);
  field.value = name;
  show(problem, false);
  byId("naming-form").addEventListener("submit", async (event) => {
    event.preventDefault();
    byId("naming-yes").disabled = true;
    try {
      await give(field.value.trim());
      dialog.close();
    } catch (error) {
      setText(problem, problemWords(error));
      show(problem, true);
    } finally {
      byId("naming-yes").disabled = false;
    }
  }, end);
  byId("naming-no").addEventListener("click", () => dialog.close(), end);
  dialog.addEventListener("close", () => end.abort(), end);
  dialog.showModal();
  field.select();
}
