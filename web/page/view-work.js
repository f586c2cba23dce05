// The work: one card for each piece, newest first.

import { byId, h, icon, keepAtEnd, keyed, setAttr, setText, show } from "./dom.js";
import { ended, newestFirst, openQuestions, running, steps as stepsOf, unread } from "./state-work.js";
import { cardActs } from "./view-acts.js";
import { step } from "./view-steps.js";
import { paragraphs } from "./view-text.js";
import { ago, answerWords, workFacts, placeWords, took, workWords } from "./words.js";

/** Wires the work. `acts`: stop(id), stopAll(), read(id); hue(server) gives a machine's colour. */
export function workView(acts, hue) {
  const cards = byId("cards");
  const stopAll = byId("stop-all");
  const box = cards.parentElement;
  let top = "";
  stopAll.addEventListener("click", acts.stopAll);
  return (state) => {
    const all = newestFirst(state.work);
    const open = openQuestions(state.work);
    const busy = running(state.work);
    const asked = new Set(open.map((q) => q.handoff));
    keyed(cards, all.map((record) => ({ record, waiting: asked.has(record.id), stopping: state.work.stopping[record.id], read: state.work.read[record.id], unread: unread(state.work, record) })),
      (v) => v.record.id, (v) => card(v, hue, acts));
    // What comes on top is what was asked for just now: it is shown, unless somebody is at work in the list.
    const first = all[0]?.id ?? "";
    if (first !== top && !open.length && !box.contains(document.activeElement)) box.scrollTop = 0;
    top = first;
    show(byId("no-work"), state.loaded && all.length === 0 && open.length === 0);
    show(stopAll, busy.length > 1);
    setText(stopAll, `Stop all work (${busy.length})`);
  };
}

function card({ record }, hue, acts) {
  const part = {
    machine: h("span", { class: "plug-name", id: `m-${record.id}`, text: record.server }),
    title: h("span", { class: "card-title" }),
    state: h("span", { class: "pill" }),
    meta: h("p", { class: "card-meta" }),
    prompt: h("p", { class: "card-prompt" }),
    stepsTitle: h("span", {}),
    steps: h("div", { class: "steps" }),
    reading: h("p", { class: "quiet-text", hidden: true }),
    whole: h("button", { class: "button small", type: "button", text: "Show all of it", hidden: true, on: { click: () => acts.read(record.id) } }),
    answer: h("div", { class: "answer" }),
    problem: h("div", { class: "problem", hidden: true }),
    answers: h("ul", { class: "answers", "aria-label": "Questions that were answered" }),
  };
  const foot = cardActs(record.id, acts);
  part.stop = foot.stop;
  let touched = false;
  let wasEnded = ended(record);
  const details = h("details", { class: "did", open: !wasEnded },
    h("summary", { on: { click: () => { touched = true; } } }, icon("chevron"), part.stepsTitle), part.reading, part.steps, part.answers);
  let has = false; // what its details show; else they are read when they are opened
  details.addEventListener("toggle", () => { if (details.open && !has) acts.read(record.id); });
  const head = h("header", { class: "card-head" },
    h("h3", { class: "card-name" }, h("span", { class: "plug", "aria-hidden": "true" }), part.machine, " ", part.title), part.state);
  const el = h("article", { class: `card ${hue(record.server)}`, id: `card-${record.id}`, tabindex: "-1", "aria-labelledby": `m-${record.id}` },
    head, part.meta, part.prompt, details, part.answer, part.problem, part.whole, foot.el);
  return {
    el,
    update({ record: r, waiting, stopping, read, unread: more }) {
      if (ended(r) && !wasEnded && !touched) details.open = false;
      wasEnded = ended(r);
      fillCard(part, r, workWords(r, waiting, stopping), stopping);
      foot.update(r, waiting);
      fillAnswers(part.answers, r.answers ?? []);
      const steps = stepsOf(r);
      const count = Math.max(steps.length, read === "whole" ? 0 : r.item_count ?? 0);
      show(details, count > 0);
      setText(part.stepsTitle, ended(r) ? `What it did (${count})` : `What it does (${count})`);
      has = !more && read !== "failed";
      if (more && details.open) acts.read(r.id);
      fillReading(part, r, read, count > steps.length);
      // What runs while something is asked does not run: it waits for the answer.
      // What ran when it ended was stopped with it.
      const cut = (i) => i.state === "running" || (r.outcome === "interrupted" && i.state === "failed" && i.exit === undefined);
      const shown = ended(r) ? steps.map((i) => (cut(i) ? { ...i, state: "stopped" } : i)) : waiting ? steps.map((i) => (i.state === "running" ? { ...i, asks: true } : i)) : steps;
      keepAtEnd(part.steps, () => keyed(part.steps, shown, (i) => i.id, step));
      el.classList.toggle("over", ended(r));
    },
  };
}

// Who answered what, how and when.
function fillAnswers(el, answers) {
  show(el, answers.length > 0);
  if (el.childElementCount !== answers.length) el.replaceChildren(...answers.map((a) => h("li", { text: answerWords(a) })));
}

// What of a card is still to be read.
function fillReading(part, r, read, lacks) {
  show(part.reading, lacks && Boolean(read));
  setText(part.reading, read === "failed" ? "This could not be read. Close it and open it again to try once more." : "Reading…");
  show(part.whole, Boolean(r.clipped));
  setAttr(part.whole, "aria-disabled", read === "reading" ? "true" : null);
}

function fillCard(part, r, words, stopping) {
  setText(part.prompt, r.prompt);
  setText(part.title, r.title && !same(r.title, r.prompt) ? r.title : "");
  setText(part.state, words.text);
  setAttr(part.state, "data-tone", words.tone);
  const began = Date.parse(r.created_at);
  const times = r.ended_at ? `${ago(Date.parse(r.ended_at), Date.now())}, took ${took(began, Date.parse(r.ended_at))}` : `${r.waits ? "asked" : "began"} ${ago(began, Date.now())}`;
  setText(part.meta, [r.project && `project ${r.project}`, r.thread_id && placeWords(r), times, ...workFacts(r)].filter(Boolean).join(" · "));
  const good = r.outcome === "result";
  const answer = ended(r) ? r.text || (good && r.spoken) || "" : "";
  paragraphs(part.answer, answer);
  part.answer.classList.toggle("partly", !good || r.tests === "failed");
  show(part.answer, Boolean(answer));
  show(part.problem, Boolean(r.error));
  if (r.error) problem(part.problem, r.error);
  setAttr(part.stop, "aria-disabled", stopping ? "true" : null);
}

// A new session is often called by its first request: once is enough.
const same = (a, b) => a.trim().toLowerCase() === b.trim().toLowerCase();

function problem(el, error) {
  const key = JSON.stringify(error);
  if (el.dataset.key === key) return;
  el.dataset.key = key;
  el.replaceChildren(
    h("p", { class: "problem-what", text: error.message }),
    ...(error.next ? [h("p", { class: "problem-next", text: error.next })] : []),
    ...(error.detail ? [h("pre", { class: "mono problem-detail", text: error.detail })] : []));
}
