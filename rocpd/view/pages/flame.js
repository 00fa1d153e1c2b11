// The flame graphs of `rocpd view`, on a canvas: calls and recorded stacks of the selected part.
// Names from files are drawn or go in as texts, never as markup.

import { $, ask, button, duration, element, given, inkOn, note, query, say } from "./page.js";

const HIGH = 18, LEAST = 0.4; // px: of a row; narrower frames are not drawn
const state = { graphs: [], graph: null, frame: null, at: 0, word: "", byOwn: true };
const canvas = $("flames"), pen = canvas.getContext("2d");
const NAME = 0, DEPTH = 1, START = 2, VALUE = 3, OWN = 4;

const part = () => ({ start: given("start"), end: given("end") });
const amount = (value) => (state.graph.unit === "ns" ? duration(value) : `${value} samples`);
const share = (value) => `${Number(((100 * value) / state.graph.total).toPrecision(3))} %`;
const isFound = (name) => state.word !== "" && name.toLowerCase().includes(state.word.toLowerCase());

async function load() {
  const sources = ["calls", "stacks"], asked = sources.map(async (source) => (await (await ask(`flames${query({ ...part(), source })}`)).json()).answer);
  const answers = await Promise.all(asked);
  state.graphs = answers.flatMap(({ graphs }) => graphs);
  $("graph").replaceChildren(...state.graphs.map(({ title }, index) => new Option(title, index)));
  if (!state.graphs.length) {
    say($("reading"), answers.map(({ missing }) => missing).filter(Boolean).join(" · "), true);
    $("rows-of-ranks").hidden = true;
    return;
  }
  const index = Math.max(0, state.graphs.findIndex(({ title }) => title === given("graph")));
  $("graph").value = index;
  $("word").value = state.word = given("search") ?? "";
  choose(index, Number(given("frame") ?? -1));
}

function choose(index, frame = -1) {
  state.graph = state.graphs[index];
  state.frame = state.graph.frames[frame] ?? null;
  state.at = Math.max(0, frame);
  listFunctions();
  draw();
  tell();
}

// The address and the words for the picture: the current frame, and the share with the word that is searched.
function tell() {
  const { graph, frame, word } = state, at = graph.frames[state.at];
  const words = [`${graph.title}: ${amount(graph.total)}`, at && (frame || document.activeElement === canvas) ? about(at) : ""];
  if (word) words.push(`“${word}”: ${share(found())} of all`);
  say($("reading"), words.filter(Boolean).join(" · "));
  note({ graph: graph.title, search: word, frame: frame ? graph.frames.indexOf(frame) : "" });
}

const about = (frame) => `${frame[NAME]}: inclusive ${amount(frame[VALUE])} (${share(frame[VALUE])}), exclusive ${amount(frame[OWN])} (${share(frame[OWN])})`;

// The value of the outermost frames that have the word, so that frames inside them are not counted again.
function found() {
  let [all, until] = [0, 0];
  for (const [name, , start, value] of state.graph.frames) {
    if (start >= until && isFound(name)) [all, until] = [all + value, start + value];
  }
  return all;
}

// --- the picture -----------------------------------------------------------------------------------------------------

function shown() {
  const { graph, frame } = state;
  return frame ? [frame[START], frame[START] + frame[VALUE]] : [0, graph.total];
}

// The place of a frame; null: it is not in view. Frames around the chosen frame are as wide as the page.
function box(frame) {
  const [low, high] = shown(), wide = canvas.clientWidth;
  const left = Math.max(0, ((frame[START] - low) / (high - low)) * wide), right = Math.min(wide, ((frame[START] + frame[VALUE] - low) / (high - low)) * wide);
  return right - left < LEAST ? null : { left, wide: right - left, top: frame[DEPTH] * HIGH };
}

function draw() {
  if (!state.graph) return;
  const { frames, colour } = state.graph, ratio = window.devicePixelRatio || 1, style = getComputedStyle(canvas);
  const high = (1 + frames.reduce((most, frame) => (box(frame) ? Math.max(most, frame[DEPTH]) : most), 0)) * HIGH;
  canvas.style.height = `${high}px`;
  [canvas.width, canvas.height] = [canvas.clientWidth * ratio, high * ratio];
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, canvas.clientWidth, high);
  pen.font = `12px ${style.fontFamily}`;
  pen.textBaseline = "middle";
  for (const frame of frames) {
    const place = box(frame);
    if (!place) continue;
    const { left, wide, top } = place, isMarked = isFound(frame[NAME]), isFaint = state.word !== "" && !isMarked;
    pen.globalAlpha = isFaint ? 0.35 : frame[DEPTH] % 2 ? 0.82 : 1;
    pen.fillStyle = isMarked ? style.getPropertyValue("--found") : colour;
    pen.fillRect(left, top, Math.max(LEAST, wide - (wide > 3 ? 1 : 0)), HIGH - 1);
    pen.globalAlpha = 1;
    if (wide > 26) label(frame[NAME], left + 4, top + HIGH / 2, wide - 8, isMarked ? inkOn(style.getPropertyValue("--found")) : isFaint ? style.color : inkOn(colour));
    if (frame === frames[state.at] && document.activeElement === canvas) {
      [pen.strokeStyle, pen.lineWidth] = [style.color, 2];
      pen.strokeRect(left + 1, top + 1, Math.max(1, wide - 3), HIGH - 3);
    }
  }
  canvas.setAttribute("aria-label", `Flame graph of ${state.graph.title}${state.frame ? `, inside of ${state.frame[NAME]}` : ""}`);
  canvas.dataset.ready = "true";
}

