// The page of `rocpd view`: a time line to drag over, the report of the part that was taken, SQL, and a trace for Perfetto.
// Texts from files go into the page as texts, never as markup; only the report comes as markup, escaped by its writer.

const $ = (id) => document.getElementById(id);
const state = { job: null, origin: 0n, strip: null, whole: null, start: null, end: null, view: {}, stamp: null, asked: 0 };

async function ask(path, body) {
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

function say(element, text, failed = false) {
  element.textContent = text;
  element.classList.toggle("failed", failed);
}

function ms(ns, digits = 3) {
  return (ns / 1e6).toFixed(digits).replace(/\.?0+$/, "");
}

function query(part) {
  const sides = Object.entries(part).filter(([, ns]) => ns !== null && ns !== undefined);
  return sides.length ? `?${new URLSearchParams(sides)}` : "";
}

const taken = () => ({ start: state.start, end: state.end });

// --- the time line ---------------------------------------------------------------------------------------------------

function bytes(text) {
  return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
}

async function loadStrip() {
  let answer;
  try {
    ({ answer } = await (await ask(`overview${query(state.view)}`)).json());
  } catch (error) { // there is none: of separate runs, or without GPU work
    $("timeline").classList.add("none");
    $("timeline-help").textContent = error.message;
    return;
  }
  $("timeline").classList.remove("none");
  for (const name of ["busy", "compute", "communication"]) answer[name] = bytes(answer[name]);
  state.strip = answer;
  state.strip.end = answer.start + answer.slice * answer.slices;
  if (!query(state.view)) state.whole = { start: answer.start, end: state.strip.end };
  draw();
}

function draw() {
  const { strip } = state;
  if (!strip) return;
  const canvas = $("strip"), ratio = window.devicePixelRatio || 1, width = canvas.clientWidth;
  const row = Math.max(1, Math.min(18, Math.floor(640 / strip.ranks.length)));
  const height = row * strip.ranks.length;
  canvas.style.height = `${height}px`;
  canvas.width = width * ratio;
  canvas.height = height * ratio;
  const pen = canvas.getContext("2d"), palette = state.job.colours;
  pen.scale(ratio, ratio);
  pen.clearRect(0, 0, width, height);
  const tall = row > 3 ? row - 1 : row, edge = (slice) => Math.round((slice * width * ratio) / strip.slices) / ratio;
  for (let rank = 0; rank < strip.ranks.length; rank++) {
    for (let slice = 0; slice < strip.slices; slice++) {
      const at = rank * strip.slices + slice, left = edge(slice), wide = edge(slice + 1) - left;
      const compute = strip.compute[at], both = Math.min(100, compute + strip.communication[at]);
      let bottom = rank * row + tall;
      for (const [name, percent] of [["compute", compute], ["communication", both - compute], ["copies", Math.max(0, strip.busy[at] - both)]]) {
        const high = (tall * percent) / 100;
        pen.fillStyle = palette[name];
        pen.fillRect(left, bottom - high, wide, high);
        bottom -= high;
      }
    }
  }
  if (state.start !== null || state.drag) {
    const part = state.drag ?? { start: state.start, end: state.end ?? strip.end };
    const x = (ns) => ((ns - strip.start) / (strip.end - strip.start)) * width;
    pen.globalAlpha = 0.55;
    pen.fillStyle = getComputedStyle(document.body).backgroundColor;
    pen.fillRect(0, 0, x(part.start), height);
    pen.fillRect(x(part.end), 0, width - x(part.end), height);
    pen.globalAlpha = 1;
    pen.strokeStyle = getComputedStyle(document.body).color;
    pen.strokeRect(x(part.start) + 0.5, 0.5, Math.max(1, x(part.end) - x(part.start) - 1), height - 1);
  }
  const part = state.start === null ? "everything" : `${ms(state.start)} ms to ${ms(state.end)} ms`;
  canvas.setAttribute("aria-label", `${strip.ranks.length} ranks from ${ms(strip.start)} ms to ${ms(strip.end)} ms; taken: ${part}`);
}

function placeOf(event) {
  const box = $("strip").getBoundingClientRect(), { strip } = state;
  const share = Math.min(1, Math.max(0, (event.clientX - box.left) / box.width));
  const rank = Math.floor(((event.clientY - box.top) / box.height) * strip.ranks.length);
  return { ns: Math.round(strip.start + share * (strip.end - strip.start)), rank: strip.ranks[Math.min(strip.ranks.length - 1, Math.max(0, rank))] };
}

function startDrag(event) {
  if (!state.strip || event.button) return;
  const from = placeOf(event).ns, canvas = $("strip");
  canvas.setPointerCapture(event.pointerId);
  const move = (next) => {
    const to = placeOf(next).ns;
    state.drag = { start: Math.min(from, to), end: Math.max(from, to) };
    fillWindow(state.drag);
    draw();
  };
  const stop = () => {
    canvas.removeEventListener("pointermove", move);
    const part = state.drag;
    state.drag = null;
    if (part && part.end - part.start > state.strip.slice / 4) take(part);
    else draw();
  };
  canvas.addEventListener("pointermove", move);
  canvas.addEventListener("pointerup", stop, { once: true });
}

function hover(event) {
  if (!state.strip) return;
  const { ns, rank } = placeOf(event);
  $("hover").textContent = `rank ${rank.rank} · ${rank.host} · ${ms(ns)} ms`;
}

function byKeyboard(event) {
  const { strip } = state;
  if (!strip) return;
  const step = (strip.end - strip.start) / 50;
  const part = { start: state.start ?? strip.start, end: state.end ?? strip.start + 5 * step };
  const by = { ArrowLeft: -step, ArrowRight: step }[event.key];
  if (event.key === "Escape") take({ start: null, end: null });
  else if (event.key === "Enter") take(taken());
  else if (by) {
    const start = event.shiftKey ? part.start : Math.max(strip.start, Math.round(part.start + by));
    const end = Math.min(strip.end, Math.max(start + 1, Math.round(part.end + by)));
    Object.assign(state, { start, end });
    fillWindow(taken());
    draw();
  } else return;
  event.preventDefault();
}

function fillWindow({ start, end }) {
  $("from").value = start === null ? "" : ms(start, 6); // to the nanosecond: they are read again
  $("to").value = end === null ? "" : ms(end, 6);
}

function readWindow() {
  const number = (id) => ($(id).value.trim() === "" ? null : Math.round(Number($(id).value.trim()) * 1e6));
  return { start: number("from"), end: number("to") };
}

function take(part) {
  const { start, end } = part;
  if ([start, end].some((ns) => Number.isNaN(ns) || ns < 0) || (start !== null && end !== null && start >= end)) {
    say($("status"), "a part goes from an earlier to a later time, in ms", true);
    return;
  }
  const isNothing = start === null && end === null;
  state.start = isNothing ? null : start ?? state.whole?.start ?? 0;
  state.end = isNothing ? null : end ?? state.whole?.end ?? null;
  fillWindow(taken());
  const hash = query(taken()).slice(1);
  history.replaceState(null, "", hash ? `#${hash}` : location.pathname);
  draw();
  loadReport();
}

// --- the report ------------------------------------------------------------------------------------------------------

async function loadReport() {
  const number = ++state.asked, main = $("report");
  main.setAttribute("aria-busy", "true");
  try {
    const [{ answer, notes }, start] = await Promise.all([`report${query(taken())}`, "start"].map(async (path) => (await ask(path)).json()));
    state.origin = BigInt(start.answer);
    if (number !== state.asked) return; // another part was taken meanwhile
    const page = new DOMParser().parseFromString(answer, "text/html");
    main.replaceChildren(...page.body.childNodes);
    addPlaces(main);
    main.dispatchEvent(new CustomEvent("rocpd-report", { bubbles: true }));
    say($("status"), notes.join(" · "));
  } catch (error) {
    if (number === state.asked) say($("status"), error.message, true);
  } finally {
    if (number === state.asked) main.setAttribute("aria-busy", "false");
  }
}

// --- SQL -------------------------------------------------------------------------------------------------------------

function element(tag, text, name) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (name) made.className = name;
  return made;
}

