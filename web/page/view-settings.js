// The settings of this browser and of this person: the voice, sounds, keys, logins, and what was decided.

import * as api from "./api.js";
import { loadSettings, meter, openMicrophone } from "./audio.js";
import { byId, h, setText, show } from "./dom.js";
import { onEnter } from "./places.js";
import { qrCode } from "./qr.js";
import { keysOf } from "./shortcuts.js";
import { get, toastProblem } from "./store.js";
import { appsPart } from "./view-apps.js";
import { ago, decidedWords } from "./words.js";

const levels = [
  ["quiet", "Quiet", "questions and results"],
  ["milestones", "Milestones", "also the start, and a sign of life now and then"],
  ["chatty", "Chatty", "also what the agents say on the way"],
];
const voices = ["", "alloy", "ash", "ballad", "cedar", "coral", "echo", "marin", "sage", "shimmer", "verse"];
const languages = [["", "Any"], ["en", "English"], ["de", "Deutsch"], ["es", "Español"], ["fr", "Français"], ["it", "Italiano"], ["nl", "Nederlands"], ["pl", "Polski"], ["pt", "Português"], ["sv", "Svenska"], ["tr", "Türkçe"], ["uk", "Українська"], ["ru", "Русский"], ["ar", "العربية"], ["hi", "हिन्दी"], ["ja", "日本語"], ["ko", "한국어"], ["zh", "中文"]];
const testFor = 6000;

/** Wires the settings. `acts`: settings (object), changed(name), level(level), leaving() before a logout, signedOut() after it. */
export function settingsView(acts, extra = []) {
  const { settings, changed } = acts;
  const level = choice("level", "How much you hear of work", levels, (value) => acts.level(value));
  const apps = appsPart();
  const parts = [
    section("Voice", level.el,
      field("Voice", select("voice", voices.map((v) => [v, v ? v[0].toUpperCase() + v.slice(1) : "Default"]))),
      field("Speed", select("speed", [["0.8", "Slower"], ["1", "Normal"], ["1.2", "Faster"], ["1.4", "Fastest"]])),
      field("The language you speak with the voice", select("language", languages)),
      check("interrupt", "Stop talking when I talk"),
      h("p", { class: "quiet-text", text: "A new voice, speed or language takes effect with the next call. The simulated voice has one of each." })),
    section("Microphone and sounds",
      h("div", { class: "line-of" }, h("button", { class: "button", type: "button", text: "Sound settings", popovertarget: "sound-menu" }), microphoneTest()),
      check("sounds", "Sounds when something asks, ends or fails")),
    section("Keyboard shortcuts", check("keys", "They work outside text boxes"), keySheet()),
    ...extra,
    section("Settings of this Switchboard", again()),
    section("Decisions", decisions()),
    // The lists of logins and programs come last, because they come later, and at one moment: they would push away what
    // somebody is about to press.
    section("Logins", logins(acts, apps)),
    apps.el,
  ];
  byId("settings").append(
    h("div", { class: "area-head" }, h("h2", { id: "settings-title", class: "area-title", tabindex: "-1", text: "Settings" })),
    h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "All settings" }, h("div", { class: "sections" }, ...parts)));

  function select(name, options) {
    const el = h("select", { class: "select", on: { change: () => { settings[name] = el.value; changed(name); } } }, ...options.map(([value, text]) => h("option", { value, text })));
    el.value = settings[name];
    return el;
  }
  function check(name, text) {
    const box = h("input", { type: "checkbox", on: { change: () => { settings[name] = box.checked; changed(name); } } });
    box.checked = settings[name];
    return h("label", { class: "check" }, box, text);
  }
  return (state) => {
    level.set(state.level);
  };
}

const section = (title, ...children) => h("section", { class: "panel" }, h("h3", { class: "panel-title", text: title }), ...children);
const field = (label, control) => h("label", { class: "field" }, label, control);

function choice(name, legend, options, chosen) {
  const radios = options.map(([value]) => h("input", { type: "radio", name, value, on: { change: () => chosen(value) } }));
  const el = h("fieldset", { class: "choice" }, h("legend", { text: legend }),
    ...options.map(([, text, what], i) => h("label", {}, radios[i], text, h("span", { class: "quiet-text", text: what }))));
  return { el, set: (value) => { for (const r of radios) r.checked = r.value === value; } };
}

// Shows how loud the microphone is, for a moment.
function microphoneTest() {
  const bars = h("span", { class: "meter", "aria-hidden": "true", hidden: true }, ...Array.from({ length: 5 }, () => h("i", {})));
  const words = h("span", { class: "quiet-text", role: "status" });
  const button = h("button", { class: "button", type: "button", text: "Test the microphone" });
  button.addEventListener("click", async () => {
    setText(words, "");
    try {
      const stream = await openMicrophone(loadSettings().input);
      show(bars, true);
      setText(words, "Say something and watch the bars move.");
      const end = meter(stream, [...bars.children]);
      await new Promise((resolve) => setTimeout(resolve, testFor));
      end();
      stream.getTracks().forEach((t) => t.stop());
      setText(words, "");
    } catch (error) {
      setText(words, `No microphone: ${error.message}`);
    }
    show(bars, false);
  });
  return h("span", { class: "line-of" }, button, bars, words);
}