function label(name, x, y, room, colour) {
  const share = room / pen.measureText(name).width, fitting = Math.floor(name.length * share) - 1;
  pen.fillStyle = colour;
  if (share >= 1) pen.fillText(name, x, y);
  else if (fitting > 0) pen.fillText(`${name.slice(0, fitting)}…`, x, y, room);
}

// --- pointer, keys and search ----------------------------------------------------------------------------------------

function frameAt(event) {
  const { left, top } = canvas.getBoundingClientRect(), x = event.clientX - left, depth = Math.floor((event.clientY - top) / HIGH);
  return state.graph?.frames.find((frame) => {
    const place = frame[DEPTH] === depth && box(frame);
    return place && x >= place.left && x < place.left + place.wide;
  });
}

function zoom(frame) {
  state.frame = frame && frame !== state.frame ? frame : null;
  state.at = Math.max(0, state.graph.frames.indexOf(frame));
  draw();
  tell();
}

function hover(event) {
  const frame = frameAt(event), tip = $("tip");
  tip.hidden = !frame;
  if (!frame) return;
  tip.textContent = about(frame);
  const { left, top } = canvas.getBoundingClientRect(), x = event.clientX - left, wide = tip.offsetWidth;
  Object.assign(tip.style, { left: `${Math.max(0, x + 14 + wide > canvas.clientWidth ? x - wide - 10 : x + 14)}px`, top: `${event.clientY - top + 18}px` });
}

// The frames that a key leads to; frames are in the order of a walk, outer ones first.
function next(key) {
  const { frames } = state.graph, at = frames[state.at];
  const inside = (frame) => frame[START] >= at[START] && frame[START] < at[START] + Math.max(1, at[VALUE]);
  if (key === "ArrowUp") return frames.findLast((frame, index) => index < state.at && frame[DEPTH] === at[DEPTH] - 1);
  if (key === "ArrowDown") return frames.find((frame, index) => index > state.at && frame[DEPTH] === at[DEPTH] + 1 && inside(frame));
  if (key === "ArrowLeft") return frames.findLast((frame, index) => index < state.at && frame[DEPTH] === at[DEPTH]);
  return frames.find((frame, index) => index > state.at && frame[DEPTH] === at[DEPTH]);
}

function press(event) {
  const { key } = event;
  if (event.ctrlKey || event.metaKey || event.altKey || !state.graph) return;
  if (key === "Enter" || key === " ") zoom(state.graph.frames[state.at]);
  else if (key === "Escape" || key === "Home") zoom(null);
  else if (key.startsWith("Arrow")) {
    const frame = next(key);
    if (frame) state.at = state.graph.frames.indexOf(frame);
    if (frame && !box(frame)) state.frame = null;
    draw();
    tell();
  } else return;
  event.preventDefault();
}

function search(word) {
  $("word").value = state.word = word;
  draw();
  tell();
}

function listFunctions() {
  const place = state.byOwn ? 2 : 1, body = $("functions").tBodies[0];
  const rows = state.graph.functions.toSorted((a, b) => b[place] - a[place]).slice(0, 100);
  body.replaceChildren(...rows.map(([name, all, own]) => {
    const row = element("tr"), cell = element("td");
    cell.append(button(name, () => search(state.word === name ? "" : name)));
    const values = Object.entries({ inclusive: all, exclusive: own }).map(([head, value]) => {
      const made = element("td", `${amount(value)} · ${share(value)}`, "n");
      made.dataset.h = head; // which a telephone shows
      return made;
    });
    row.append(cell, ...values);
    return row;
  }));
  for (const [id, is] of [["by-all", !state.byOwn], ["by-own", state.byOwn]]) $(id).parentElement.setAttribute("aria-sort", is ? "descending" : "none");
}

async function start() {
  const job = await (await ask("job")).json(), { start, end } = part();
  $("inputs").textContent = job.inputs.join(" ");
  if (start) $("inputs").textContent += ` · from ${duration(Number(start))} to ${duration(Number(end))}`;
  note({});
  $("graph").addEventListener("change", () => choose(Number($("graph").value)));
  $("word").addEventListener("input", () => search($("word").value));
  $("whole").addEventListener("click", () => { search(""); zoom(null); });
  $("choice").addEventListener("submit", (event) => event.preventDefault());
  for (const [id, byOwn] of [["by-all", false], ["by-own", true]]) $(id).addEventListener("click", () => { state.byOwn = byOwn; listFunctions(); });
  canvas.addEventListener("click", (event) => { const frame = frameAt(event); if (frame) zoom(frame); });
  canvas.addEventListener("pointermove", hover);
  canvas.addEventListener("pointerleave", () => { $("tip").hidden = true; });
  canvas.addEventListener("keydown", press);
  for (const name of ["focus", "blur"]) canvas.addEventListener(name, () => { if (state.graph) { draw(); tell(); } });
  window.addEventListener("resize", draw);
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  new MutationObserver(draw).observe(document.documentElement, { attributeFilter: ["data-theme"] });
  await load();
}

start().catch((error) => say($("reading"), error.message, true));
