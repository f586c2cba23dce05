// One piece of work: a card while it runs, a line that opens once it is finished.

import { h, icon, keepAtEnd, keyed, reachable, setAttr, setText, show } from "./dom.js";
import { ended, over, steps as stepsOf } from "./state-work.js";
import { cardActs } from "./view-acts.js";
import { step } from "./view-steps.js";
import { paragraphs } from "./view-text.js";
import { ago, answerWords, placeWords, took, workFacts, workWords } from "./words.js";

const parts = (id) => ({
  machine: h("span", { class: "plug-name", id: `m-${id}` }),
  title: h("span", { class: "card-title" }),
  asked: h("span", { class: "line-asked" }),
  came: h("span", { class: "line-came" }),
  when: h("span", { class: "line-when" }),
  state: h("span", { class: "pill" }),
  meta: h("p", { class: "card-meta" }),
  prompt: reachable(h("p", { class: "card-prompt" })),
  stepsTitle: h("span", {}),
  steps: reachable(h("div", { class: "steps", role: "group", "aria-label": "Steps" })),
  reading: h("p", { class: "quiet-text", hidden: true }),
  answer: h("div", { class: "answer" }),
  problem: h("div", { class: "problem", hidden: true }),
  unheard: h("ul", { class: "unheard", "aria-label": "Words that it never heard", hidden: true }),
  answers: h("ul", { class: "answers", "aria-label": "Questions that were answered" }),
});

/** Makes a card. `acts` as in cardActs, and resend(id, i), read(id), opened(id, on): a finished one was opened or closed. */
export function workCard({ record }, hue, acts) {
  const part = parts(record.id);
  const body = h("div", { class: "card-body", id: `b-${record.id}` });
  part.line = h("button", { class: "line-open", type: "button", "aria-controls": body.id, on: { click: () => acts.opened(record.id, body.hidden) } },
    icon("chevron"), part.asked, part.came);
  part.name = h("span", { class: "open-name" }, h("span", { class: "plug", "aria-hidden": "true" }), part.machine, " ", part.title);
  part.whole = h("button", { class: "button small", type: "button", text: "Show all of it", hidden: true, on: { click: () => acts.read(record.id) } });
  const foot = cardActs(record.id, acts);
  part.stop = foot.stop;
  let touched = false;
  let wasEnded = ended(record);
  let has = false; // what its details show; else they are read when they are opened
  const details = h("details", { class: "did", open: !wasEnded },
    h("summary", { on: { click: () => { touched = true; } } }, icon("chevron"), part.stepsTitle), part.reading, part.steps, part.answers);
  details.addEventListener("toggle", () => { if (details.open && !has) acts.read(record.id); });
  const head = h("header", { class: "card-head" }, h("h4", { class: "card-name" }, part.name, part.line), part.when, part.state);
  body.append(part.meta, part.prompt, details, part.answer, part.problem, part.unheard, part.whole, foot.el);
  const el = h("article", { class: `card ${hue(record.server)}`, id: `card-${record.id}`, tabindex: "-1", "aria-labelledby": `m-${record.id}` }, head, body);
  return {
    el,
    update({ record: r, waiting, stopping, read, unread: more, open }) {
      if (ended(r) && !wasEnded && !touched) details.open = false;
      wasEnded = ended(r);
      fillCard(part, r, workWords(r, waiting, stopping), stopping);
      foot.update(r, waiting);
      fillAnswers(part.answers, r.answers ?? []);
      fillUnheard(part.unheard, r, acts.resend);
      const steps = stepsOf(r);
      const count = Math.max(steps.length, read === "whole" ? 0 : r.item_count ?? 0);
      show(details, count > 0 || (r.answers ?? []).length > 0);
      setText(part.stepsTitle, count === 0 ? "What you were asked" : ended(r) ? `What it did (${count})` : `What it does (${count})`);
      const folded = over(r) && !open;
      show(body, !folded);
      has = !more && read !== "failed";
      if (more && details.open && !folded) acts.read(r.id);
      fillReading(part, r, read, count > steps.length);
      if (!folded) keepAtEnd(part.steps, () => keyed(part.steps, shownSteps(r, steps, waiting), (i) => i.id, step));
      el.classList.toggle("over", over(r));
      el.classList.toggle("folded", folded);
      setAttr(part.line, "aria-expanded", String(!folded));
    },
  };
}

