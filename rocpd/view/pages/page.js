// What the pages of `rocpd view` share: they ask the server, and make elements. Texts go in as texts, never as markup.

export const $ = (id) => document.getElementById(id);

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

// Black or white, whichever is read better on a colour.
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
