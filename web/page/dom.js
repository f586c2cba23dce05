// Small helpers over the DOM. Text is always text: nothing here takes markup.

/** Makes an element. `on` holds listeners, `text` its text; other properties become attributes. */
export function h(tag, props = {}, ...children) {
  const el = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "text") el.textContent = value;
    else if (name === "on") for (const [type, f] of Object.entries(value)) el.addEventListener(type, f);
    else if (name === "data") Object.assign(el.dataset, value);
    else el.setAttribute(name, value === true ? "" : value);
  }
  el.append(...children.filter((c) => c !== undefined && c !== null));
  return el;
}

/** Makes a listener for clicks that ignores the second click of a double-click: it would do the thing twice. */
export const once = (act) => (event) => { if (event.detail < 2) act(); };

/** Empties a field whose words were taken, unless others were typed meanwhile. */
export function emptied(field, taken) {
  if (field.value.trim() !== taken) return;
  field.value = "";
  fitHeight(field);
}

export const byId = (id) => document.getElementById(id);

/** Writes a text only when it changed: live regions and selections stay quiet otherwise. */
export function setText(el, text) {
  const want = text ?? "";
  if (el.textContent !== want) el.textContent = want;
}

export function setAttr(el, name, value) {
  if (value === undefined || value === null || value === false) el.removeAttribute(name);
  else if (el.getAttribute(name) !== String(value)) el.setAttribute(name, value === true ? "" : value);
}

/** Shows or hides an element. */
export function show(el, visible) {
  if (el.hidden === visible) el.hidden = !visible;
}

/**
 * Runs `change`, after which the keyboard has its place: the same control where that is still there, else the nearest
 * box around it that can have it.
 */
export function keepFocus(change) {
  const had = document.activeElement;
  const around = [];
  for (let e = had; e && e !== document.body; e = e.parentElement) around.push(e);
  change();
  const has = document.activeElement;
  if (!around.length || (has !== had && has !== document.body) || (has === had && had.checkVisibility())) return;
  around.find((e) => e.isConnected && e.checkVisibility() && e.matches("[tabindex], button, a, input, select, textarea, summary"))?.focus({ preventScroll: true });
}

/**
 * Keeps the children of `parent` in step with `items`: one child a key, made once, moved only when its
 * place changed, so that focus, scrolling and opened details survive. `make(item)` returns
 * { el, update(item) }.
 */
export function keyed(parent, items, keyOf, make) {
  keepFocus(() => arrange(parent, items, keyOf, make));
}

function arrange(parent, items, keyOf, make) {
  const old = parent.keyedChildren ?? new Map();
  const now = new Map();
  for (const item of items) {
    const key = keyOf(item);
    const child = old.get(key) ?? make(item);
    child.update?.(item);
    now.set(key, child);
  }
  for (const [key, child] of old) if (!now.has(key)) child.el.remove();
  let at = parent.firstChild;
  for (const { el } of now.values()) {
    if (el === at) at = at.nextSibling;
    else parent.insertBefore(el, at);
  }
  parent.keyedChildren = now;
}

const scrolls = ({ target: el }) => setAttr(el, "tabindex", el.scrollHeight > el.clientHeight || el.scrollWidth > el.clientWidth ? "0" : null);
const sizes = new ResizeObserver((entries) => entries.forEach(scrolls));

/** Lets the keyboard reach a box, to scroll it, whenever it has more than it shows. */
export function reachable(box) {
  sizes.observe(box);
  return box;
}

const firstSeen = new WeakMap();
const seeing = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) {
    if (!isIntersecting) continue;
    seeing.unobserve(target);
    firstSeen.get(target)();
  }
});

/** Calls f once, when an element is seen for the first time. */
export function whenSeen(el, f) {
  firstSeen.set(el, f);
  seeing.observe(el);
}

/** Runs `change` and stays at the end of a scrolled box if it was there. */
export function keepAtEnd(box, change) {
  const atEnd = box.scrollHeight - box.scrollTop - box.clientHeight < 48;
  change();
  if (atEnd) box.scrollTop = box.scrollHeight;
}

/** Makes a text box as high as its text, up to `most` pixels; beyond them it scrolls. */
export function fitHeight(field, most = 160) {
  field.style.height = "auto";
  const want = field.scrollHeight + field.offsetHeight - field.clientHeight; // with its border
  field.style.height = `${Math.min(want, most)}px`;
  field.style.overflowY = want > most ? "auto" : "hidden";
}

const shapes = {
  phone: "M6.6 3.5l2.6 4.6-2 1.9a13 13 0 0 0 6.8 6.8l1.9-2 4.6 2.6c-.2 2-1.6 3.2-3.4 3.1C9.6 20 4 14.4 3.5 6.9 3.4 5.1 4.6 3.7 6.6 3.5z",
  send: "M4 12l16-8-5 17-3.5-6.5zM12 14.5L20 4",
  sound: "M4 10v4h3.5L12 18V6l-4.5 4zM15.5 9a4 4 0 0 1 0 6M18 6.5a7.5 7.5 0 0 1 0 11",
  close: "M6 6l12 12M18 6L6 18",
  mic: "M12 3.5a3 3 0 0 0-3 3v5a3 3 0 0 0 6 0v-5a3 3 0 0 0-3-3zM5.5 11a6.5 6.5 0 0 0 13 0M12 17.5V21",
  micOff: "M12 3.5a3 3 0 0 0-3 3v5a3 3 0 0 0 6 0v-5a3 3 0 0 0-3-3zM5.5 11a6.5 6.5 0 0 0 13 0M12 17.5V21M4 4l16 16",
  stop: "M5.5 5.5h13v13h-13z",
  chevron: "M9 6l6 6-6 6",
  back: "M15 6l-6 6 6 6",
};

/** Makes a decorative icon. */
export function icon(name) {
  const ns = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(ns, "svg");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("class", "icon");
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS(ns, "path");
  path.setAttribute("d", shapes[name]);
  svg.append(path);
  return svg;
}

/** Gives a button an icon and a label that can change. */
export function dress(button, name, label) {
  if (button.dataset.dress === name + label) return;
  button.dataset.dress = name + label;
  button.replaceChildren(icon(name), ...(label ? [h("span", { text: label })] : []));
}
