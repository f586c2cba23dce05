// The pages of help, made of the elements that they name; there is no markup in them.

import * as api from "./api.js";
import { byId, h, setAttr } from "./dom.js";
import { onEnter } from "./places.js";

const known = new Set(["p", "ul", "ol", "li", "code", "em", "strong", "tr", "th", "td"]);
const headings = { h2: "h4", h3: "h5", h4: "h6" }; // below the page's name, which is an h3

// The name of a heading in a link, as GitHub makes it.
const slug = (heading) => heading.toLowerCase().replace(/[^\p{L}\p{N} -]/gu, "").replaceAll(" ", "-");

// A long name may be broken behind its marks, never in a word.
const breakable = (text) => text.split(/(?<=[._/\]])/).flatMap((part, i) => (i ? [h("wbr"), part] : [part]));

// element makes a node of a page; go(name, heading) shows another page.
function element(n, go) {
  if (!n.tag) return document.createTextNode(n.text ?? "");
  if (n.tag === "code" && (n.in ?? []).every((c) => !c.tag)) {
    const text = (n.in ?? []).map((c) => c.text).join("");
    return h("code", { class: text.startsWith("-") ? "flag" : "" }, ...breakable(text));
  }
  const inside = (n.in ?? []).map((c) => element(c, go));
  if (n.tag === "pre") return h("pre", { class: "mono block", tabindex: "0", text: n.text });
  if (n.tag === "a" && n.href.startsWith("https://")) return h("a", { href: n.href, target: "_blank", rel: "noreferrer noopener" }, ...inside);
  const [, page, heading] = (n.tag === "a" && /^([\w-]+)\.md(?:#(.+))?$/.exec(n.href)) || [];
  if (page) return h("a", { href: "#", on: { click: (event) => { event.preventDefault(); go(page, heading); } } }, ...inside);
  if (n.tag === "table") return h("div", { class: "table-box", tabindex: "0", role: "region", "aria-label": `Table: ${[...inside[0].children].map((e) => e.textContent).join(", ")}` }, h("table", {}, h("tbody", {}, ...inside)));
  return h(headings[n.tag] ?? (known.has(n.tag) ? n.tag : "span"), {}, ...inside);
}

// nameTables tells tables with the same columns apart, by the heading above them.
function nameTables(parts) {
  let heading = "";
  for (const e of parts) {
    if (/^h\d$/.test(e.localName)) heading = `, ${e.textContent}`;
    if (e.className === "table-box") e.setAttribute("aria-label", e.getAttribute("aria-label") + heading);
  }
}

// contents lists the headings of a long page.
function contents(parts) {
  const found = parts.filter((e) => e.localName === "h4");
  if (found.length < 4) return [];
  const lead = (e) => h("li", {}, h("button", { type: "button", text: e.textContent, on: { click: () => arrive(e) } }));
  return [h("nav", { "aria-label": "On this page" }, h("ul", {}, ...found.map(lead)))];
}

function arrive(heading) {
  const box = heading.closest(".scroll");
  heading.tabIndex = -1;
  heading.focus({ preventScroll: true });
  box.scrollTop += heading.getBoundingClientRect().top - box.getBoundingClientRect().top - 12;
}

/** Wires the help: it is read when it is first entered. */
export function helpView() {
  const names = h("nav", { class: "help-names", "aria-label": "Pages of help" });
  const text = h("article", { class: "help-text" });
  byId("help").append(h("div", { class: "area-head" }, h("h2", { id: "help-title", class: "area-title", tabindex: "-1", text: "Help" })), names,
    h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Help page" }, text));
  let shown = "";
  async function open(name, heading) {
    shown = name;
    for (const b of names.children) {
      setAttr(b, "aria-current", b.dataset.name === name ? "page" : null);
      if (b.dataset.name === name) b.scrollIntoView({ block: "nearest", inline: "nearest" });
    }
    try {
      const page = await api.helpPage(name);
      if (shown !== name) return;
      const parts = page.in.map((n) => element(n, open));
      nameTables(parts);
      text.replaceChildren(h("h3", { text: page.title }), ...contents(parts), ...parts);
      text.parentElement.scrollTop = 0;
      const at = heading && [...text.querySelectorAll("h4, h5")].find((e) => slug(e.textContent) === heading);
      if (at) arrive(at);
    } catch (error) {
      text.replaceChildren(h("p", { text: error.message }));
    }
  }
  onEnter("help", async () => {
    if (names.children.length) return;
    try {
      const { items } = await api.helpPages();
      names.replaceChildren(...items.map((p) => h("button", { type: "button", data: { name: p.name }, text: p.title, on: { click: () => open(p.name) } })));
      open(items[0].name);
    } catch (error) {
      text.replaceChildren(h("p", { text: error.message }));
    }
  });
}
