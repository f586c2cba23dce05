// Texts of agents: paragraphs and code, and nothing else of Markdown.

import { h } from "./dom.js";

/** Shows a text with its empty lines as paragraphs; fenced and quoted code stands in mono. All of it is text. */
export function paragraphs(el, text) {
  if (el.shownText === text) return;
  el.shownText = text;
  const parts = text.split(/^```.*$/m);
  el.replaceChildren(...parts.flatMap((part, i) => {
    if (i % 2) return [h("pre", { class: "mono block", text: part.replace(/^\n|\n$/g, "") })];
    return part.split(/\n{2,}/).filter((p) => p.trim()).map((p) => h("p", {}, ...inline(p.trim())));
  }));
}

// What stands between back quotes is code.
const inline = (text) => text.split(/`([^`\n]+)`/).map((part, i) => (i % 2 ? h("code", { text: part }) : part)).filter((part) => part !== "");
