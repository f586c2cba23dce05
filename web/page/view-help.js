// The pages of help, made of the elements that they name; there is no markup in them.

import * as api from "./api.js";
import { byId, h, setAttr } from "./dom.js";
import { onEnter } from "./places.js";

const known = new Set(["h1", "h2", "h3", "h4", "p", "ul", "ol", "li", "code", "pre", "em", "strong", "table", "tr", "th", "td"]);

// A long name may be broken behind its marks, never in a word.
const breakable = (text) => text.split(/(?<=[._/\]])/).flatMap((part, i) => (i ? [h("wbr"), part] : [part]));

function element(n) {
  if (!n.tag) return document.createTextNode(n.text ?? "");
  if (n.tag === "code" && (n.in ?? []).every((c) => !c.tag)) {
    const text = (n.in ?? []).map((c) => c.text).join("");
    return h("code", { class: text.startsWith("-") ? "flag" : "" }, ...breakable(text));
  }
  const inside = (n.in ?? []).map(element);
  if (n.tag === "pre") return h("pre", { class: "mono block", tabindex: "0", text: n.text });
  if (n.tag === "a") return /^https:\/\//.test(n.href) ? h("a", { href: n.href, target: "_blank", rel: "noreferrer noopener" }, ...inside) : h("span", {}, ...inside);
  if (n.tag === "table") return h("div", { class: "table-box", tabindex: "0", role: "region", "aria-label": `Table: ${[...inside[0].children].map((e) => e.textContent).join(", ")}` }, h("table", {}, h("tbody", {}, ...inside)));
  return known.has(n.tag) ? h(n.tag === "h2" ? "h4" : n.tag, {}, ...inside) : h("span", {}, ...inside);
}

/** Wires the help: it is read when it is first entered. */
export function helpView() {
  const names = h("nav", { class: "help-names", "aria-label": "Pages of help" });
  const text = h("article", { class: "help-text" });
  byId("help").append(h("div", { class: "area-head" }, h("h2", { id: "help-title", class: "area-title", tabindex: "-1", text: "Help" })), names,
    h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Help page" }, text));
  let shown = "";
  async function open(name) {
    shown = name;
    for (const b of names.children) {
      setAttr(b, "aria-current", b.dataset.name === name ? "page" : null);
      if (b.dataset.name === name) b.scrollIntoView({ block: "nearest", inline: "nearest" });
    }
    try {
      const page = await api.helpPage(name);
      if (shown !== name) return;
      text.replaceChildren(h("h3", { text: page.title }), ...page.in.map(element));
      text.parentElement.scrollTop = 0;
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
