// The way in: the key from the link, or from the form.

import * as api from "./api.js";
import { byId, setText, show } from "./dom.js";

/** Takes the key out of the address bar, before anything else can see it. */
export function keyFromAddress() {
  const match = /(?:^#|&)key=([^&]+)/.exec(location.hash);
  if (!match) return "";
  history.replaceState(null, "", location.pathname + location.search);
  try {
    return decodeURIComponent(match[1]);
  } catch {
    return match[1];
  }
}

/** Shows the form until a key fits; onIn() follows. `problem` is what went wrong with the link's key. */
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
      await api.login(field.value.trim());
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
