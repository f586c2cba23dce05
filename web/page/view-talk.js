// The conversation: lines, chips, and the box to type into.

import { byId, dress, h, keepAtEnd, keyed, setAttr, setText, show } from "./dom.js";

const who = { you: "You", voice: "Voice", note: "" };

function line(entry) {
  const name = h("span", { class: "line-who", text: who[entry.who] });
  const text = h("span", { class: "line-text" });
  const mark = h("span", { class: "line-mark" });
  const el = h("div", { class: `line ${entry.who}` }, entry.who === "note" ? null : name, text, mark);
  return {
    el,
    update(e) {
      setText(text, e.text || (e.state === "heard" ? "…" : ""));
      setText(mark, { cut: "interrupted", unclear: "This could not be understood." }[e.state] ?? "");
      el.classList.toggle("partial", e.state === "heard" || e.state === "saying");
      setAttr(el, "aria-busy", e.state === "saying" || e.state === "heard" ? "true" : null);
    },
  };
}

/** Wires the conversation; say(text) sends what is typed, chip(text) what a chip says. */
export function talkView({ say, chip }) {
  const box = byId("transcript");
  const chips = byId("chips");
  const field = byId("say");
  const form = byId("composer");
  const hello = h("div", { class: "hello" },
    h("p", { class: "hello-title", text: "Talk to your machines." }),
    h("p", { text: "Call and say what you want done, and on which machine. Or type; it goes the same way." }));
  const lines = h("div", { class: "lines" });
  box.append(hello, lines);
  dress(form.querySelector("button"), "send", "");

  const grow = () => {
    field.style.height = "auto";
    field.style.height = `${Math.min(field.scrollHeight, 160)}px`;
  };
  field.addEventListener("input", grow);
  field.addEventListener("keydown", (e) => {
    if (e.key === "Enter" && !e.shiftKey && !e.isComposing) {
      e.preventDefault();
      form.requestSubmit();
    }
  });
  form.addEventListener("submit", (e) => {
    e.preventDefault();
    const text = field.value.trim();
    if (!text) return;
    field.value = "";
    grow();
    say(text);
    box.scrollTop = box.scrollHeight;
  });

  function chipButton(c) {
    const el = h("button", { class: "chip", type: "button", on: { click: () => chip(c.text) } },
      h("span", { class: "chip-text", text: c.text }), c.hint ? h("span", { class: "chip-hint", text: c.hint }) : null);
    return { el };
  }

  return (state) => {
    show(hello, state.talk.entries.length === 0);
    keepAtEnd(box, () => keyed(lines, state.talk.entries, (e) => e.id, line));
    show(chips, state.voice.chips.length > 0);
    keyed(chips, state.voice.chips, (c) => c.text, chipButton);
    for (const [text, { el }] of chips.keyedChildren) el.classList.toggle("used", state.usedChips.includes(text));
  };
}

/** Puts words into the box for the person to finish. */
export function prefill(text) {
  const field = byId("say");
  field.value = text;
  field.focus();
  field.setSelectionRange(text.length, text.length);
}
