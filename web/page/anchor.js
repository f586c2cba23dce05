// Keeps the rows of a list that scrolls where they are, while others come and go above them.

const candidates = 6; // rows in sight, of which the first that keeps its place is held

/**
 * Holds the rows of a box: before() is called before the views change the page, and after() when they have. At the top of the box, where
 * nobody points, what stands above `list` may push all of it down.
 */
export function anchored(box, list) {
  let held = [];
  let from = 0;
  const base = () => (from > 0 || pointed?.isConnected ? 0 : list.getBoundingClientRect().top);
  let pointed = null; // the row under the pointer
  box.addEventListener("pointermove", (e) => { pointed = e.target.closest(".card"); }, { passive: true });
  box.addEventListener("pointerleave", () => { pointed = null; });

  function inSight() {
    const { top, bottom } = box.getBoundingClientRect();
    const rows = [];
    for (const row of box.querySelectorAll(".card")) {
      const at = row.getBoundingClientRect();
      if (at.top >= bottom || rows.length === candidates) break;
      if (at.top >= top) rows.push(row); // one that is seen in part may change its size
    }
    return rows;
  }

  return {
    before() {
      held = [];
      if (!box.checkVisibility()) return;
      from = box.scrollTop;
      const rows = pointed?.isConnected ? [pointed, ...inSight()] : inSight();
      held = rows.map((row) => ({ row, parent: row.parentElement, at: row.getBoundingClientRect().top - base() }));
    },
    after() {
      if (box.scrollTop !== from) return; // somebody brought something into sight
      const kept = held.find(({ row, parent }) => row.isConnected && row.parentElement === parent); // what ended went to another list
      const by = kept ? Math.round(kept.row.getBoundingClientRect().top - base() - kept.at) : 0;
      if (by) box.scrollTop += by;
    },
    /** Lets the rows move once: what stands above them is to be seen. */
    free() { held = []; },
  };
}
