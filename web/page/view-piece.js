// The page of one piece of work: its answer, what it changed, what it did, what it asked, and a box for the next words.

import * as api from "./api.js";
import { byId, dress, emptied, fitHeight, h, keyed, setAttr, setText, show, whenSeen } from "./dom.js";
import { answerFrame } from "./rich.js";
import { ended, steps as stepsOf, unread } from "./state-work.js";
import { toastProblem } from "./store.js";
import { cardActs } from "./view-acts.js";
import { fillAnswers, fillUnheard, metaOf, showProblem, shownSteps } from "./view-card.js";
import { fileDiff, step } from "./view-steps.js";
import { outcomeWords, workWords } from "./words.js";

/**
 * Wires the page of a piece of work; `acts` as those of a card, and back(), which leaves the page, and send(id, way, text), which
 * gives more words: now or next. Returns its view; view.open(id) shows a piece, view.shown() is its id while it is shown.
 */
export function pieceView(acts, hue) {
  const at = byId("piece");
  const title = h("h2", { id: "piece-title", class: "area-title", tabindex: "-1" });
  const state = h("span", { class: "pill" });
  const stop = h("button", { class: "button small danger-quiet", type: "button", text: "Stop", hidden: true, on: { click: () => { if (!stop.hasAttribute("aria-disabled")) acts.stop(id); } } });
  const back = h("button", { class: "button small piece-back", type: "button", on: { click: () => acts.back() } });
  dress(back, "back", "Work");
  const asks = h("div", { class: "piece-asks", id: "piece-asks" }); // stays: a question that is taken off the page is watched no more
  const box = h("div", { class: "scroll piece-scroll", tabindex: "0", role: "region", "aria-label": "This piece of work" }, asks);
  const say = nextWords((way, text) => acts.send(id, way, text));
  const head = h("div", { class: "area-head piece-head" }, back, title, state, stop);
  let id = "";
  let made = null; // { of, update }
  let last;

  function view(now) {
    last = now;
    if (!id || document.body.dataset.area !== "piece") return;
    const { work } = now;
    const r = work.records[id];
    if (!r) return;
    if (made?.of !== id) {
      made?.el.remove();
      made = { of: id, ...insides(id, acts) };
      asks.dataset.of = id;
      box.className = `scroll piece-scroll ${hue(r.server)}`;
      box.append(made.el);
      box.scrollTop = 0;
      say.turn(id);
    }
    const waiting = Object.values(work.questions).some((q) => q.handoff === id);
    const words = workWords(r, waiting, work.stopping[id], now.feed === "lost" ? now.seen : 0);
    setText(title, r.prompt.trim().split("\n", 1)[0].slice(0, 160) || "Work");
    setText(state, words.text);
    setAttr(state, "data-tone", words.tone);
    show(stop, !ended(r) && now.feed !== "lost");
    setAttr(stop, "aria-disabled", work.stopping[id] ? "true" : null);
    made.update(r, { waiting, read: work.read[id], more: unread(work, r), seen: now.feed === "lost" ? now.seen : 0 });
    say.update(r, now.feed === "lost");
  }
  view.open = (piece) => {
    id = piece;
    if (!at.firstChild) at.append(head, box, say.el);
    setAttr(at, "aria-labelledby", title.id);
    if (last) view(last);
    title.focus({ preventScroll: true });
  };
  view.shown = () => (document.body.dataset.area === "piece" ? id : "");
  return view;
}

