// Where the person is on the page: an area, its address, and the browser's way back.

import { setAttr } from "./dom.js";

const home = ["talk", "work", "fleet"]; // side by side where there is room
export const areas = [...home, "sessions", "history", "settings", "help"];
const entered = new Map(); // what an area does when it is entered

/** Runs f whenever an area is entered. */
export const onEnter = (area, f) => entered.set(area, f);

/** Shows an area. */
export function go(area, { remember = true } = {}) {
  if (!areas.includes(area)) area = "talk";
  if (remember && document.body.dataset.area !== area) history.pushState(null, "", area === "talk" ? location.pathname : `#${area}`);
  setAttr(document.body, "data-area", area);
  const apart = area === "fleet" && document.querySelector(".places [data-go=fleet]")?.checkVisibility(); // the machines have a place of their own
  for (const b of document.querySelectorAll("[data-go]")) {
    const current = b.dataset.go === area || (b.dataset.go === "home" && home.includes(area) && !apart);
    setAttr(b, "aria-current", current ? "true" : null);
  }
  setAttr(document.getElementById("more-open"), "data-current", home.includes(area) ? null : "true");
  document.getElementById("more")?.hidePopover?.();
  entered.get(area)?.();
}

/** Wires the buttons that lead somewhere, and the way back. */
export function wirePlaces() {
  for (const b of document.querySelectorAll("[data-go]")) {
    b.addEventListener("click", () => go(b.dataset.go === "home" ? "talk" : b.dataset.go));
  }
  addEventListener("popstate", () => { if (!location.hash.includes("login=")) go(location.hash.slice(1), { remember: false }); });
}