/** What runs while something is asked does not run: it waits for the answer. What ran when it ended was stopped with it. */
export function shownSteps(r, steps, waiting) {
  const cut = (i) => i.state === "running" || (r.outcome === "interrupted" && i.state === "failed" && i.exit === undefined);
  if (ended(r)) return steps.map((i) => (cut(i) ? { ...i, state: "stopped" } : i));
  return waiting ? steps.map((i) => (i.state === "running" ? { ...i, asks: true } : i)) : steps;
}

/** Shows who answered what, how and when. */
export function fillAnswers(el, answers) {
  show(el, answers.length > 0);
  if (el.childElementCount !== answers.length) el.replaceChildren(...answers.map((a) => h("li", { text: answerWords(a) })));
}

// Words that it took and never heard: nothing was begun for them, and they can be given once more.
function fillUnheard(el, r, resend) {
  const words = r.undelivered ?? [];
  show(el, words.length > 0);
  keyed(el, words.map((text, i) => ({ text, i })), (w) => w.i, ({ i }) => {
    const said = h("p", { id: `u-${r.id}-${i}` });
    const send = h("button", { class: "button small", type: "button", text: "Send again", "aria-describedby": said.id });
    send.addEventListener("click", async () => {
      if (send.getAttribute("aria-disabled") === "true") return;
      setAttr(send, "aria-disabled", "true");
      await resend(r.id, i);
      setAttr(send, "aria-disabled", null);
    });
    return { el: h("li", {}, said, send), update: ({ text }) => setText(said, `Not heard: “${text}”`) };
  });
}

// What of a card is still to be read.
function fillReading(part, r, read, lacks) {
  show(part.reading, lacks && Boolean(read));
  setText(part.reading, read === "failed" ? "This could not be read. Close it and open it again to try once more." : "Reading…");
  show(part.whole, Boolean(r.clipped));
  setAttr(part.whole, "aria-disabled", read === "reading" ? "true" : null);
}

function fillCard(part, r, words, stopping) {
  setText(part.machine, r.server);
  setText(part.prompt, r.prompt);
  setText(part.title, r.title && !same(r.title, r.prompt) ? r.title : "");
  setText(part.state, words.text);
  setAttr(part.state, "data-tone", words.tone);
  const began = Date.parse(r.created_at);
  const done = r.ended_at ? ago(Date.parse(r.ended_at), Date.now()) : "";
  const times = r.paused ? "" : done ? `${done}, took ${took(began, Date.parse(r.ended_at))}` : `${r.waits ? "asked" : "began"} ${ago(began, Date.now())}`;
  setText(part.meta, [r.project && `project ${r.project}`, !r.paused && r.thread_id && placeWords(r), times, ...workFacts(r)].filter(Boolean).join(" · "));
  const good = r.outcome === "result";
  const answer = ended(r) ? r.text || (good && r.spoken) || "" : "";
  paragraphs(part.answer, answer);
  part.answer.classList.toggle("partly", !good || r.tests === "failed");
  show(part.answer, Boolean(answer));
  show(part.problem, Boolean(r.error));
  if (r.error) showProblem(part.problem, r);
  setAttr(part.stop, "aria-disabled", stopping ? "true" : null);
  show(part.name, !over(r)); // its session stands above it
  show(part.line, over(r));
  show(part.when, over(r));
  setText(part.asked, short(r.prompt));
  setText(part.came, [r.tests === "failed" && "tests fail", short(answer || r.error?.message || "")].filter(Boolean).join(" · "));
  setText(part.when, done);
}

// The beginning of a text, as a line shows it.
const short = (text) => (text.trim().split("\n", 1)[0] ?? "").replaceAll("`", "").slice(0, 200);

// A new session is often called by its first request: once is enough.
const same = (a, b) => a.trim().toLowerCase() === b.trim().toLowerCase();

/** Shows what went wrong with work; that a person stopped it, or what it waited for, did not. */
export function showProblem(el, { error, outcome, paused }) {
  const calm = paused || outcome === "cancelled";
  el.classList.toggle("calm", Boolean(calm));
  fillProblem(el, calm ? { message: error.message } : error);
}

function fillProblem(el, error) {
  const key = JSON.stringify(error);
  if (el.dataset.key === key) return;
  el.dataset.key = key;
  el.replaceChildren(
    h("p", { class: "problem-what", text: error.message }),
    ...(error.next ? [h("p", { class: "problem-next", text: error.next })] : []),
    ...(error.detail ? [h("pre", { class: "mono problem-detail", text: error.detail })] : []));
}