// What stands on the page of a piece.
function insides(id, acts) {
  const meta = h("p", { class: "card-meta" });
  const machine = h("strong", { class: "piece-machine" });
  const prompt = h("p", { class: "card-prompt" });
  const answer = answerFrame();
  const running = h("p", { class: "quiet-text", role: "status" });
  const problem = h("div", { class: "problem", hidden: true });
  const unheard = h("ul", { class: "unheard", "aria-label": "Words that it never heard", hidden: true });
  const answers = h("ul", { class: "answers", "aria-label": "Questions that were answered" });
  const files = h("div", { class: "files" });
  const log = logOf(id);
  const foot = cardActs(id, acts, { key: `piece-${id}`, box: true });
  const changes = part("Changes", files);
  const did = part("Log", log.el);
  const questions = part("Questions", answers);
  let edits = "";
  return {
    el: h("div", { class: "piece-in" }, h("p", { class: "piece-where" }, h("span", { class: "plug", "aria-hidden": "true" }), machine, " ", meta), prompt, answer.el, running, problem, unheard, foot.el, changes.el, did.el, questions.el),
    update(r, { waiting, read, more, seen }) {
      if (more) acts.read(id);
      setText(machine, r.server);
      setText(meta, metaOf(r));
      setText(prompt, r.prompt);
      show(prompt, r.prompt.trim().length > 160 || r.prompt.trim().includes("\n"));
      answer.fill(r.server, ended(r) ? r.text || (r.outcome === "result" && r.spoken) || "" : "", outcomeWords(r).tone === "good", 3);
      setText(running, ended(r) ? (r.text || r.spoken || r.error ? "" : "It left no answer.") : waiting ? "It waits for your answer." : r.waits ? "It has not begun yet." : "It is still at work; its answer will stand here.");
      show(running, Boolean(running.textContent));
      show(problem, Boolean(r.error));
      if (r.error) showProblem(problem, r);
      fillUnheard(unheard, r, acts.resend, "p");
      foot.update(r, { seen, turn: { at: 0, of: 0 } });
      const all = stepsOf(r);
      const changed = all.filter((i) => i.kind === "file_change" && i.changes?.length);
      const key = JSON.stringify(changed.map((i) => [i.id, i.state, i.changes.length]));
      if (key !== edits) {
        edits = key;
        files.replaceChildren(...changed.flatMap((i) => i.changes.map(fileDiff)));
      }
      changes.count(new Set(changed.flatMap((i) => i.changes.map((c) => c.to || c.path))).size);
      log.update(r, shownSteps(r, all, waiting), read);
      did.count(Math.max(all.length, read === "whole" ? 0 : r.item_count ?? 0) + (r.left_out ?? 0));
      fillAnswers(answers, r.answers ?? []);
      questions.count((r.answers ?? []).length);
    },
  };
}

// A part of the page with a name and how much is in it; it is there if there is something.
function part(name, ...inside) {
  const count = h("span", { class: "part-count" });
  const el = h("section", { class: "piece-part", hidden: true, "aria-label": name }, h("h3", { class: "part-name" }, name, " ", count), ...inside);
  return {
    el,
    count(n) {
      show(el, n > 0);
      setText(count, String(n));
    },
  };
}

const searchable = 6; // steps, from which on they can be searched

// What it did, step by step, found by words; what is not there is marked, and brought if it is kept.
function logOf(id) {
  const words = h("input", { class: "text-field", type: "search", placeholder: "Search the log", "aria-label": "Search the log", maxlength: 200, autocomplete: "off" });
  const found = h("p", { class: "quiet-text", role: "status", hidden: true });
  const older = h("p", { class: "quiet-text left-out", hidden: true });
  const reading = h("p", { class: "quiet-text", hidden: true });
  const list = h("div", { class: "steps" });
  const whole = new Map(); // steps that were brought, by id
  let shown = [];
  const draw = () => {
    const want = words.value.trim().toLowerCase();
    const fits = want ? shown.filter((i) => `${i.text}\n${i.output ?? ""}\n${(i.changes ?? []).map((c) => `${c.path}\n${c.diff ?? ""}`).join("\n")}`.toLowerCase().includes(want)) : shown;
    keyed(list, fits, (i) => i.id, (i) => marked(i, id, (it) => { whole.set(it.id, it); draw(); }));
    setText(found, want ? (fits.length ? `${fits.length} of ${shown.length}` : "No matches.") : "");
    show(found, Boolean(want));
  };
  words.addEventListener("input", draw);
  return {
    el: h("div", { class: "log" }, words, found, older, reading, list),
    update(r, steps, read) {
      setText(older, r.left_out ? `${r.left_out} earlier ${r.left_out === 1 ? "step is" : "steps are"} no longer kept.` : "");
      show(older, Boolean(r.left_out));
      setText(reading, read === "failed" ? "This could not be read. Open it again to try once more." : "Reading…");
      show(reading, read === "reading" || read === "failed");
      show(words, steps.length >= searchable || words.value !== "");
      shown = steps.map((i) => whole.get(i.id) ?? i);
      draw();
    },
  };
}

