// Errors of the voice model, in words.

/** The code of the end of the voice model's session: the call goes on in another one, or its end tells why not. */
export const expired = "session_expired";

// Said by us at a moment when there was nothing left to stop.
const harmless = new Set(["response_cancel_not_active", "input_audio_buffer_commit_empty", expired]);

/** Shows an error event through toast(text, options), unless it means nothing to a person. */
export function voiceErrors(error, toast) {
  if (!error || harmless.has(error.code)) return;
  toast(error.message || "The voice model reported a problem.", { next: error.next ?? "If it comes again, hang up and call again." });
}
