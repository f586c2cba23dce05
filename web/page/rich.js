// Texts of agents as they are meant: headings, lists, tables, code, links. Switchboard says which elements a text has;
// only those that are listed here are made, and what an agent writes is never markup, nor one of the page's controls.

import * as api from "./api.js";
import { h, reachable, setText, show, whenSeen } from "./dom.js";
import { paragraphs } from "./view-text.js";

const signs = /[*_`#|~<&\\]|\]\(|\]\[|^ {0,3}>|^\s*(?:\d+[.)]|[-+])\s|^={2,}|^ {4}|:\/\/|www\.|\S@\S|\n\t/m; // that something of it is meant for more than a text
const mostText = 200_000; // letters; of a longer one the rest stays as it is
const mostAtOnce = 400_000; // bytes of a request
const mostKept = 60; // texts whose elements are at hand

const plain = new Set(["p", "ul", "ol", "li", "blockquote", "em", "strong", "del", "br", "hr", "tr", "th", "td"]);

const kept = new Map(); // by text: its elements, or a promise of them
let asked = []; // { text, got, failed }

/** The elements of a text, as the server tells them; texts that are asked for at once go in one request. */
export function elementsOf(text) {
  if (!kept.has(text)) {
    const { promise, resolve, reject } = Promise.withResolvers();
    if (!asked.length) setTimeout(askAll);
    asked.push({ text, resolve, reject });
    kept.set(text, promise);
    promise.catch(() => kept.delete(text));
    if (kept.size > mostKept) kept.delete(kept.keys().next().value);
  }
  return kept.get(text);
}

async function askAll() {
  const all = asked;
  asked = [];
  while (all.length) {
    const some = [all.shift()];
    for (let size = some[0].text.length * 2; all.length && some.length < 100 && (size += all[0].text.length * 2) < mostAtOnce;) some.push(all.shift());
    try {
      const { items } = await api.render(some.map((a) => a.text));
      some.forEach((a, i) => a.resolve(items[i]));
    } catch (error) {
      some.forEach((a) => a.reject(error));
    }
  }
}

/** Shows a text of an agent; its headings begin at this level. Until Switchboard has said what it is, it stands there plain. */
export function rich(el, text, level = 4) {
  if (el.shownText === text) return;
  el.classList.add("rich");
  paragraphs(el, text);
  if (!signs.test(text)) return;
  const [head, rest] = text.length > mostText ? [text.slice(0, mostText), text.slice(mostText)] : [text, ""];
  elementsOf(head).then((nodes) => {
    if (el.shownText !== text) return; // it went on
    el.replaceChildren(...elements(nodes, level), ...(rest ? [code({ text: rest })] : []));
  }, () => {}); // plain it reads as well
}

/** Makes the frame of an answer: what stands in it was written by an agent. fill(who, text, good) shows one; "" hides it. */
export function answerFrame() {
  const by = h("figcaption", { class: "answer-by" });
  const body = h("div", { class: "answer-text" });
  const el = h("figure", { class: "answer", hidden: true }, by, body);
  return {
    el,
    fill(who, text, good, level) {
      setText(by, `${who} answered`);
      rich(body, text, level);
      el.classList.toggle("partly", !good);
      show(el, Boolean(text));
    },
  };
}

/** Makes the elements of a text. */
export function elements(nodes, level = 4) {
  const above = []; // the headings above, as the agent counts them
  const make = (n) => {
    if (!n.tag) return n.text ?? "";
    const inside = () => (n.in ?? []).map(make);
    if (/^h[1-6]$/.test(n.tag)) {
      while (above.length && above.at(-1) >= n.tag) above.pop();
      above.push(n.tag);
      return h(`h${Math.min(6, level + above.length - 1)}`, { class: `rich-head rich-${n.tag}` }, ...inside());
    }
    if (n.tag === "pre") return code(n);
    if (n.tag === "code") return h("code", { text: words(n) });
    if (n.tag === "a") return link(n.href, ...inside());
    if (n.tag === "image") return link(n.href, h("span", { class: "rich-picture", text: "Picture: " }), ...inside());
    if (n.tag === "task") return h("span", { class: "rich-task", role: "img", "aria-label": n.text ? "done" : "open", text: n.text ? "☑" : "☐" });
    if (n.tag === "table") return table(n, make);
    if (!plain.has(n.tag)) return h("span", {}, ...inside());
    return h(n.tag, { start: n.tag === "ol" ? n.start : null, "data-align": n.align }, ...inside());
  };
  return nodes.map(make);
}

const words = (n) => (n.text ?? "") + (n.in ?? []).map(words).join("");

// A link leaves the page and tells where it goes; only the web is a place to go.
const link = (href, ...inside) => (/^https?:\/\//.test(href) ? h("a", { href, title: href, target: "_blank", rel: "noopener noreferrer" }, ...inside) : h("span", {}, ...inside));

function table(n, make) {
  const [head, ...rows] = (n.in ?? []).map(make);
  return reachable(h("div", { class: "rich-table", role: "group", "aria-label": "Table" }, h("table", {}, head ? h("thead", {}, head) : null, h("tbody", {}, ...rows))));
}

function code({ text, lang }) {
  const shown = text.replace(/\n$/, "");
  const box = reachable(h("pre", { class: "mono block", role: "group", "aria-label": lang ? `Code, ${lang}` : "Code", text: shown }));
  if (lang) whenSeen(box, () => import("./highlight.js").then(({ colour }) => colour(box, shown, lang), () => {})); // plain it reads as well
  return box;
}
