// What needs the person, as one list with one number: questions, failures that nobody has looked at, machines
// that are lost. Pure.

import { away, ended, newestFirst, openQuestions } from "./state-work.js";

const recent = 24 * 3600_000; // an older failure is history

/** The key under which an item is dismissed. */
export const keyOf = (item) => `${item.kind}:${item.id}`;

/**
 * The list: { questions, alerts: [{ kind: failure | machine, id, server, record? }], count }. A failure goes when
 * newer work in its session is done or under way, and one that is only because its machine is lost is that
 * machine's. A simulated machine that is down alarms nobody before work was given to it.
 */
export function needs({ work, servers, dismissed }, now) {
  const questions = openQuestions(work);
  const tried = new Set(Object.values(work.records).map((r) => r.server));
  const lost = new Set(servers.filter((s) => s.health === "down" && (!s.simulated || tried.has(s.name))).map((s) => s.name));
  const machines = [...lost].map((name) => servers.find((s) => s.name === name))
    .map(({ name, problem, next }) => ({ kind: "machine", id: name, server: name, problem, next }));
  const newer = new Set(); // sessions and prompts of work that is newer and did not fail
  const failures = [];
  for (const r of newestFirst(work)) {
    const places = [r.thread_id && `${r.server} ${r.thread_id}`, `${r.server}: ${r.prompt}`].filter(Boolean);
    const failed = ended(r) && !away(work, r) && (r.outcome === "failed" || r.outcome === "unknown");
    if (!failed) places.forEach((p) => newer.add(p));
    else if (!places.some((p) => newer.has(p)) && now - Date.parse(r.ended_at ?? r.created_at) < recent &&
      !(lost.has(r.server) && r.error?.code === "unreachable")) failures.push({ kind: "failure", id: r.id, server: r.server, record: r });
  }
  const alerts = [...failures, ...machines].filter((item) => !dismissed[keyOf(item)]);
  return { questions, alerts, count: questions.length + alerts.length };
}

/**
 * The sessions that another program had open when work came for them last, as "machine id". Only then a machine tells:
 * by the fault, or by asking whether to go on in a copy.
 */
export function heldSessions(work) {
  const offered = new Set(openQuestions(work).filter((q) => q.kind === "copy" && q.reason).map((q) => q.handoff));
  const [seen, held] = [new Set(), new Set()];
  for (const r of newestFirst(work)) {
    const key = `${r.server} ${r.thread_id}`;
    if (!r.thread_id || seen.has(key)) continue;
    seen.add(key);
    if (offered.has(r.id) || r.error?.code === "session_in_use") held.add(key);
  }
  return held;
}

/** What stays dismissed: a machine that is back, and work that is gone, may need somebody again. */
export function stillDismissed(dismissed, { servers, work, loaded }) {
  if (!loaded) return dismissed;
  const gone = Object.keys(dismissed).filter((key) => {
    const [kind, id] = [key.slice(0, key.indexOf(":")), key.slice(key.indexOf(":") + 1)];
    return kind === "machine" ? servers.some((s) => s.name === id && s.health === "up") : Object.keys(work.records).length > 0 && !work.records[id];
  });
  return gone.length ? Object.fromEntries(Object.entries(dismissed).filter(([key]) => !gone.includes(key))) : dismissed;
}
