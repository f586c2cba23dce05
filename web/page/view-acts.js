// What a person does with a piece of work: more words for it while it runs, and its answer once it has ended.

import { dress, fitHeight, h, setText, show } from "./dom.js";
import { ended } from "./state-work.js";
import { hasVoices } from "./speech.js";

const ways = {
  steer: { button: "Add to it", label: "Add to the work that runs now" },
  next: { button: "Queue next", label: "Do after this work has ended" },
};

/**
 * Makes the actions of a card. `acts`: stop(id), more(id, way, text), again(id), copy(id), aloud(id), session(id), and of
 * work that is paused begin(id) and drop(id).
 */
export function cardActs(id, acts) {
  const button = (text, act, look = "") => h("button", { class: `button small ${look}`, type: "button", text, on: { click: act } });
  const stop = button("", () => acts.stop(id), "danger-quiet");
  dress(stop, "stop", "Stop the work");
  const label = h("label", { class: "answer-label", for: `more-${id}` });
  const field = h("textarea", { id: `more-${id}`, class: "answer-field", rows: "1", maxlength: "16000" });
  const send = h("button", { class: "button primary", type: "submit", text: "Send" });
  const form = h("form", { class: "more-form", hidden: true }, label, h("div", { class: "answer-line" }, field, send, button("Cancel", () => open(""))));
  let way = "";
  const openers = Object.entries(ways).map(([name, w]) => [name, button(w.button, () => open(name === way ? "" : name))]);
  const over = [button("Copy", () => acts.copy(id)), button("Read aloud", () => acts.aloud(id)), button("Do it again", () => acts.again(id))];
  const paused = [button("Drop", () => acts.drop(id)), button("Continue", () => acts.begin(id), "primary")];
  const session = button("Open the session", () => acts.session(id));

  function open(name) {
    const from = way;
    way = name;
    show(form, Boolean(way));
    for (const [n, b] of openers) b.setAttribute("aria-expanded", String(n === way));
    if (!way) return openers.find(([n]) => n === from)?.[1].focus();
    setText(label, ways[way].label);
    field.focus();
  }
  field.addEventListener("input", () => fitHeight(field));
  field.addEventListener("keydown", (e) => {
    if (e.key === "Escape") open("");
    if (e.key !== "Enter" || e.shiftKey || e.isComposing) return;
    e.preventDefault();
    form.requestSubmit();
  });
  form.addEventListener("submit", async (e) => {
    e.preventDefault();
    const text = field.value.trim();
    if (!text || send.getAttribute("aria-disabled") === "true") return;
    send.setAttribute("aria-disabled", "true");
    if (await acts.more(id, way, text)) {
      field.value = "";
      fitHeight(field);
      open("");
    }
    send.removeAttribute("aria-disabled");
  });
  const el = h("footer", { class: "card-foot" }, session, ...over, ...paused, ...openers.map(([, b]) => b), stop, form);
  return {
    el,
    stop,
    update(r, waiting) {
      const done = ended(r);
      show(stop, !done && !waiting); // its question offers that
      for (const [name, b] of openers) show(b, !done && Boolean(r.thread_id) && (name === "next" || !r.waits));
      if (done && way) open("");
      const [copy, aloud, again] = over;
      show(copy, done && Boolean(r.text));
      show(aloud, done && Boolean(r.spoken || r.text) && hasVoices());
      show(again, done && !r.paused);
      for (const b of paused) show(b, Boolean(r.paused));
      show(session, Boolean(r.thread_id));
    },
  };
}
