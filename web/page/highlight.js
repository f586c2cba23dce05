// The parts of source text in a diff or in an answer, as spans. It is loaded when the first is seen.

import { h } from "./dom.js";
import { Prism } from "./prism.js";

// Bounds of what is looked through; what is larger stays plain.
const mostText = 60_000; // characters of a diff
const mostLine = 1000; // characters of a line

// Languages by the ending of a file's name.
const endings = {
  __proto__: null, go: "go", js: "javascript", mjs: "javascript", cjs: "javascript", jsx: "javascript", ts: "typescript", mts: "typescript", cts: "typescript",
  tsx: "typescript", py: "python", sh: "bash", bash: "bash", json: "json", webmanifest: "json", css: "css", html: "markup", htm: "markup", xml: "markup",
  svg: "markup", yaml: "yaml", yml: "yaml", rs: "rust", java: "java", c: "clike", h: "clike", cc: "clike", cpp: "clike", cs: "clike", kt: "clike", swift: "clike",
};

// Languages by their other names in answers.
const names = { __proto__: null, golang: "go", python: "python", javascript: "javascript", typescript: "typescript", rust: "rust", shell: "bash", zsh: "bash", jsonc: "json", "c++": "clike", kotlin: "clike", java: "java", yaml: "yaml" };

// What stands in one colour.
const looks = {
  __proto__: null,
  keyword: "key", tag: "key", selector: "key", atrule: "key", boolean: "key", builtin: "key",
  string: "str", char: "str", "attr-value": "str", "template-string": "str", "triple-quoted-string": "str", "string-interpolation": "str", regex: "str", url: "str",
  number: "num", constant: "num",
  comment: "com", prolog: "com", doctype: "com", shebang: "com",
  function: "name", "function-definition": "name", "class-name": "name", property: "name", key: "name", "attr-name": "name", macro: "name", variable: "name",
};

/** Colours a diff in its box: `lines` as the agent told them, a child each, of the file at `path`. Its text stays what it is. */
export function highlight(box, lines, path) {
  const grammar = Prism.languages[endings[path.slice(path.lastIndexOf(".") + 1).toLowerCase()]];
  const size = lines.reduce((n, l) => n + l.length, 0);
  if (!grammar || size > mostText || lines.some((l) => l.length > mostLine)) return;
  box.classList.add("lit");
  for (let from = 0, to; from < lines.length; from = to + 1) {
    to = lines.findIndex((l, i) => i >= from && l[0] === "@");
    if (to < 0) to = lines.length;
    hunk([...box.children].slice(from, to), lines.slice(from, to), grammar);
  }
}

/** Colours code of a language in its box. Its text stays what it is. */
export function colour(box, text, language) {
  const lang = language.toLowerCase();
  const lines = text.split("\n");
  if (text.length > mostText || lines.some((l) => l.length > mostLine)) return;
  if (lang === "diff" || lang === "patch") return box.replaceChildren(...lines.flatMap((l, i) => [...(i ? ["\n"] : []), h("span", { class: { "+": "plus", "-": "minus", "@": "tok-com" }[l[0]] ?? "", text: l })]));
  const grammar = Prism.languages[endings[lang] ?? names[lang]];
  if (!grammar) return;
  box.replaceChildren(...partsOf(text, grammar).flatMap((parts, i) => [...(i ? ["\n"] : []), ...parts.map(([part, look]) => (look ? h("span", { class: `tok-${look}`, text: part }) : part))]));
}

// What was and what is are looked through apart: a comment that begins in the one need not end in the other.
function hunk(rows, lines, grammar) {
  for (const gone of ["+", "-"]) {
    const side = lines.flatMap((l, i) => (l[0] === gone || l[0] === "\\" ? [] : [i]));
    const parts = partsOf(side.map((i) => lines[i].slice(1)).join("\n"), grammar);
    side.forEach((i, n) => rows[i].replaceChildren(...marked(lines[i], parts[n])));
  }
}

const marked = (line, parts) => [line[0] === "+" || line[0] === "-" ? h("span", { class: "ln-mark", text: line[0] }) : line[0] ?? " ",
  ...parts.map(([text, look]) => (look ? h("span", { class: `tok-${look}`, text }) : text))];

// The parts of a text, line by line: [text, look] each.
function partsOf(text, grammar) {
  const out = [[]];
  const put = (token, look) => {
    if (Array.isArray(token)) return token.forEach((t) => put(t, look));
    if (typeof token !== "string") return put(token.content, looks[token.type] ?? look);
    token.split("\n").forEach((part, i) => {
      if (i) out.push([]);
      if (part) out.at(-1).push([part, look]);
    });
  };
  put(Prism.tokenize(text, grammar), "");
  return out;
}
