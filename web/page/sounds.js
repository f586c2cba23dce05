// Short sounds of the page itself: something asks, something failed, something is done. Two tones each, made here.

const tones = { ask: [660, 880], bad: [440, 330], good: [523, 659] };
let context = null;

/** Plays a sound; before the first press on the page browsers keep it silent. */
export function chime(kind) {
  if (!window.AudioContext) return;
  context ??= new AudioContext();
  if (context.state === "suspended") {
    context.resume().catch(() => {});
    if (!navigator.userActivation?.hasBeenActive) return;
  }
  tones[kind].forEach((pitch, i) => {
    const at = context.currentTime + i * 0.16;
    const tone = context.createOscillator();
    const loud = context.createGain();
    tone.frequency.value = pitch;
    loud.gain.setValueAtTime(0, at);
    loud.gain.linearRampToValueAtTime(0.12, at + 0.02);
    loud.gain.exponentialRampToValueAtTime(0.001, at + 0.3);
    tone.connect(loud).connect(context.destination);
    tone.start(at);
    tone.stop(at + 0.32);
  });
}