function tableOf({ columns, rows, numeric }) {
  const table = element("table"), head = table.createTHead().insertRow(), body = table.createTBody();
  for (const name of columns) {
    const cell = element("th", name);
    cell.scope = "col";
    head.append(cell);
  }
  for (const values of rows) {
    const row = body.insertRow();
    values.forEach((value, index) => row.append(value === null ? element("td", "NULL", "null") : element("td", value, numeric[index] ? "number" : "")));
  }
  return table;
}

async function runStatement(event) {
  event?.preventDefault();
  say($("asked"), "running …");
  try {
    const { answer } = await (await ask("sql", { sql: $("statement").value, ...($("of-part").checked ? taken() : {}) })).json();
    $("rows").replaceChildren(tableOf(answer));
    const more = answer.more ? `the first ${answer.rows.length} rows; LIMIT and OFFSET show others` : `${answer.rows.length} ${answer.rows.length === 1 ? "row" : "rows"}`;
    say($("asked"), `${more}, ${answer.seconds.toFixed(2)} s`);
  } catch (error) {
    $("rows").replaceChildren();
    say($("asked"), error.message, true);
  }
}

async function loadSchema() {
  const relations = await (await ask("schema")).json(), list = $("relations");
  for (const { name, about, columns } of relations) {
    const details = element("details"), columnsOf = element("dl");
    details.dataset.name = `${name} ${columns.map((column) => column.name).join(" ")}`;
    details.append(element("summary", name), element("p", about), columnsOf);
    for (const column of columns) {
      columnsOf.append(element("dt", column.unit ? `${column.name} [${column.unit}]` : column.name), element("dd", column.about));
    }
    list.append(details);
  }
  $("search").addEventListener("input", () => {
    const wanted = $("search").value.toLowerCase();
    for (const details of list.children) details.hidden = !details.dataset.name.includes(wanted);
  });
}

