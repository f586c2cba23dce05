// What needs the person: questions, and they alone are counted; and what went wrong and nobody has looked at. Pure.

import { away, ended, newestFirst, openQuestions } from "./state-work.js";

const recent = 24 * 3600_000; // an older failure is history

/** The keys under which an item is dismissed: one for each piece of work that failed for its cause. */
export const keysOf = (item) => (item.kind === "failure" ? item.records.map((r) => `failure:${r.id}`) : [`machine:${item.id}`]);

// What was named wrongly is answered at once, where it was said: nobody has to come back to it.
const answeredAtOnce = new Set(["unknown_server", "ambiguous_server", "unknown_session", "ambiguous_session", "session_mismatch", "session_elsewhere", "malformed"]);

const firstLine = (text = "") => text.trim().split("\n", 1)[0];

/** Why a piece of work failed, in a clause or a sentence that others of the same cause share. */
export function causeOf({ error, outcome, spoken }) {
  if (error?.why) return error.why;
  if (error?.code === "refused" && error.detail) return firstLine(error.detail);
  return error?.message || (outcome === "unknown" ? "It is not known whether this ran." : firstLine(spoken)) || "It failed.";
}

// Numbers differ from one failure to the next and are no cause.
const alike = (r) => [r.server, r.error?.code ?? r.outcome, causeOf(r), firstLine(r.error?.detail)].join("\n").replace(/\d+/g, "#");

/**
 * What waits for the person: { questions, troubles, count }. Only questions count. Troubles are the failures that nobody has looked at, one
 * item a cause, { kind: "failure", id, server, cause, records }, the newest first, then machines that are lost, { kind: "machine", id, server,
 * problem, next }. A failure goes when newer work in its session is done or under way, and one that is only because its machine is lost
 * is that machine's. A simulated machine that is down alarms nobody before work was given to it.
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
    else if (!answeredAtOnce.has(r.error?.code) && !places.some((p) => newer.has(p)) && now - Date.parse(r.ended_at ?? r.created_at) < recent &&
      !(lost.has(r.server) && r.error?.code === "unreachable") && !dismissed[`failure:${r.id}`]) failures.push(r);
  }
  const causes = [...Map.groupBy(failures, alike)].map(([id, records]) => ({ kind: "failure", id, server: records[0].server, cause: causeOf(records[0]), records }));
  return { questions, troubles: [...causes, ...machines.filter((m) => !dismissed[`machine:${m.id}`])], count: questions.length };
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
