// What a person does with a piece of work: more words for it while it runs, and its answer once it has ended.

import { emptied, fitHeight, h, keepFocus, once, setAttr, setText, show } from "./dom.js";
import { ended } from "./state-work.js";
import { hasVoices } from "./speech.js";
import { whichWords } from "./words.js";

const ways = {
  steer: { button: "Add to it", label: "Add to the running work" },
  next: { button: "Queue next", label: "Do this next" },
  reword: { button: "Reword", label: "Do this instead, in the same session" },
};

/**
 * Makes the actions of a card. `acts`: more(id, way, text), words(id), which resolves to all it was asked, or undefined; again(id), copy(id), aloud(id), session(id), of work that is
 * paused begin(id) and drop(id), and of work that waits beginNow(id) and move(id, by), which changes its turn: -1 and 1 by
 * one, Infinity to the end; of what is watched unwatch(id). On the page of a piece, box: more words have a box of their own there; key tells its ids apart.
 */
export function cardActs(id, acts, { key = id, box = false } = {}) {
  const button = (text, act, look = "") => h("button", { class: `button small ${look}`, type: "button", text, on: { click: act } });
  const label = h("label", { class: "answer-label", for: `more-${key}` });
  const field = h("textarea", { id: `more-${key}`, class: "answer-field", rows: "1", maxlength: "16000" });
  const send = h("button", { class: "button primary", type: "submit", text: "Send" });
  const form = h("form", { class: "more-form", hidden: true }, label, h("div", { class: "answer-line" }, field, send, button("Cancel", () => open(""))));
  let way = "";
  let prompt = ""; // the words that are worded anew
  let begun = false; // the words were to take the place of work that has begun: it takes the button to give them after it
  let named = ""; // the words that its buttons are named by
  const openers = Object.entries(ways).map(([name, w]) => [name, button(w.button, () => press(name))]);
  const over = [button("Copy", () => acts.copy(id)), button("Read aloud", () => acts.aloud(id)), button("Do it again", once(() => acts.again(id)))];
  const paused = [button("Drop", () => acts.drop(id)), button("Continue", () => acts.begin(id), "primary")];
  const waits = [button("Begin now", () => acts.beginNow(id)), ...[["Move up", -1], ["Move down", 1], ["Move to the end", Infinity]].map(([text, by]) => button(text, () => acts.move(id, by)))];
  const unwatch = button("Stop watching", () => acts.unwatch(id));
  const session = button("Open the session", () => acts.session(id));

  // The list may hold only the first part of the words: all of them are fetched.
  async function press(name) {
    const words = name === "reword" && name !== way && await acts.words(id);
    if (words) prompt = words;
    if (words !== undefined) open(name === way ? "" : name);
  }
  function open(name) {
    const from = way;
    way = name;
    begun = false;
    show(form, Boolean(way));
    for (const [n, b] of openers) b.setAttribute("aria-expanded", String(n === way));
    if (!way) return openers.find(([n]) => n === from)?.[1].focus();
    setText(label, ways[way].label);
    if (way === "reword") {
      field.value = prompt;
      fitHeight(field);
    }
    field.focus();
  }
  // The way is no more: the work has begun or ended. Who has typed something can give it all the same.
  function settle(r) {
    const words = field.value.trim();
    if (!words || (way === "reword" && words === prompt.trim())) return open("");
    begun = (begun || way === "reword") && r.outcome !== "cancelled";
    way = "next";
    setText(label, begun ? "It has begun already. Press Send to do this next" : ways.next.label);
  }
  field.addEventListener("input", () => fitHeight(field));
  field.addEventListener("keydown", (e) => {
    if (e.key === "Escape") open("");
    if (e.key !== "Enter" || e.shiftKey || e.isComposing) return;
    e.preventDefault();
    if (!begun) form.requestSubmit();
  });
  form.addEventListener("submit", async (e) => {
    e.preventDefault();
    const text = field.value.trim();
    if (!text || send.getAttribute("aria-disabled") === "true") return;
    send.setAttribute("aria-disabled", "true");
    if (await acts.more(id, way, text)) {
      emptied(field, text);
      if (way && !field.value) open("");
    }
    send.removeAttribute("aria-disabled");
  });
  const el = h("footer", { class: "card-foot" }, session, ...over, ...paused, ...openers.map(([, b]) => b), ...waits, unwatch, form);
  return {
    el,
    /** turn: its place among what waits in its session, { at, of }; seen: Switchboard is gone, and nothing can be done. */
    update(r, { seen, turn }) {
      show(el, !seen);
      if (named !== r.prompt) for (const b of el.querySelectorAll(":scope > .button")) setAttr(b, "aria-label", `${b.textContent}: ${whichWords(r)}`);
      named = r.prompt;
      const done = ended(r);
      const watched = !done && r.why === "watched";
      const queued = !done && !watched && Boolean(r.waits);
      for (const [name, b] of openers) show(b, !done && (name === "reword" ? queued : !box && Boolean(r.thread_id) && !queued && !(watched && r.waits)));
      show(unwatch, watched);
      show(waits[0], queued && r.waits === "ours");
      const [, up, down, last] = waits;
      keepFocus(() => {
        show(up, queued && turn.at > 1);
        show(down, queued && turn.at < turn.of);
        show(last, queued && turn.at < turn.of - 1);
      });
      if (way && (done || queued !== (way === "reword"))) settle(r);
      const [copy, aloud, again] = over;
      show(copy, done && Boolean(r.text));
      show(aloud, done && Boolean(r.spoken || r.text) && hasVoices());
      show(again, done && !r.paused);
      for (const b of paused) show(b, Boolean(r.paused));
      show(session, Boolean(r.thread_id));
    },
  };
}