// --- Perfetto --------------------------------------------------------------------------------------------------------

// Opens the trace of a part, and in it a place: a shorter part, and the rank whose tracks are shown first.
// A window that is opened after a wait is taken for a pop-up: it is opened at the click, and the trace follows.
async function openPerfetto(part, place) {
  const address = new URL(state.job.perfetto, location.href);
  if (place) {
    const shown = new URLSearchParams({ visStart: state.origin + BigInt(place.start), visEnd: state.origin + BigInt(place.end) });
    const args = [`^rank 0*${place.rank}( |$)`]; // as traces name ranks
    const commands = ["Pin", "Expand"].map((verb) => ({ id: `dev.perfetto.${verb}TracksByRegex`, args }));
    if (place.rank !== undefined) shown.set("startupCommands", JSON.stringify(commands));
    address.hash = `${address.hash || "#!/"}?${shown.toString().replaceAll("+", "%20")}`;
  }
  const ui = window.open(address);
  if (!ui) {
    say($("status"), "the browser blocked the new window: allow pop-ups of this page", true);
    return;
  }
  say($("status"), "writing the trace …");
  try {
    const buffer = await (await ask("trace", part)).arrayBuffer();
    const size = (buffer.byteLength / 1e6).toFixed(1);
    await ready(ui, address.origin);
    const title = part.start === null ? "rocpd" : `rocpd, ${ms(part.start)} to ${ms(part.end)} ms`;
    ui.postMessage({ perfetto: { buffer, title, fileName: "rocpd.pftrace" } }, address.origin);
    say($("status"), `opened ${size} MB in Perfetto`);
  } catch (error) {
    say($("status"), error.message, true);
  }
}

// Findings that have a place get a button that opens it, with some of what is around it.
function addPlaces(main) {
  for (const item of main.querySelectorAll("[data-start]")) {
    const [start, end] = [item.dataset.start, item.dataset.end].map(Number);
    const rank = "rank" in item.dataset ? Number(item.dataset.rank) : undefined;
    const margin = Math.max(100_000, Math.round((end - start) / 4));
    const part = { start: Math.max(0, start - margin), end: end + margin };
    const button = element("button", "Open in Perfetto");
    button.type = "button";
    button.addEventListener("click", () => openPerfetto(part, { start, end: Math.max(end, start + 1000), rank }));
    item.append(button);
  }
}

// Perfetto answers PONG as soon as it can take a trace: https://perfetto.dev/docs/visualization/deep-linking-to-perfetto-ui
function ready(ui, origin) {
  return new Promise((resolve, reject) => {
    const until = Date.now() + 60_000;
    const timer = setInterval(() => {
      if (ui.closed || Date.now() > until) finish(() => reject(new Error("Perfetto did not answer")));
      else ui.postMessage("PING", origin);
    }, 50);
    const hear = (event) => {
      if (event.source === ui && event.data === "PONG") finish(resolve);
    };
    const finish = (then) => {
      clearInterval(timer);
      window.removeEventListener("message", hear);
      then();
    };
    window.addEventListener("message", hear);
  });
}

// --- a running job ---------------------------------------------------------------------------------------------------

async function lookForChanges() {
  try {
    const { stamp } = await (await ask("stamp")).json();
    if (state.stamp !== null && stamp !== state.stamp) {
      await Promise.all([loadStrip(), loadReport()]);
    }
    state.stamp = stamp;
  } catch (error) {
    say($("status"), error.message, true);
  }
  setTimeout(lookForChanges, document.hidden ? 30_000 : 5_000);
}

async function start() {
  const given = new URLSearchParams(location.hash.slice(1)), side = (name) => (given.has(name) ? Number(given.get(name)) : null);
  if (given.has("start")) Object.assign(state, { start: side("start"), end: side("end") });
  fillWindow(taken());
  state.job = await (await ask("job")).json();
  for (const [name, colour] of Object.entries(state.job.colours)) document.documentElement.style.setProperty(`--${name}`, colour);
  $("inputs").textContent = state.job.inputs.join(" ");
  $("perfetto").addEventListener("click", () => openPerfetto(taken()));
  $("strip").addEventListener("pointerdown", startDrag);
  $("strip").addEventListener("pointermove", hover);
  $("strip").addEventListener("keydown", byKeyboard);
  $("window").addEventListener("submit", (event) => { event.preventDefault(); take(readWindow()); });
  $("everything").addEventListener("click", () => { state.view = {}; take({ start: null, end: null }); loadStrip(); });
  $("zoom").addEventListener("click", () => { state.view = taken(); loadStrip(); });
  $("ask").addEventListener("submit", runStatement);
  $("statement").addEventListener("keydown", (event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) runStatement(event); });
  window.addEventListener("resize", draw);
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  const failed = (error) => say($("status"), error.message, true);
  loadSchema().catch(failed);
  loadStrip();
  loadReport();
  lookForChanges();
}

start().catch((error) => say($("status"), error.message, true));
