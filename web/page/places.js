// Where the person is on the page: an area, its address, and the browser's way back.

import { setAttr } from "./dom.js";

const home = ["talk", "work", "fleet"]; // side by side where there is room
export const areas = [...home, "piece", "sessions", "history", "settings", "help"]; // piece: of work, #work/ID
const entered = new Map(); // what an area does when it is entered

const left = new Map(); // what an area does when it is left

/** Runs f whenever an area is left, before it goes out of sight. */
export const onLeave = (area, f) => left.set(area, f);

/** Runs f whenever an area is entered. */
export const onEnter = (area, f) => entered.set(area, f);

let things = () => {}; // shows what an address names in an area

/** Has f(area, names) show what an address names beyond an area: #work/ID, #sessions/MACHINE/SESSION, #fleet/MACHINE. */
export const onThing = (f) => { things = f; };

/** Writes down in the address what is shown in an area. */
export function at(area, ...names) {
  history.replaceState(null, "", `#${[area, ...names].map(encodeURIComponent).join("/")}`);
}

/** Shows an area, or what an address names in it. */
export function go(address, { remember = true } = {}) {
  const [named, ...names] = address.split("/").map(decode);
  const area = named === "work" && names.length ? "piece" : areas.includes(named) ? named : "talk";
  const before = document.body.dataset.area;
  const hash = area === "piece" ? `#work/${names.map(encodeURIComponent).join("/")}` : `#${area}`;
  if (remember && (before !== area || (area === "piece" && location.hash !== hash))) history.pushState({ from: before }, "", area === "talk" ? location.pathname : hash);
  if (before !== area) left.get(before)?.();
  setAttr(document.body, "data-area", area);
  const apart = area === "fleet" && document.querySelector(".places [data-go=fleet]")?.checkVisibility(); // the machines have a place of their own
  for (const b of document.querySelectorAll("[data-go]")) {
    const shown = area === "piece" ? "work" : area;
    const current = b.dataset.go === shown || (b.dataset.go === "home" && home.includes(shown) && !apart);
    setAttr(b, "aria-current", current ? "true" : null);
  }
  setAttr(document.getElementById("more-open"), "data-current", home.includes(area) || area === "piece" ? null : "true");
  document.getElementById("more")?.hidePopover?.();
  entered.get(area)?.();
  if (names.length) things(area, names);
}

function decode(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** Wires the buttons that lead somewhere, and the way back. */
export function wirePlaces() {
  for (const b of document.querySelectorAll("[data-go]")) {
    b.addEventListener("click", () => go(b.dataset.go === "home" ? "talk" : b.dataset.go));
  }
  addEventListener("popstate", () => { if (!location.hash.includes("login=")) go(location.hash.slice(1), { remember: false }); });
}
