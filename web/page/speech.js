// The browser's own voice, which reads what the simulated voice says. A browser without voices stays
// silent; nothing waits for it.

const engine = window.speechSynthesis;

/** Tells whether this browser can speak at all. Voices may arrive later. */
export const hasVoices = () => (engine?.getVoices() ?? []).some((v) => v.lang.startsWith("en"));

export function onVoices(f) {
  engine?.addEventListener?.("voiceschanged", f);
}

/** Makes a reader. onTalking(true | false) says when sound comes out of the speakers. */
export function reader(onTalking) {
  let talking = 0;
  let guard;
  const change = (n) => {
    talking = Math.max(0, n);
    onTalking(talking > 0);
  };
  return {
    say(text) {
      if (!text || !hasVoices()) return;
      const words = new SpeechSynthesisUtterance(text);
      words.voice = engine.getVoices().find((v) => v.lang.startsWith("en") && v.localService) ?? null;
      words.lang = words.voice?.lang ?? "en";
      let over = false;
      const end = () => {
        if (!over) change(talking - 1);
        over = true;
      };
      words.onend = end;
      words.onerror = end;
      change(talking + 1);
      engine.speak(words);
      // Some browsers forget to say that a long text has ended.
      clearTimeout(guard);
      guard = setTimeout(() => change(0), 4000 + text.length * 120);
    },
    stop() {
      engine?.cancel();
      change(0);
    },
  };
}
