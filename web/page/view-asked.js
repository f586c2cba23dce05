// Where the questions stand: with the work, on the page of theirs, or over the conversation where that is all that is seen.

import { byId, h, setAttr } from "./dom.js";

/** Wires the place of the questions, and returns its view. */
export function askedView() {
  const cards = byId("questions");
  const home = cards.parentElement;
  const slot = h("div", { class: "attention-cards" });
  byId("attention").querySelector(".attention-box").before(slot);
  let had = false; // the keyboard was in a question here
  const place = () => {
    const { area } = document.body.dataset;
    const here = area === "talk" && !byId("work").checkVisibility();
    const piece = area === "piece" ? byId("piece-asks") : null;
    const to = here ? slot : piece ?? home;
    if (cards.parentElement !== to) to.append(cards);
    for (const card of cards.children) card.classList.toggle("elsewhere", Boolean(piece) && card.dataset.handoff !== piece.dataset.of);
    for (const title of cards.querySelectorAll("h3")) setAttr(title, "aria-level", here ? 2 : null); // there it stands above the areas
    if (had && here && document.activeElement === document.body) byId("talk-title").focus(); // what it was in is gone
    had = here && slot.contains(document.activeElement);
  };
  addEventListener("resize", place);
  new MutationObserver(place).observe(document.body, { subtree: true, attributeFilter: ["data-area", "data-of"] });
  return place;
}