const keySheet = () => h("dl", { class: "keys" }, ...keysOf().flatMap(([key, what]) => [h("dt", {}, h("kbd", { text: key })), h("dd", { text: what })]));

// Has the configuration file read again, and shows what came of it.
function again() {
  const button = h("button", { class: "button", type: "button", text: "Read the settings again" });
  const words = h("div", { class: "quiet-text", role: "status" });
  button.addEventListener("click", async () => {
    button.disabled = true;
    let lines;
    try {
      const { did, restart = [] } = await api.reloadSettings();
      lines = [...did, ...restart.map((name) => `needs a restart: ${name}`)];
      if (!lines.length) lines = ["Nothing has changed."];
    } catch (error) {
      lines = error.message.split("\n");
    }
    words.replaceChildren(...lines.map((text) => h("p", { text })));
    button.disabled = false;
  });
  return h("div", {}, h("p", { class: "quiet-text", text: "For the owner: machines, keys and limits of the configuration file take effect without a restart." }), button, words);
}

// Who is logged in, and the way in for another device.
function logins(acts, apps) {
  const list = h("ul", { id: "logins-list", class: "rows plain" });
  const add = h("button", { class: "button", type: "button", text: "Add a device" });
  const code = h("div", { class: "device-code", hidden: true });
  async function fill() {
    try {
      const [all, programs] = await Promise.all([api.logins(), api.apps().catch(() => ({ items: [] }))]);
      list.replaceChildren(...all.items.map(row));
      apps.update(programs.items);
    } catch (error) {
      toastProblem(error);
    }
  }
  async function end(login) {
    try {
      if (login.this) {
        await acts.leaving();
        await api.logout();
        acts.signedOut();
        return;
      }
      await api.endLogin(login.id);
      await fill();
    } catch (error) {
      toastProblem(error);
    }
  }
  add.addEventListener("click", async () => {
    try {
      const made = await api.deviceCode();
      const link = new URL(`/#login=${made.code}`, made.at ?? location.origin);
      const reach = !/^(localhost|127\.|\[::1\])/.test(link.hostname); // by another device
      code.replaceChildren(
        reach ? qrCode(link.href, "The link as a QR code") : h("p", { class: "quiet-text", text: "This address leads to this machine alone. For a phone, set public_url; Help tells how." }),
        h("p", { text: `${reach ? "Point the phone's camera at it, or open" : "Open"} this link on the other device, or type the code there. It works once and expires in 10 minutes.` }),
        h("p", {}, h("code", { class: "mono", text: link.href })), h("p", { class: "code-big mono", text: made.code.match(/.{1,4}/g).join(" ") }));
      show(code, true);
    } catch (error) {
      toastProblem(error);
    }
  });
  onEnter("settings", () => {
    show(code, false);
    fill();
  });
  function row(login) {
    const name = browser(login.device);
    return h("li", { class: "login-row" },
      h("span", {}, h("strong", { text: login.this ? `${name}, this one` : name }), h("br", {}),
        h("span", { class: "quiet-text", text: `${login.host} · active ${ago(Date.parse(login.used), Date.now())}` })),
      h("button", { class: "button small danger-quiet", type: "button", text: "Log out", "aria-label": login.this ? "Log out here" : `Log out ${name} at ${login.host}`, on: { click: () => end(login) } }));
  }
  return h("div", { class: "stack" }, h("div", { class: "line-of" }, add), code, list);
}

// What a browser says of itself, in two words.
function browser(agent = "") {
  const kind = [["Edg/", "Edge"], ["Firefox/", "Firefox"], ["Chrom", "Chrome"], ["Safari/", "Safari"]].find(([mark]) => agent.includes(mark))?.[1] ?? "A browser";
  const on = [["Android", "Android"], ["iPhone", "iPhone"], ["iPad", "iPad"], ["Mac OS", "Mac"], ["Windows", "Windows"], ["Linux", "Linux"]].find(([mark]) => agent.includes(mark))?.[1];
  return on ? `${kind} on ${on}` : kind;
}

// The audit log, as far as it is about this person.
function decisions() {
  const list = h("ul", { class: "rows plain" });
  const none = h("p", { class: "quiet-text", text: "No decisions yet." });
  const open = h("button", { class: "button", type: "button", text: "Show decisions", "aria-expanded": "false" });
  open.addEventListener("click", async () => {
    try {
      const { items } = await api.decisions();
      list.replaceChildren(...items.map((d) => h("li", { class: "decision" }, h("span", { text: decidedWords(d, titleOf(d)) }),
        h("time", { class: "quiet-text", datetime: d.at, text: new Date(d.at).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short", hourCycle: "h23" }) }))));
      show(none, !items.length);
      show(list, items.length > 0);
      open.setAttribute("aria-expanded", "true");
      setText(open, "Read again");
    } catch (error) {
      toastProblem(error);
    }
  });
  show(none, false);
  return h("div", { class: "stack" }, h("p", { class: "quiet-text", text: "Every answer to an agent is written down before it goes out. The command “switchboard audit” checks that nothing was changed since." }), open, list, none);
}

const titleOf = (d) => Object.values(get().work.records).find((r) => r.server === d.server && r.thread_id === d.thread_id)?.title;
