// The sheet of a call: how long the call lasts, how it is connected, how fast it answers, what it costs.

import { byId, h, setText, show } from "./dom.js";
import { factWords } from "./state-facts.js";

/** Wires the sheet; level(value) sets how much is told of work. Returns the view, which is also run each second. */
export function factsView(level) {
  const sheet = byId("call-facts");
  const time = byId("call-time");
  const choose = byId("level");
  choose.addEventListener("change", () => level(choose.value));
  return (state) => {
    const rows = factWords(state, performance.now());
    const key = JSON.stringify(rows);
    show(time, rows.length > 0);
    if (rows.length) {
      setText(time, rows[0][1]);
      time.setAttribute("aria-label", `${rows[0][1]} in the call; show more about it`);
    }
    if (choose.value !== state.level) choose.value = state.level;
    if (sheet.dataset.key === key) return;
    sheet.dataset.key = key;
    sheet.replaceChildren(...rows.map(([what, value]) => h("div", {}, h("dt", { text: what }), h("dd", { text: value }))));
  };
}

/** What a connection says of itself: { rtt, lost }, or null. `stats` is an RTCStatsReport. */
export function connectionOf(stats) {
  let rtt = null;
  let [lost, received] = [0, 0];
  for (const s of stats.values()) {
    if (s.type === "candidate-pair" && s.nominated && s.currentRoundTripTime !== undefined) rtt = s.currentRoundTripTime * 1000;
    if (s.type === "inbound-rtp") [lost, received] = [lost + Math.max(0, s.packetsLost ?? 0), received + (s.packetsReceived ?? 0)];
  }
  return rtt === null ? null : { rtt, lost: lost + received ? lost / (lost + received) : 0 };
}
