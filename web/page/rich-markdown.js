// Texts of agents in what is saved: still Markdown, but with no HTML, and with no picture that whoever reads it would load.

import { elementsOf } from "./rich.js";

const loads = /!\[|<|!\\\n?\[/; // that a text may have what has to be taken out
const most = 100_000; // letters of a text that is read for it

/** Returns a text as it may be saved. */
export async function harmless(text = "") {
  if (!loads.test(text)) return text;
  if (text.length > most) return text.replaceAll("<", "&lt;").replaceAll("![", "\\!\\[");
  return markdownOf(await elementsOf(text));
}

const indented = (text, by) => text.replaceAll("\n", `\n${by}`).replace(/[ ]+$/gm, "");
const escaped = (text) => text.replace(/[\\`*_[\]<~|]/g, "\\$&");
const marks = { em: "*", strong: "**", del: "~~" };

/** Writes elements as Markdown. */
export function markdownOf(nodes) {
  const blocks = [];
  let line = "";
  const end = () => { if (line.trim()) blocks.push(line.trim()); line = ""; };
  for (const n of nodes) {
    const block = blockOf(n);
    if (block === undefined) line += inline(n);
    else {
      end();
      blocks.push(block);
    }
  }
  end();
  return blocks.join("\n\n");
}

function blockOf(n) {
  const heading = /^h([1-6])$/.exec(n.tag ?? "");
  if (heading) return `${"#".repeat(heading[1])} ${within(n)}`;
  switch (n.tag) {
    case "p": return within(n);
    case "pre": return fenced(n.lang ?? "", n.text ?? "");
    case "hr": return "---";
    case "blockquote": return `> ${indented(markdownOf(n.in ?? []), "> ")}`;
    case "ul": return (n.in ?? []).map((i) => `- ${indented(markdownOf(i.in ?? []), "  ")}`).join("\n");
    case "ol": return (n.in ?? []).map((i, at) => `${(n.start || 1) + at}. ${indented(markdownOf(i.in ?? []), "   ")}`).join("\n");
    case "table": return tableOf(n.in ?? []);
    default: return undefined;
  }
}

const within = (n) => (n.in ?? []).map(inline).join("");

function inline(n) {
  if (!n.tag) return escaped(n.text ?? "");
  if (n.tag === "br") return "\\\n";
  if (n.tag === "task") return n.text ? "[x] " : "[ ] ";
  if (n.tag === "code") return coded((n.in ?? []).map((c) => c.text ?? "").join(""));
  if (n.tag === "a") return `[${within(n)}](<${n.href}>)`;
  if (n.tag === "image") return `[Picture: ${within(n)}](<${n.href}>)`;
  const mark = marks[n.tag] ?? "";
  return mark + within(n) + mark;
}

function tableOf([head, ...rows]) {
  const row = (r) => `| ${(r.in ?? []).map((c) => within(c).replaceAll("\n", " ")).join(" | ")} |`;
  const rule = `|${(head?.in ?? []).map((c) => ({ right: "--:", center: ":-:" }[c.align] ?? "---")).join("|")}|`;
  return head ? [row(head), rule, ...rows.map(row)].join("\n") : "";
}

const longest = (text) => Math.max(0, ...[...text.matchAll(/`+/g)].map((m) => m[0].length));

function coded(text) {
  const quotes = "`".repeat(longest(text) + 1);
  return text.includes("`") ? `${quotes} ${text} ${quotes}` : `\`${text}\``;
}

/** Writes code between marks that are longer than any in it. */
export function fenced(kind, text) {
  const quotes = "`".repeat(Math.max(3, longest(text) + 1));
  return `${quotes}${kind}\n${text.trimEnd()}\n${quotes}`;
}
