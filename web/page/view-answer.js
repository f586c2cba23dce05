// An answer in words: a labelled field for each thing that an agent asks, with the answers it offers.

import { fitHeight, h, setAttr } from "./dom.js";
import { visible } from "./words.js";

const most = 4000; // letters of an answer; Switchboard takes 4 KiB

/** Makes the form of a question in words; send(answers) gives it: a list for each thing that is asked, empty if it is left out. */
export function answerForm(q, send) {
  const asks = q.asks?.length ? q.asks : [{ text: q.text }];
  const alone = asks.length === 1;
  // What is chosen is sent with Send, as what is typed: the keyboard goes there, or to what is still missing.
  const missing = () => rows.find((r) => !r.may && r.answers().length === 0) ?? (rows.some((r) => r.answers().length) ? null : rows[0]);
  const chosen = () => (missing()?.field ?? button).focus();
  const rows = asks.map((ask, i) => row(q, ask, i, alone, chosen));
  const button = h("button", { class: "button primary", type: "submit", text: "Send" });
  rows.at(-1).line.append(button);
  let busy = false;
  const el = h("form", {
    class: "answer-form", autocomplete: "off",
    on: {
      submit: (event) => {
        event.preventDefault();
        if (busy) return;
        const empty = missing();
        if (empty) empty.field.focus();
        else send(rows.map((r) => r.answers()));
      },
    },
  }, ...rows.map((r) => r.el));
  return {
    el,
    sending(on) {
      busy = on;
      for (const r of rows) r.sending(on);
      setAttr(button, "aria-disabled", on ? "true" : null);
    },
  };
}

// One thing that is asked. An answer that is offered fills the field; where several may be chosen, or nothing else counts, it stays a button that is pressed.
function row(q, ask, i, alone, chosen) {
  const id = `a-${q.id}-${i}`;
  const pressed = new Set();
  const presses = Boolean(ask.many || ask.only);
  const field = ask.only ? null : ask.secret
    ? h("input", { class: "answer-field", id, type: "password", maxlength: most, autocomplete: "off", spellcheck: "false" })
    : h("textarea", { class: "answer-field", id, rows: 1, maxlength: most, autocomplete: "off", on: { keydown: sendOnEnter, input: () => typed() } });
  let busy = false;
  const options = ask.options ?? [];
  const offers = options.map((text) =>
    h("button", { class: "button small", type: "button", "aria-pressed": "false", text: visible(text), on: { click: () => pick(text) } }));
  const pick = (text) => {
    if (busy) return;
    if (presses) {
      if (pressed.has(text)) pressed.delete(text);
      else {
        if (!ask.many) pressed.clear();
        pressed.add(text);
      }
    } else field.value = text;
    typed();
    if (!ask.many) chosen();
  };
  const typed = () => {
    if (field) fitHeight(field);
    offers.forEach((b, n) => setAttr(b, "aria-pressed", String(presses ? pressed.has(options[n]) : options[n] === field.value)));
  };
  const written = () => (!field ? "" : ask.secret || alone ? field.value.trim() : field.value.replace(/\s+/g, " ").trim());
  const line = h("div", { class: "answer-line" }, field);
  const hint = [ask.many && "choose any", ask.optional && "may be left out"].filter(Boolean).join(", ");
  const words = visible(ask.text) + (hint ? ` (${hint})` : "");
  const el = h("div", { class: "answer-row" },
    field ? h("label", { class: "answer-label", for: id, text: words }) : h("p", { class: "answer-label", id, text: words }),
    offers.length ? h("div", { class: "answer-offers", role: "group", ...(field ? { "aria-label": "Answers it offers" } : { "aria-labelledby": id }) }, ...offers) : null,
    line);
  return {
    el, line, field: field ?? offers[0], may: ask.optional,
    answers: () => [...pressed, written()].filter(Boolean),
    sending(on) {
      busy = on;
      if (field) field.readOnly = on; // not `disabled`: the keyboard would lose its place
      for (const b of offers) setAttr(b, "aria-disabled", on ? "true" : null);
    },
  };
}

function sendOnEnter(event) {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  event.target.form.requestSubmit();
}
