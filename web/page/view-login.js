// The way in: the code of a link, or a code or a key from the form.

import * as api from "./api.js";
import { byId, setText, show } from "./dom.js";
import { problemWords } from "./words.js";

/** Takes the code out of the address bar, before anything else can see it. */
export function codeFromAddress() {
  const match = /(?:^#|&)login=([A-Za-z0-9]+)/.exec(location.hash);
  if (!match) return "";
  history.replaceState(null, "", location.pathname + location.search);
  return match[1];
}

const missing = { message: "Enter a code or a key." };

// A code is shown as it is typed; a key stays hidden.
async function enter(code, key) {
  if (code.trim()) await api.login({ code: code.replace(/[\s-]/g, "").toUpperCase() });
  else if (key.trim()) await api.login({ key: key.trim() });
  else throw missing;
}

/** Shows the form until a key fits; onIn() follows. `problem` is what went wrong with the link. */
export function loginView(onIn) {
  const form = byId("login-form");
  const code = byId("login-code");
  const key = byId("login-key");
  const error = byId("login-error");
  form.addEventListener("submit", async (e) => {
    e.preventDefault();
    const button = form.querySelector("button");
    button.disabled = true;
    setText(error, "");
    try {
      await enter(code.value, key.value);
      code.value = key.value = "";
      onIn();
    } catch (problem) {
      setText(error, problemWords(problem));
      (code.value || !key.value ? code : key).select();
    } finally {
      button.disabled = false;
    }
  });
  return (problem) => {
    show(byId("opening"), false);
    show(byId("app"), false);
    show(byId("login"), true);
    setText(error, problem ?? "");
    code.focus();
  };
}
