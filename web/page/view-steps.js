// What a piece of work did, step by step.

import { h, icon, keepAtEnd, reachable, setAttr, setText, show, whenSeen } from "./dom.js";
import { rich } from "./rich.js";
import { paragraphs } from "./view-text.js";

const makers = { __proto__: null, command, file_change: edit, message: speech, reasoning: speech, plan, review };

/** Makes a step of a piece of work. */
export function step(item) {
  const made = (makers[item.kind] ?? tool)(item);
  if (item.by) made.el.prepend(h("span", { class: "step-by", text: item.by }));
  return made;
}

function command() {
  const line = h("code", { class: "mono command-line" });
  const mark = h("span", { class: "step-mark" });
  const output = reachable(h("pre", { class: "mono output", role: "group", "aria-label": "Output" }));
  const el = h("div", { class: "step command" }, h("div", { class: "command-head" }, line, " ", mark), output);
  return {
    el,
    update(i) {
      setText(line, i.text);
      const bad = i.state === "failed" || (i.exit !== undefined && i.exit !== 0);
      setText(mark, i.asks ? "waits for you" : i.state === "running" ? "running…" : i.state === "stopped" ? "stopped" : bad ? (i.exit !== undefined ? `failed (exit ${i.exit})` : "failed") : "ok");
      setAttr(mark, "data-tone", i.asks ? "ask" : i.state === "running" ? "busy" : i.state === "stopped" ? "flat" : bad ? "bad" : "good");
      show(output, Boolean(i.output));
      keepAtEnd(output, () => setText(output, i.output));
    },
  };
}

function edit() {
  const list = h("ul", { class: "paths mono" });
  const word = h("span", { class: "step-word" });
  const files = h("div", { class: "files" });
  const el = h("div", { class: "step edit" }, word, " ", list, files);
  let shown = "";
  return {
    el,
    update(i) {
      setText(word, i.state === "running" ? "Editing" : i.state === "failed" ? "Could not edit" : "Edited");
      const key = JSON.stringify([i.text, i.changes]);
      if (shown === key) return;
      shown = key;
      const told = i.changes ?? [];
      show(list, !told.length);
      list.replaceChildren(...i.text.split(/[\n,]\s*/).filter(Boolean).map((p) => h("li", { text: p })));
      files.replaceChildren(...told.map(fileDiff));
    },
  };
}

const longDiff = 30; // lines; a longer one is folded

/** Shows one file of an edit, as the agent told it. */
export function fileDiff(c) {
  const lines = (c.diff ?? "").split("\n");
  if (lines.at(-1) === "") lines.pop();
  const name = h("span", { class: "file-name mono", text: c.to ? `${c.path} → ${c.to}` : c.path });
  const kind = { add: "new", delete: "deleted" }[c.kind];
  const head = [name, kind ? h("span", { class: "file-kind", text: kind }) : null,
    h("span", { class: "file-count" }, h("span", { class: "plus", text: `+${c.added ?? 0}` }), " ", h("span", { class: "minus", text: `−${c.removed ?? 0}` }))];
  if (!lines.length) return h("div", { class: "file file-head" }, ...head);
  const box = h("div", { class: "diff mono", role: "group", tabindex: "0", "aria-label": `Changes of ${c.path}` },
    ...lines.map((line) => h("div", { class: `ln ${lineKinds[line[0]] ?? ""}`, text: line || " " })),
    c.cut ? h("div", { class: "ln hunk", text: "… more than is kept" }) : null);
  whenSeen(box, () => import("./highlight.js").then(({ highlight }) => highlight(box, lines, c.to || c.path), () => {})); // plain it reads as well
  return h("details", { class: "file", open: lines.length <= longDiff }, h("summary", { class: "file-head" }, icon("chevron"), ...head), box);
}

const lineKinds = { __proto__: null, "+": "add", "-": "del", "@": "hunk", "\\": "hunk" };

function speech(item) {
  const el = h("div", { class: `step ${item.kind}` });
  return { el, update: (i) => written(el, i) };
}

// What is still being written stands there plain: its marks are not whole.
const written = (el, i) => (i.state === "running" ? paragraphs : rich)(el, i.text || "…");

function plan() {
  const text = h("div", { class: "plan-text" });
  const el = h("div", { class: "step plan", role: "group", "aria-label": "Plan" }, h("span", { class: "step-word", text: "Plan" }), text);
  return { el, update: (i) => written(text, i) };
}

// What the agent's own reviewer decided, so that nobody was asked.
function review() {
  const text = h("div", {});
  const word = h("span", { class: "step-word" });
  const el = h("div", { class: "step review" }, word, text);
  return {
    el,
    update(i) {
      setText(word, i.state === "failed" ? "Not allowed" : "Allowed");
      setAttr(word, "data-tone", i.state === "failed" ? "bad" : "good");
      paragraphs(text, i.text);
    },
  };
}

function tool() {
  const text = h("span", {});
  const el = h("div", { class: "step tool" }, h("span", { class: "step-word", text: "Tool" }), " ", text);
  return { el, update: (i) => setText(text, i.text + (i.state === "failed" ? " (failed)" : "")) };
}
