// The way in: the code of a link, or a key from the form.

import * as api from "./api.js";
import { byId, setText, show } from "./dom.js";

/** Takes the code out of the address bar, before anything else can see it. */
export function codeFromAddress() {
  const match = /(?:^#|&)login=([A-Za-z0-9]+)/.exec(location.hash);
  if (!match) return "";
  history.replaceState(null, "", location.pathname + location.search);
  return match[1];
}

// The code of another device, or a key. A key may look like a code.
async function enter(text) {
  const code = text.replace(/[\s-]/g, "").toUpperCase();
  if (/^[B-Z]{8}$/.test(code)) {
    try {
      return await api.login({ code });
    } catch (error) {
      if (error.code !== "login_over" || /\s/.test(text.trim())) throw error;
    }
  }
  return api.login({ key: text.trim() });
}

/** Shows the form until a key fits; onIn() follows. `problem` is what went wrong with the link. */
export function loginView(onIn) {
  const form = byId("login-form");
  const field = byId("login-key");
  const error = byId("login-error");
  form.addEventListener("submit", async (e) => {
    e.preventDefault();
    const button = form.querySelector("button");
    button.disabled = true;
    setText(error, "");
    try {
      await enter(field.value);
      field.value = "";
      onIn();
    } catch (problem) {
      setText(error, problem.next ? `${problem.message} ${problem.next}` : problem.message);
      field.select();
    } finally {
      button.disabled = false;
    }
  });
  return (problem) => {
    show(byId("opening"), false);
    show(byId("app"), false);
    show(byId("login"), true);
    setText(error, problem ?? "");
    field.focus();
  };
}
