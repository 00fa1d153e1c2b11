// Shared by the pages of `rocpd view`: requests to the server, elements, and the address. Texts go in as texts,
// never as markup.

export const $ = (id) => document.getElementById(id);

// --- the address -----------------------------------------------------------------------------------------------------

// All that an address holds: the part, the time line, the diff, the flame graph, and the colours of the page.
const KEYS = ["start", "end", "at", "open", "fold", "pick", "step", "against", "graph", "search", "frame", "theme"];
let known = new URLSearchParams(location.hash.slice(1));

// The value in the address when the page was opened, or the value noted last; null: there is none.
export const given = (key) => known.get(key);

// The address with other values; names without a value are removed.
export function addressWith(values) {
  const all = { ...Object.fromEntries(known), ...values };
  return new URLSearchParams(KEYS.map((key) => [key, all[key] ?? ""]).filter(([, value]) => value !== ""));
}

// Notes values in the address, beside those of other pages, which links to them carry on.
export function note(values) {
  known = addressWith(values);
  history.replaceState(null, "", known.size ? `#${known}` : location.pathname);
  for (const link of document.querySelectorAll("nav a:not([href^='#'])")) link.hash = known;
}

// A link within the page leads there and leaves the address as it is; an address that somebody wrote is opened.
window.addEventListener("hashchange", () => (location.hash.includes("=") ? location.reload() : note({})));
new MutationObserver(() => note({ theme: document.documentElement.dataset.theme })).observe(document.documentElement, { attributeFilter: ["data-theme"] });

export async function ask(path, body) {
  const options = body ? { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) } : {};
  let response;
  try {
    response = await fetch(path, options);
  } catch {
    throw new Error("the server has ended: start rocpd view again");
  }
  if (!response.ok) {
    const { error, hint } = await response.json();
    throw new Error(hint ? `${error} (${hint})` : error);
  }
  return response;
}

export function say(element, text, failed = false) {
  element.textContent = text;
  element.classList.toggle("failed", failed);
}

export function ms(ns, digits = 3) {
  return (ns / 1e6).toFixed(digits).replace(/\.?0+$/, "");
}

export function query(part) {
  const sides = Object.entries(part).filter(([, ns]) => ns !== null && ns !== undefined);
  return sides.length ? `?${new URLSearchParams(sides)}` : "";
}

export function duration(ns) {
  const [unit, size] = ns < 1e3 ? ["ns", 1] : ns < 1e6 ? ["us", 1e3] : ns < 1e9 ? ["ms", 1e6] : ["s", 1e9];
  return `${Number((ns / size).toPrecision(4))} ${unit}`;
}

// Black or white, whichever is more readable on a colour.
export function inkOn(hex) {
  const [red, green, blue] = [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
  return red * 0.3 + green * 0.59 + blue * 0.11 > 120 ? "#000" : "#fff";
}

export function element(tag, text, name) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (name) made.className = name;
  return made;
}

export function button(text, act) {
  const made = element("button", text);
  made.type = "button";
  made.addEventListener("click", act);
  return made;
}

export function fillStates(id, names, colours) {
  fillLegend(id, [...names.map((name) => [name, colours[name]]), ["idle", "var(--soft)"]]);
}

export function fillLegend(id, entries) {
  $(id).replaceChildren(...entries.map(([name, colour]) => {
    const entry = element("span", name), box = element("i");
    box.style.background = colour;
    entry.prepend(box);
    return entry;
  }));
}
