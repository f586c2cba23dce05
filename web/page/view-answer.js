// An answer in words: a labelled field for each thing that an agent asks, with the answers it offers.

import { fitHeight, h, setAttr } from "./dom.js";
import { visible } from "./words.js";

const most = 4000; // letters of an answer; Switchboard takes 4 KiB

/** Makes the form of a question in words; send(text) gives the answer, a line for each thing that is asked. */
export function answerForm(q, send) {
  const asks = q.asks?.length ? q.asks : [{ text: q.text }];
  const alone = asks.length === 1;
  // What is chosen is sent with Send, as what is typed: the keyboard goes there, or to what is still missing.
  const chosen = () => (rows.find((r) => r.value() === "")?.field ?? button).focus();
  const rows = asks.map((ask, i) => row(q, ask, i, alone, chosen));
  const button = h("button", { class: "button primary", type: "submit", text: "Send" });
  rows.at(-1).line.append(button);
  let busy = false;
  const el = h("form", {
    class: "answer-form", autocomplete: "off",
    on: {
      submit: (event) => {
        event.preventDefault();
        const lines = rows.map((r) => r.value());
        const empty = lines.indexOf("");
        if (busy) return;
        if (empty >= 0) rows[empty].field.focus();
        else send(lines.join("\n"));
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

// One thing that is asked. An answer that is offered fills the field.
function row(q, ask, i, alone, chosen) {
  const id = `a-${q.id}-${i}`;
  const field = ask.secret
    ? h("input", { class: "answer-field", id, type: "password", maxlength: most, autocomplete: "off", spellcheck: "false" })
    : h("textarea", { class: "answer-field", id, rows: 1, maxlength: most, autocomplete: "off", on: { keydown: sendOnEnter, input: () => typed() } });
  const offers = (ask.options ?? []).map((text) =>
    h("button", { class: "button small", type: "button", "aria-pressed": "false", text: visible(text), on: { click: () => pick(text) } }));
  const pick = (text) => {
    if (field.readOnly) return;
    field.value = text;
    typed();
    chosen();
  };
  const typed = () => {
    fitHeight(field);
    for (const b of offers) setAttr(b, "aria-pressed", String(b.textContent === field.value));
  };
  const line = h("div", { class: "answer-line" }, field);
  const el = h("div", { class: "answer-row" },
    h("label", { class: "answer-label", for: id, text: visible(ask.text) }),
    offers.length ? h("div", { class: "answer-offers", role: "group", "aria-label": "Answers it offers" }, ...offers) : null,
    line);
  return {
    el, line, field,
    value: () => (ask.secret || alone ? field.value.trim() : field.value.replace(/\s+/g, " ").trim()),
    sending(on) {
      field.readOnly = on; // not `disabled`: the keyboard would lose its place
      for (const b of offers) setAttr(b, "aria-disabled", on ? "true" : null);
    },
  };
}

function sendOnEnter(event) {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  event.target.form.requestSubmit();
}
