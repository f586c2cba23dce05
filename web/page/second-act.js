// The second act that it takes to allow what is of high risk: the button is held, or a word is typed.

import { h, setAttr, show } from "./dom.js";
import { visible } from "./words.js";

const long = 1000; // ms that a button is held

/** The first word of a command, which is typed to allow it; "allow" where there is none that can be typed. */
export function firstWord(command) {
  const [word = ""] = visible(command).trim().split(/\s+/, 1);
  return /^[\w./:@+-]{1,24}$/.test(word) ? word : "allow";
}

/**
 * Makes the second act of a question. wire(button, decision) makes a button take it; allow(event, decision) is called when
 * it was done. A short press shows `el`, where the word is typed.
 */
export function secondAct(id, word, allow) {
  let decision = "";
  let timer = 0;
  let held = false; // the press that is under way was long enough, or is no short one any more
  let busy = false;
  const field = h("input", { class: "text-field second-word", id: `w-${id}`, type: "text", autocomplete: "off", autocapitalize: "none", spellcheck: "false", maxlength: 40 });
  const send = h("button", { class: "button careful", type: "submit", text: "Allow" });
  const fits = () => field.value.trim().toLowerCase() === word.toLowerCase();
  const el = h("form", { class: "second-act", hidden: true, autocomplete: "off" },
    h("label", { class: "second-label", for: field.id }, "Hold the button for a second, or type ", h("strong", { class: "mono", text: word }), " here:"),
    h("div", { class: "answer-line" }, field, send));
  const dim = () => setAttr(send, "aria-disabled", busy || !fits() ? "true" : null);
  field.addEventListener("input", dim);
  el.addEventListener("submit", (event) => {
    event.preventDefault();
    if (!busy && fits()) allow(undefined, decision);
    else field.focus();
  });
  dim();
  return {
    el,
    wire(button, of) {
      const end = () => {
        clearTimeout(timer);
        button.classList.remove("holding");
      };
      const begin = (event) => {
        held = false;
        if (busy) return;
        button.classList.add("holding");
        timer = setTimeout(() => {
          end();
          held = true;
          allow(event, of);
        }, long);
      };
      button.addEventListener("pointerdown", (event) => { if (event.button === 0) begin({ detail: 1 }); });
      button.addEventListener("keydown", (event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        if (event.key === "Enter") event.preventDefault(); // it would press again and again
        if (!event.repeat) begin();
      });
      button.addEventListener("keyup", (event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        if (button.classList.contains("holding")) ask();
        end();
        held = false;
      });
      for (const type of ["pointerup", "pointerleave", "pointercancel", "blur"]) button.addEventListener(type, end);
      button.addEventListener("contextmenu", (event) => event.preventDefault()); // of a long press
      const ask = () => {
        decision = of;
        show(el, true);
        field.focus();
      };
      button.addEventListener("click", () => {
        if (!busy && !held) ask();
        held = false;
      });
    },
    sending(on) {
      busy = on;
      field.readOnly = on;
      dim();
    },
  };
}
