// The first words of a call: the voice greets in one sentence. Where there is news to tell, that is the greeting. Pure.

import { ended, openQuestions } from "./state-work.js";

/** What asks the voice model to greet, or null: a question or an outcome that nobody has heard is told by itself. */
export function greeting(work, language) {
  const news = openQuestions(work).length > 0 || Object.values(work.records).some((r) => ended(r) && r.state !== "delivered");
  if (news) return null;
  const tongue = language ? ` in ${new Intl.DisplayNames("en", { type: "language" }).of(language)}` : "";
  return { type: "response.create", response: { instructions: `Greet the caller${tongue} in one short sentence and ask what they want done. Call no tool.`, tool_choice: "none" } };
}
