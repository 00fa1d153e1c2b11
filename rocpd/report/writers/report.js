"use strict";
(() => {
  const all = (what, where = document) => [...where.querySelectorAll(what)];
  const make = (tag, text, where, act) => {
    const made = document.createElement(tag);
    made.textContent = text;
    if (tag === "button") made.type = "button";
    if (act) made.addEventListener("click", act);
    where.append(made);
    return made;
  };
  const tools = (before) => {
    const made = document.createElement("div");
    made.className = "tools";
    before.before(made);
    return made;
  };

  const root = document.documentElement;
  const chosen = new URLSearchParams(location.hash.slice(1)).get("theme"); // which pages of `rocpd view` hand on
  if (["light", "dark"].includes(chosen)) root.dataset.theme = chosen;
  const isDark = () => (root.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  const theme = make("button", "", tools(document.querySelector("h1")), () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    name();
  });
  const name = () => { theme.textContent = isDark() ? "Light colours" : "Dark colours"; };
  name();

  const value = (row, at) => {
    const cell = row.cells[at], text = cell.dataset.v ?? cell.textContent, number = Number(text);
    return cell.classList.contains("n") && text && !Number.isNaN(number) ? number : text;
  };
  const compare = (a, b) =>
    typeof a === "number" && typeof b === "number" ? a - b
      : typeof a === "number" ? -1 : typeof b === "number" ? 1
      : a.localeCompare(b, undefined, { numeric: true });
  const sort = (table, head) => {
    const down = head.getAttribute("aria-sort") ? head.getAttribute("aria-sort") === "ascending" : head.classList.contains("n");
    all("th", table).forEach((other) => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const rows = [...table.tBodies[0].rows];
    rows.sort((a, b) => compare(value(a, head.cellIndex), value(b, head.cellIndex)) * (down ? -1 : 1));
    table.tBodies[0].append(...rows);
  };
  const copied = (table) => [...table.rows].filter((row) => !row.hidden)
    .map((row) => [...row.cells].map((cell) => (cell.dataset.v ?? cell.textContent).replace(/[\t\n]/g, " ")).join("\t")).join("\n");
  const addTools = (where) => all("table", where).forEach((table) => {
    const heads = all("th", table).map((head) => head.textContent);
    for (const row of table.tBodies[0].rows) [...row.cells].forEach((cell, at) => { cell.dataset.h = heads[at]; });
    table.classList.add("stacked"); // on a telephone: a block a row, and no column is cut
    all("th", table).forEach((head) => {
      const text = head.textContent;
      head.textContent = "";
      const button = make("span", text, head, () => sort(table, head)); // Chromium prints no <button> in repeated heads
      button.role = "button";
      button.tabIndex = 0;
      button.addEventListener("keydown", (event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        sort(table, head);
      });
    });
    const box = table.parentElement, doc = box.previousElementSibling;
    const isSaid = !!doc && doc.matches("p.dim");
    const bar = tools(isSaid ? doc : box);
    bar.classList.toggle("beside", isSaid);
    if (table.tBodies[0].rows.length > 8) {
      const filter = make("input", "", bar);
      filter.type = "search";
      filter.placeholder = "filter rows";
      filter.setAttribute("aria-label", "filter rows of " + table.getAttribute("aria-label"));
      filter.addEventListener("input", () => {
        const word = filter.value.toLowerCase();
        [...table.tBodies[0].rows].forEach((row) => {
          row.hidden = !(row.textContent + " " + (row.cells[0].title || "")).toLowerCase().includes(word);
        });
      });
    }
    const copy = make("button", "copy", bar, async () => {
      try {
        await navigator.clipboard.writeText(copied(table));
        copy.textContent = "copied";
      } catch {
        getSelection().selectAllChildren(table);
        copy.textContent = "selected: press Ctrl-C";
      }
    });
    copy.setAttribute("aria-label", "copy " + table.getAttribute("aria-label"));
  });
  all("#report").forEach((report) => addTools(report));
  document.addEventListener("rocpd-report", (event) => addTools(event.target));  // `rocpd view` put it there

  const time = (ns) => {
    const [unit, size] = [["s", 1e9], ["ms", 1e6], ["us", 1e3], ["ns", 1]].find(([, size]) => Math.abs(ns) >= size) || ["ns", 1];
    return Number((ns / size).toPrecision(5)) + " " + unit;
  };
  const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  all("[data-zoom] > svg").forEach((outer) => {
    const figure = outer.parentElement;
    const data = JSON.parse(document.getElementById(figure.dataset.zoom).textContent);
    const inner = outer.querySelector("svg"), high_ = inner.viewBox.baseVal.height;
    const ticks = all("text[data-tick]", outer);
    const spans = all("[data-span]", outer).map((shape) => [shape, shape.dataset.span.split(" ").map(Number)]);
    const number = data.shares[0][0].length;
    let [from, to] = [0, number];
    const at = (slice) => data.start + slice * data.slice;
    const said = figure.querySelector("output") || make("output", "", figure);
    said.className = "said";
    figure.querySelector("details").before(said);
    outer.tabIndex = 0;
    const help = "Drag, or + and -, to look closer; arrows move; 0 shows all.";
    said.textContent = help;
    const [left, top, wide, high] = ["x", "y", "width", "height"].map((side) => Number(inner.getAttribute(side)));
    const show = (low, most) => {
      const width = Math.min(number, Math.max(4, most - low));
      from = Math.max(0, Math.min(low, number - width));
      to = from + width;
      inner.setAttribute("viewBox", `${from} 0 ${width} ${high_}`);
      for (const [shape, [first, last]] of spans) {
        const [x, until] = [first, last].map((slice) => left + Math.min(1, Math.max(0, (slice - from) / width)) * wide);
        shape.style.display = last < from || first > to ? "none" : "";
        if (shape.tagName === "rect") { shape.setAttribute("x", x); shape.setAttribute("width", Math.max(2, until - x)); }
        else shape.setAttribute("x", shape.getAttribute("text-anchor") ? (x + until) / 2 : x + 3);
      }
      ticks.forEach((tick) => { tick.textContent = time(at(from + (Number(tick.getAttribute("x")) - left) / wide * width)); });
      said.textContent = width < number ? `${time(at(from))} to ${time(at(to))}; 0 shows all` : help;
      const detail = width < number ? { start: at(from), end: at(to) } : null;
      figure.dispatchEvent(new CustomEvent("rocpd-window", { detail, bubbles: true }));
    };
    const place = (event) => {
      const whole = outer.getBoundingClientRect();
      const scale = outer.viewBox.baseVal.width / whole.width;
      const within = (share) => Math.min(1, Math.max(0, share));
      const x = within(((event.clientX - whole.left) * scale - left) / wide);
      return [from + x * (to - from), within(((event.clientY - whole.top) * scale - top) / high) * data.rows.length];
    };
    let start = null;
    outer.addEventListener("pointerdown", (event) => {
      [start] = place(event);
      outer.setPointerCapture(event.pointerId);
    });
    outer.addEventListener("pointerup", (event) => {
      const [end] = place(event);
      if (start !== null && Math.abs(end - start) > (to - from) / 100) show(Math.min(start, end), Math.max(start, end));
      start = null;
    });
    outer.addEventListener("pointermove", (event) => {
      const [slice, row] = place(event).map(Math.floor);
      if (start !== null || slice >= number || row >= data.rows.length) return;
      const percents = data.shares[row].map((text) => Math.round(digits.indexOf(text[slice]) * 100 / 63));
      const busy = Math.min(100, percents.reduce((sum, percent) => sum + percent));
      const parts = data.work.map((name, part) => `${name} ${percents[part]} %`).join(", ");
      said.textContent = `${data.rows[row]} at ${time(at(slice))}: busy ${busy} %: ${parts}`;
    });
    const keys = { "+": [.25, -.25], "=": [.25, -.25], "-": [-.5, .5], ArrowLeft: [-.2, -.2], ArrowRight: [.2, .2] };
    outer.addEventListener("keydown", (event) => {
      const width = to - from;
      if (event.key === "0" || event.key === "Escape") show(0, number);
      else if (keys[event.key]) show(from + keys[event.key][0] * width, to + keys[event.key][1] * width);
      else return;
      event.preventDefault();
    });
  });
})();
