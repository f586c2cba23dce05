// Presses of a pointer count only where the pressed thing stood still, so that nothing that moves under a finger is
// pressed in the place of something else.

const still = 400; // milliseconds
const often = 100; // milliseconds

/**
 * Watches where `el` stands and reports whether a press of it counts: it was drawn, and for a pointer was seen and has
 * not moved, for 400 ms. The class "settling" is on `el` as long as a pointer's press does not count. Without an event,
 * or with that of a keyboard, only the drawing counts.
 */
export function steady(el) {
  const drawn = performance.now();
  let place = "";
  let moved = drawn;
  let shown = false;
  const look = () => {
    const { left, top } = el.getBoundingClientRect();
    const now = performance.now();
    if (place !== `${left} ${top}` || !el.checkVisibility()) [place, moved] = [`${left} ${top}`, now];
    el.classList.toggle("settling", now - moved < still);
  };
  const timer = setInterval(() => {
    if (shown && !el.isConnected) clearInterval(timer);
    shown ||= el.isConnected;
    look();
  }, often);
  look();
  return (event) => {
    look();
    return performance.now() - (event?.detail > 0 ? moved : drawn) >= still;
  };
}
