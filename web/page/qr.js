// A link as a QR code, for the camera of a phone.

import { correction, generate } from "./lean-qr.js";

const quiet = 4; // cells of light around it, which cameras need

/** Draws a text as an SVG image; `name` says what it is to who cannot see it. */
export function qrCode(text, name) {
  const code = generate(text, { minCorrectionLevel: correction.M });
  let path = "";
  for (let y = 0; y < code.size; y++) for (let x = 0; x < code.size; x++) if (code.get(x, y)) path += `M${x + quiet} ${y + quiet}h1v1h-1z`;
  const make = (tag, props) => {
    const el = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [key, value] of Object.entries(props)) el.setAttribute(key, value);
    return el;
  };
  const size = code.size + 2 * quiet;
  const svg = make("svg", { viewBox: `0 0 ${size} ${size}`, class: "qr", role: "img", "aria-label": name, "shape-rendering": "crispEdges" });
  svg.append(make("rect", { width: size, height: size, fill: "#fff" }), make("path", { d: path, fill: "#000" }));
  return svg;
}