// A step; of one that is cut it says so, and all that is kept can be brought.
function marked(item, id, bring) {
  const made = step(item);
  const note = h("span", {});
  const all = h("button", { class: "button small", type: "button", text: "Show what is kept of it", on: { click: () => api.workItem(id, item.id).then((it) => bring({ ...it, brought: true }), toastProblem) } });
  const cut = h("p", { class: "left-out quiet-text", hidden: true }, note, " ", all);
  made.el.append(cut);
  return {
    el: made.el,
    update(i) {
      made.update({ ...i, changes: i.changes?.map(({ diff, ...c }) => c) }); // the changes have a part of their own
      show(cut, Boolean(i.cut));
      show(all, !i.brought);
      setText(note, i.brought ? "The beginning is left out: the last 64 KB are kept." : "A part of this is left out here.");
    },
  };
}

// The box for the next words. They go straight to the work, or to its session when it has ended.
function nextWords(give) {
  const label = h("label", { class: "answer-label", for: "piece-say" });
  const field = h("textarea", { id: "piece-say", class: "answer-field", rows: "1", maxlength: "16000", enterkeyhint: "send" });
  const now = h("button", { class: "button primary", type: "submit", text: "Send" });
  const next = h("button", { class: "button", type: "button", text: "After it", title: "Queue it, after the current work", hidden: true });
  const el = h("form", { class: "piece-say", autocomplete: "off" }, label, h("div", { class: "answer-line" }, field, next, now));
  const drafts = new Map(); // by id: what was typed for pieces that are not shown
  let of = "";
  let busy = false;
  let off = false;
  async function send(way) {
    const text = field.value.trim();
    if (!text || busy || off) return field.focus();
    busy = true;
    dim();
    const at = of;
    if (await give(way, text)) {
      if (of === at) emptied(field, text);
      else if (drafts.get(at)?.trim() === text) drafts.delete(at);
    }
    busy = false;
    dim();
  }
  const dim = () => { for (const b of [now, next]) setAttr(b, "aria-disabled", busy || off ? "true" : null); };
  field.addEventListener("input", () => fitHeight(field));
  field.addEventListener("keydown", (e) => {
    if (e.key !== "Enter" || e.shiftKey || e.isComposing) return;
    e.preventDefault();
    el.requestSubmit();
  });
  next.addEventListener("click", () => send("next"));
  el.addEventListener("submit", (e) => {
    e.preventDefault();
    send("now");
  });
  whenSeen(field, () => fitHeight(field));
  return {
    el,
    /** Takes the words for another piece; those that were typed for the one before wait for it. */
    turn(id) {
      drafts.set(of, field.value);
      of = id;
      field.value = drafts.get(of) ?? "";
      fitHeight(field);
    },
    update(r, lost) {
      off = lost;
      const runs = !ended(r) && !r.waits;
      const where = r.title ? `“${r.title}” on ${r.server}` : r.server;
      setText(label, runs ? `Add to the running work on ${r.server}` : ended(r) ? `Go on in ${where}` : `After this, in ${where}`);
      show(next, runs);
      dim();
    },
  };
}
