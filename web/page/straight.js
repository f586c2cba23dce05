// Words that go straight to a machine or session that was chosen beside the text box, past the voice.

/** The machine or session of a choice: { server, thread_id? }. "bigpc" is the session in use there, "new bigpc" a new one, "tree bigpc/api" a new one in a worktree, "in bigpc ID" the one with that id. */
export function placeOf(to) {
  const [how, server, id] = to.split(" ");
  if (how === "tree" && server) return { server, thread_id: "new", worktree: true };
  return how === "new" && server ? { server, thread_id: "new" } : how === "in" && id ? { server, thread_id: id } : { server: to };
}
