// The page of `rocpd view`: the time line (`timeline.js`), the report of the selected part, SQL, and a trace for Perfetto.
// Texts from files go into the page as texts, never as markup; only the report comes as markup, escaped by its writer.

import { $, addressWith, ask, button, duration, element, fillLegend, fillStates, given, ms, note, query, say } from "./page.js";
import { TimeLine } from "./timeline.js";

const HEAD_START = 2000; // ms that the time line has before the report, which reads with all cores

const state = { job: null, origin: 0n, line: null, start: null, end: null, stamp: null, asked: 0 };

const taken = () => ({ start: state.start, end: state.end });

// --- the time line ---------------------------------------------------------------------------------------------------

async function loadLine() {
  try {
    await state.line.load();
    $("timeline").classList.remove("none");
  } catch (error) { // there is none: of separate runs
    $("timeline").classList.add("none");
    $("reading").textContent = error.message;
  }
}

function makeLine() {
  const elements = { canvas: $("strip"), scroller: $("scroller"), spacer: $("spacer"), tip: $("tip"), said: $("reading") };
  state.line = new TimeLine(elements, state.job.colours, {
    ask: async (path) => (await (await ask(path)).json()).answer,
    readers: state.job.readers,
    taken: (part) => take(part ?? { start: null, end: null }),
    picked: showSlice,
    moved: writeAddress,
    coloured: (colours) => fillLegend("legend-of-slices", [...colours].filter(([name]) => name && !state.line.names.includes(name))),
    occurred: (names) => fillStates("legend", names, state.job.colours),
    failed: (error) => say($("status"), error.message, true),
  });
  $("strip").timeLine = state.line; // for measurements
}

function writeAddress() {
  note({ ...taken(), ...state.line.address() });
}

// All data of a slice, and links from it.
function showSlice(slice) {
  const { name, category, start, end, step, rank, values, linked, sql } = slice, tools = element("p", undefined, "tools"), list = element("dl");
  const place = { start: Math.max(0, start - 100_000), end: end + 100_000 };
  tools.append(button("Zoom to it", () => state.line.show(start, end, rank)));
  tools.append(button("Open in Perfetto", () => openPerfetto(place, { start, end: Math.max(end, start + 1000), rank })));
  if (sql) tools.append(button("SQL", () => { $("statement").value = sql; $("sql").scrollIntoView(); runStatement(); }));
  const add = (key, ...value) => {
    const cell = element("dd");
    cell.append(...value);
    list.append(element("dt", key), cell);
  };
  add("rank", `${rank}`);
  add("at", `${ms(start, 6)} ms`);
  add("duration", duration(end - start));
  add("step", step === null ? "outside of steps" : `${step}`);
  for (const other of linked) {
    const text = `${other.name} · ${duration(other.length)}, ${ms(Math.abs(start - other.start))} ms ${other.start < start ? "before" : "after"}`;
    add(other.text, other.id < 0 ? text : button(text, () => state.line.choose({ rank, row: other.row, id: other.id }, true)));
  }
  if (step !== null) {
    const href = `diff#${addressWith({ step, against: null })}`;
    const link = Object.assign(element("a", `step ${step} beside ${state.job.base ? "the base" : "another one"}`), { href });
    add("diff", link, " · ", element("code", `rocpd diff ${state.job.inputs.join(" ")} --step ${step}`));
  }
  add("category", category);
  for (const [key, value] of values) add(key, value);
  $("picked").replaceChildren(element("h3", name), tools, list);
  $("picked").hidden = false;
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
  state.start = isNothing ? null : start ?? 0;
  state.end = isNothing ? null : end ?? state.line.whole[1];
  fillWindow(taken());
  state.line.setPart(isNothing ? null : taken());
  note({ step: null, against: null, frame: null }); // those of another part
  writeAddress();
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

// Findings with a place are drawn there, and get buttons that open it, with some time around it.
function addPlaces(main) {
  const findings = [];
  for (const item of main.querySelectorAll("[data-start]")) {
    const [start, end] = [item.dataset.start, item.dataset.end].map(Number);
    const rank = "rank" in item.dataset ? Number(item.dataset.rank) : undefined;
    const margin = Math.max(100_000, Math.round((end - start) / 4));
    const part = { start: Math.max(0, start - margin), end: end + margin };
    findings.push({ start, end: Math.max(end, start + 1), rank, host: item.dataset.host, text: item.textContent });
    item.append(button("Show on the time line", () => { $("timeline").scrollIntoView(); state.line.show(start, end, rank); }), " ");
    item.append(button("Open in Perfetto", () => openPerfetto(part, { start, end: Math.max(end, start + 1000), rank })));
  }
  state.line.setFindings(findings);
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
      await Promise.all([loadLine(), loadReport()]);
    }
    state.stamp = stamp;
  } catch (error) {
    say($("status"), error.message, true);
  }
  setTimeout(lookForChanges, document.hidden ? 30_000 : 5_000);
}

async function start() {
  const side = (name) => (given(name) === null ? null : Number(given(name)));
  if (given("start") !== null) Object.assign(state, { start: side("start"), end: side("end") });
  fillWindow(taken());
  note({});
  state.job = await (await ask("job")).json();
  makeLine();
  state.line.restore(given);
  state.line.setPart(state.start === null ? null : taken());
  $("inputs").textContent = state.job.inputs.join(" ");
  $("perfetto").addEventListener("click", () => openPerfetto(taken()));
  $("window").addEventListener("submit", (event) => { event.preventDefault(); take(readWindow()); });
  $("everything").addEventListener("click", () => { state.line.move(...state.line.whole); take({ start: null, end: null }); });
  $("closer").addEventListener("click", () => state.line.zoom(0.5));
  $("farther").addEventListener("click", () => state.line.zoom(2));
  $("zoom").addEventListener("click", () => { if (state.start !== null) state.line.show(state.start, state.end, undefined, 0.02); });
  $("ask").addEventListener("submit", runStatement);
  $("statement").addEventListener("keydown", (event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) runStatement(event); });
  const failed = (error) => say($("status"), error.message, true);
  await loadLine();
  await Promise.race([state.line.drawn, new Promise((resolve) => setTimeout(resolve, HEAD_START))]);
  loadReport();
  loadSchema().catch(failed);
  lookForChanges();
}

start().catch((error) => say($("status"), error.message, true));
