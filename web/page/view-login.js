// The way in: the code of a link, or a code or a key from the form.

import * as api from "./api.js";
import { byId, setAttr, setText, show } from "./dom.js";
import { problemWords } from "./words.js";

/** Takes the code out of the address bar, before anything else can see it. */
export function codeFromAddress() {
  const match = /(?:^#|&)login=([A-Za-z0-9]+)/.exec(location.hash);
  if (!match) return "";
  history.replaceState(null, "", location.pathname + location.search);
  return match[1];
}

const missing = { message: "Enter a code or a key." };

// Whether a text is the code of another device, or the beginning of one: letters without vowels, in groups. Keys are longer.
const isCode = (text) => /^[BCDFGHJKMNPQRSTWXYZ]{8}$/i.test(text.replace(/[\s-]/g, ""));
const maybeCode = (text) => /^[BCDFGHJKMNPQRSTWXYZ]{1,8}$/i.test(text.replace(/[\s-]/g, ""));

async function enter(text) {
  if (!text) throw missing;
  await api.login(isCode(text) ? { code: text.replace(/[\s-]/g, "").toUpperCase() } : { key: text });
}

/** Shows the form until a code or a key fits; onIn() follows. `problem` is what went wrong with the link. */
export function loginView(onIn) {
  const form = byId("login-form");
  const field = byId("login-key");
  const error = byId("login-error");
  field.addEventListener("input", () => setAttr(field, "type", maybeCode(field.value.trim()) ? "text" : "password")); // a code is read as it is typed, a key stays hidden
  form.addEventListener("submit", async (e) => {
    e.preventDefault();
    const button = form.querySelector("button");
    button.disabled = true;
    setText(error, "");
    try {
      await enter(field.value.trim());
      field.value = "";
      onIn();
    } catch (problem) {
      setText(error, problemWords(problem));
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
