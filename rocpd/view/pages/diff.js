// The differences of `rocpd view`: a step of a job beside that of its base, or beside another step of the job itself.
// Both time lines count from the start of their step and move together. Texts from files go in as texts.

import { $, ask, duration, element, fillLegend, fillStates, given, note, query, say } from "./page.js";
import { TimeLine } from "./timeline.js";

const state = { job: null, lines: {}, isMoving: false, asked: "" };
const other = { new: "base", base: "new" };

function makeLine(side, of) {
  const [canvas, spacer, scroller, tip] = ["canvas", ".spacer", ".scroller", ".tip"].map((name) => $(side).querySelector(name)), said = element("span");
  const line = new TimeLine({ canvas, scroller, spacer, tip, said }, state.job.colours, {
    ask: async (path) => (await (await ask(of ? `${path}${path.includes("?") ? "&" : "?"}of=${of}` : path)).json()).answer,
    readers: state.job.readers,
    taken: () => {},
    picked: ({ name, start, end, step }) => say($("status"), `${name}: ${duration(end - start)}, step ${step ?? "none"}`),
    moved: () => { follow(side); note(state.lines.new.rowsOfAddress()); },
    coloured: (colours) => fillLegend("legend-of-slices", [...colours].filter(([name]) => name && !line.names.includes(name))),
    occurred: () => fillStates("legend", line.names.filter((name) => Object.values(state.lines).some(({ occurring }) => occurring.has(name))), state.job.colours),
    failed: (error) => say($("status"), error.message, true),
  });
  Object.assign(line, { share: 0.36, slack: 1, findings: undefined }); // those of the job are on its time line
  canvas.timeLine = line;
  return line;
}

// The other time line shows the same time from the start of its step.
function follow(side) {
  const line = state.lines[side], twin = state.lines[other[side]];
  if (!state.isReady || line.from - line.zero === twin.from - twin.zero && line.to - line.zero === twin.to - twin.zero) return;
  twin.move(line.from - line.zero + twin.zero, line.to - line.zero + twin.zero);
}

// Steps are known with the tiles of ranks.
async function steps(line) {
  while (!line.ranks.length || line.states.size < line.ranks.length) await new Promise((done) => { setTimeout(done, 50); });
  return line.steps;
}

const longest = (spans) => [...spans].reduce((a, b) => (b[1][1] - b[1][0] > a[1][1] - a[1][0] ? b : a))[0];
// The steps of the selected part; all steps if it has none.
function inPart(spans) {
  const [low, high] = [given("start") ?? 0, given("end") ?? Infinity].map(Number), inside = [...spans].filter(([, [start, end]]) => start < high && end > low);
  return inside.length ? inside : spans;
}

const usual = (spans) => [...spans].sort((a, b) => a[1][1] - a[1][0] - b[1][1] + b[1][0])[Math.floor((spans.size - 1) / 2)][0];

const without = (spans, step) => new Map([...spans].filter(([number]) => number !== step));

function options(select, spans, chosen) {
  select.replaceChildren(...[...spans].map(([step, [start, end]]) => new Option(`${step} · ${duration(end - start)}`, step)));
  select.value = chosen;
}

function align() {
  const step = Number($("step").value), chosen = $("against").value;
  const against = state.job.base ? step : chosen ? Number(chosen) : usual(without(state.lines.base.steps, step)), sides = { new: step, base: against };
  const spans = Object.entries(sides).map(([side, number]) => [side, state.lines[side].steps.get(number)]).filter(([, span]) => span);
  const most = Math.max(...spans.map(([, [start, end]]) => end - start));
  state.isReady = false;
  for (const [side, [start]] of spans) {
    const line = state.lines[side];
    line.zero = start;
    line.move(start - most * 0.05, start + most * 1.05);
  }
  state.isReady = true;
  const lengths = Object.fromEntries(spans.map(([side, [start, end]]) => [side, duration(end - start)]));
  $("new-title").textContent = `Step ${step} · ${lengths.new ?? "not there"}`;
  $("base-title").textContent = `${state.job.base ? `Base, ${state.job.base.join(" ")}: step` : "Step"} ${against} · ${lengths.base ?? "not there"}${state.job.base || chosen ? "" : ", the usual one"}`;
  note({ step, against: chosen });
  load(state.job.base ? {} : { step, against: chosen ? against : null });
}

async function load(asked) {
  const words = query(asked), main = $("report");
  if (state.asked === words && main.hasChildNodes()) return;
  state.asked = words;
  main.setAttribute("aria-busy", "true");
  try {
    const { answer } = await (await ask(`differences${words}`)).json();
    if (state.asked !== words) return;
    main.replaceChildren(...new DOMParser().parseFromString(answer, "text/html").body.childNodes);
    main.dispatchEvent(new CustomEvent("rocpd-report", { bubbles: true }));
    say($("status"), "");
  } catch (error) {
    if (state.asked === words) {
      main.replaceChildren();
      say($("status"), error.message, true);
    }
  } finally {
    if (state.asked === words) main.setAttribute("aria-busy", "false");
  }
}

async function start() {
  state.job = await (await ask("job")).json();
  const { base, inputs } = state.job;
  $("inputs").textContent = inputs.join(" ");
  $("of-against").hidden = base !== null;
  state.lines = { new: makeLine("new", ""), base: makeLine("base", base ? "base" : "") };
  for (const line of Object.values(state.lines)) line.restoreRows(given);
  note({});
  const tell = setInterval(() => say($("reading"), Object.values(state.lines).map(({ said }) => said.textContent).find(Boolean) ?? ""), 200);
  await Promise.all(Object.values(state.lines).map((line) => line.load()));
  const [of, ofBase] = await Promise.all(Object.values(state.lines).map(steps));
  if (!of.size || !ofBase.size) {
    clearInterval(tell);
    say($("reading"), "");
    load({});
    return;
  }
  const step = Number(given("step") ?? longest(inPart(of)));
  options($("step"), of, step);
  options($("against"), ofBase, "");
  $("against").prepend(new Option("all others", ""));
  $("against").value = given("against") ?? "";
  for (const id of ["step", "against"]) $(id).addEventListener("change", align);
  $("both").addEventListener("click", align);
  $("closer").addEventListener("click", () => state.lines.new.zoom(0.5));
  $("farther").addEventListener("click", () => state.lines.new.zoom(2));
  $("choice").addEventListener("submit", (event) => event.preventDefault());
  align();
}

start().catch((error) => { say($("status"), error.message, true); say($("reading"), ""); });
