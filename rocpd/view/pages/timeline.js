// The time line of `rocpd view`, on a canvas: a row a rank, which opens into its threads, streams, markers and counters.
// It draws tiles that the server makes for the pixels of the page, so its work depends on pixels, not on events.
// Times are ns from the start of the job. Texts from files are drawn or go in as texts, never as markup.

import { duration, inkOn } from "./page.js";

const AXIS = 20, STEPS = 18, MARKS = 14, LINE = 15, GROUP = 18, VALUES = 32, MOST_OPEN = 3, FOLDED_FROM = 32, MOST_AT_ONCE = 16, LEVELS = 24, TICK = 90;
const NONE = "-"; // in an address: of many hosts none is folded
const LEAST_SPAN = 50; // ns over the whole width

const [clamp, sum] = [(x, low, high) => Math.min(high, Math.max(low, x)), (list) => list.reduce((a, b) => a + b, 0)];

function bytesOf(text) {
  const letters = atob(text), bytes = new Uint8Array(letters.length);
  for (let at = 0; at < letters.length; at++) bytes[at] = letters.charCodeAt(at);
  return bytes;
}

export class TimeLine {
  // elements: canvas, scroller (scrolls rows), spacer (as high as all rows), tip, said (what is read).
  // calls: ask(path), readers (how many processes answer), taken(part) when a part was dragged, picked(details), moved()
  // when the address should change, coloured(map) with the colours of slices that are shown, occurred(names) with the
  // states of ranks so far.
  // May be set: zero (what the axis counts from [ns]), share (of a screen that rows take), slack (of the job, before and
  // after it, that can be shown).
  constructor(elements, colours, calls) {
    Object.assign(this, elements, { colours, calls, ranks: [], folded: new Set(), open: new Set(), findings: null, odd: new Set() });
    Object.assign(this, { states: new Map(), rows: new Map(), steps: new Map(), waiting: [], running: new Set(), part: null, drag: null });
    this.occurring = new Set();
    Object.assign(this, { lines: [], at: null, current: 0, pick: null, whole: [0, 1], from: 0, to: 1, zero: 0, share: 0.68, slack: 0.02, version: 0, widths: new Map() });
    this.names = Object.keys(colours).filter((name) => !["idle", "MARKERS"].includes(name));
    this.pen = this.canvas.getContext("2d");
    this.drawn = new Promise((resolve) => { this.resolve = resolve; }); // when all that is shown was drawn once
    this.listen();
  }

  // --- what is read --------------------------------------------------------------------------------------------------

  async load() {
    this.say("reading the job …");
    let said = await this.calls.ask("line");
    for (; !said.ranks; said = await this.calls.ask("line")) this.say(`reading when ranks begin and end: ${Math.floor(said.read * 100)} % …`);
    const { ranks, start, end } = said;
    const isNew = this.ranks.length === 0;
    this.ranks = ranks;
    this.rankOf = new Map(ranks.map((each) => [each.rank, each]));
    this.hosts = [...new Set(ranks.map(({ host }) => host))];
    this.isMany = this.hosts.length > 1 && ranks.length > FOLDED_FROM;
    if (isNew && this.isMany && !this.isRestored) this.folded = new Set(this.hosts); // one screen has all of them
    this.states.clear();
    this.rows.clear();
    this.steps.clear();
    this.version += 1;
    this.isToSettle = isNew && this.to === 1;
    if (this.isToSettle) [this.from, this.to] = [start, end];
    this.whole = [start, end];
    this.lay();
    this.plan();
  }

  // Asks for the tiles in view, rows on the screen first; requests of earlier views are dropped.
  look() {
    clearTimeout(this.looking);
    this.looking = setTimeout(() => this.plan(), 40);
  }

  plan() {
    const [low, high] = this.wanted(), pixels = Math.round(this.wide * ((high - low) / (this.to - this.from)));
    const jobs = [];
    for (const { rank } of this.ranks) {
      const states = this.states.get(rank);
      if (!states) jobs.push({ kind: "outlines", rank, start: this.whole[0], end: this.whole[1], pixels: Math.round(this.wide) });
      else if (!fits(states.fine ?? states.base, low, high, this)) jobs.push({ kind: "states", rank, start: low, end: high, pixels });
      if (this.open.has(rank) && !fits(this.rows.get(rank), low, high, this)) jobs.push({ kind: "rows", rank, start: low, end: high, pixels });
    }
    const place = (job) => (this.isOnScreen(job.rank) ? 0 : 1), isAsked = new Set([...this.running].flat().map(nameOf));
    this.waiting = jobs.filter((job) => !isAsked.has(nameOf(job))).sort((a, b) => place(a) - place(b));
    this.work();
  }

  // The time to ask for: the shown time, and half as much on each side, for panning.
  wanted() {
    const span = this.to - this.from;
    const [low, high] = [Math.max(this.whole[0], this.from - span / 2), Math.min(this.whole[1], this.to + span / 2)];
    return [Math.floor(Math.min(low, this.whole[1] - 1)), Math.ceil(Math.max(high, low + 1))];
  }

  // A request is for outlines of ranks, for finer states of ranks that one process of the server reads, or for the rows
  // of one rank. Two for each process are under way, so that none waits for the page.
  work() {
    const { readers } = this.calls;
    while (this.running.size < 2 * readers && this.waiting.length) {
      const [first] = this.waiting, { kind } = first, most = { outlines: Infinity, states: MOST_AT_ONCE, rows: 1 }[kind];
      const isAlike = (job) => job.kind === kind && (kind === "outlines" || (job.rank - first.rank) % readers === 0);
      const batch = this.waiting.filter(isAlike).slice(0, most);
      this.waiting = this.waiting.filter((job) => !batch.includes(job));
      this.running.add(batch);
      this.ask(batch).catch((error) => {
        this.calls.failed(error);
        this.waiting.push(...batch.slice(1)); // it is of the first
      }).then((isAll) => {
        this.running.delete(batch);
        if (isAll === false) this.plan();
        else this.work();
      });
    }
    this.tell();
  }

  // Returns whether the server answered for all ranks: those that it reads soon come first.
  async ask(batch) {
    const [{ kind, start, end, pixels }] = batch, { version } = this, ranks = batch.map(({ rank }) => rank).join();
    const place = { outlines: { ranks }, states: { ranks, start, end }, rows: { rank: ranks, start, end } }[kind];
    const answer = await this.calls.ask(`${kind}?${new URLSearchParams({ ...place, pixels })}`);
    if (version !== this.version) return true;
    const tile = ({ rank }) => (kind === "rows" ? answer : answer.ranks[rank]);
    for (const [step, start, end] of answer.steps ?? []) {
      const known = this.steps.get(step) ?? [start, end];
      this.steps.set(step, [Math.min(known[0], start), Math.max(known[1], end)]);
    }
    for (const job of batch) if (tile(job)) this.take(job, tile(job));
    if (this.states.size === this.ranks.length) this.settle();
    return batch.every(tile);
  }

  take(job, answer) {
    if (job.kind === "rows") {
      const isFirst = !this.rows.has(job.rank);
      for (const line of this.lines) if (line.kind === "row" && line.rank === job.rank) line.row = answer.rows[line.index];
      this.rows.set(job.rank, { ...job, ...answer });
      this.calls.coloured(new Map([...this.rows.values()].flatMap(({ colours }) => colours)));
      if (isFirst) this.lay();
    } else {
      const tile = { ...job, first: answer.start, last: answer.end, shares: bytesOf(answer.shares) };
      tile.pixels = tile.shares.length / this.names.length;
      const known = this.states.get(job.rank), detail = job.kind === "states" ? "fine" : "base";
      this.note(tile);
      tile.image = this.picture(tile, known?.[detail]?.image);
      this.states.set(job.rank, { ...known, [detail]: tile });
      if (job.kind === "outlines") this.look();
    }
    this.paint();
  }

  // Reports the states of ranks, in the order of all states.
  note({ pixels, shares }) {
    const more = this.names.filter((name, state) => !this.occurring.has(name) && shares.subarray(state * pixels, (state + 1) * pixels).some(Boolean));
    for (const name of more) this.occurring.add(name);
    if (more.length) this.calls.occurred(this.names.filter((name) => this.occurring.has(name)));
  }

  // Begins shortly before the first work where that comes late, as the report does; Everything shows what is before.
  settle() {
    const [low, high] = this.whole, first = Math.min(...[...this.states.values()].map(({ base }) => base.first));
    const isUntouched = this.from === low && this.to === high;
    if (this.isToSettle && isUntouched && first - low > (high - low) / 2) this.move(first - (high - first) / 20, high);
    this.isToSettle = false;
  }

  // A tile as a picture, a column a pixel: states stand on each other, idle time shows the page. The picture of the tile
  // before it is drawn over, and all are made in one image: a browser frees late what is dropped.
  picture({ shares, pixels }, canvas = document.createElement("canvas")) {
    if (!(this.image?.width >= pixels)) this.image = new ImageData(pixels, LEVELS);
    if (canvas.width < pixels || canvas.height !== LEVELS) [canvas.width, canvas.height] = [pixels, LEVELS];
    const { width } = this.image, cells = new Uint32Array(this.image.data.buffer).fill(0);
    const colours = this.names.map((name) => new Uint32Array(Uint8Array.from([1, 3, 5, 7], (at) => parseInt(`${this.colours[name]}ff`.slice(at, at + 2), 16)).buffer)[0]);
    for (let x = 0; x < pixels; x++) {
      for (let state = 0, before = 0, level = LEVELS; state < colours.length; state++) {
        const share = shares[state * pixels + x];
        before += share;
        const top = Math.max(0, Math.min(LEVELS - Math.round((before * LEVELS) / 255), share ? level - 1 : level));
        for (; level > top; level--) cells[(level - 1) * width + x] = colours[state];
      }
    }
    canvas.getContext("2d").putImageData(this.image, 0, 0);
    return canvas;
  }

  tell() {
    if (!this.ranks.length) return; // why, stands there
    const done = this.ranks.filter(({ rank }) => this.states.has(rank)).length;
    const opening = [...this.open].filter((rank) => !this.rows.has(rank));
    if (done < this.ranks.length) this.say(`reading the time of rank ${done + 1} of ${this.ranks.length} …`);
    else if (opening.length) this.say(`reading the events of rank ${opening.join(", ")} …`);
    else this.say(this.running.size ? "reading more detail …" : "");
    if (this.running.size || this.waiting.length) delete this.canvas.dataset.ready;
    else {
      this.canvas.dataset.ready = "true";
      this.resolve();
    }
  }

  say(text) {
    this.said.textContent = text;
  }

  // --- rows ----------------------------------------------------------------------------------------------------------

  isOnScreen(rank) {
    const { scrollTop, clientHeight } = this.scroller, [top, end] = this.places.get(rank);
    return top < scrollTop + clientHeight && end > scrollTop;
  }

  // Lays out the rows: hosts where there are several, ranks, and the rows of ranks that are open.
  lay() {
    const tall = this.ranks.length > 24 ? 13 : this.ranks.length > 8 ? 18 : 26;
    const lines = [];
    for (const host of this.hosts ?? []) {
      const ranks = this.ranks.filter((rank) => rank.host === host).map(({ rank }) => rank);
      const isFolded = this.folded.has(host);
      if (this.hosts.length > 1) lines.push({ kind: "host", host, ranks, folded: isFolded ? ranks : null, height: isFolded ? Math.max(GROUP, ranks.length * 3) : GROUP });
      if (isFolded) continue;
      for (const rank of ranks) {
        lines.push({ kind: "rank", rank, height: Math.max(tall, this.open.has(rank) ? GROUP : 0) });
        if (!this.open.has(rank)) continue;
        if (!this.rows.has(rank)) lines.push({ kind: "wait", rank, height: GROUP });
        (this.rows.get(rank)?.rows ?? []).forEach((row, index) => {
          const height = row.kind === "group" ? GROUP : row.unit !== undefined ? VALUES : row.depth * LINE + 3;
          lines.push({ kind: "row", rank, row, index, height });
        });
      }
    }
    let y = 0;
    this.places = new Map(); // of each rank: where its rows begin and end
    for (const line of lines) {
      line.y = y;
      y += line.height;
      for (const rank of line.kind === "host" ? line.folded ?? [] : [line.rank]) this.places.set(rank, [this.places.get(rank)?.[0] ?? line.y, y]);
    }
    [this.lines, this.high] = [lines, y];
    this.current = Math.min(this.current, Math.max(0, lines.length - 1));
    this.fit();
  }

  get head() {
    return AXIS + STEPS + (this.findings === undefined ? 0 : MARKS);
  }

  // Takes the sizes that the page gives. The row area is as high as its rows, up to most of a screen.
  fit() {
    const ratio = window.devicePixelRatio || 1, width = this.scroller.clientWidth;
    const most = Math.max(240, window.innerHeight * this.share);
    const height = Math.round(Math.min(most, this.high + this.head + 4));
    this.gutter = width < 600 ? 96 : 190;
    this.wide = Math.max(50, width - this.gutter - 1);
    this.scroller.style.height = `${height}px`;
    this.spacer.style.height = `${this.high + this.head + 4}px`;
    Object.assign(this.canvas.style, { width: `${width}px`, height: `${height}px` });
    [this.canvas.width, this.canvas.height] = [width * ratio, height * ratio];
    Object.assign(this, { ratio, width, height });
    this.paint();
  }

  toggle(line) {
    if (line.kind === "host") {
      if (!this.folded.delete(line.host)) this.folded.add(line.host);
    } else if (line.rank !== undefined) {
      if (!this.open.delete(line.rank)) this.open.add(line.rank);
      while (this.open.size > MOST_OPEN) this.open.delete(this.open.values().next().value);
      for (const rank of this.rows.keys()) if (!this.open.has(rank)) this.rows.delete(rank);
    }
    this.lay();
    this.moved();
  }

  // --- the picture ---------------------------------------------------------------------------------------------------

  x(ns) {
    return this.gutter + ((ns - this.from) / (this.to - this.from)) * this.wide;
  }

  ns(x) {
    return this.from + ((x - this.gutter) / this.wide) * (this.to - this.from);
  }

  paint() {
    if (this.isDue) return;
    this.isDue = true;
    requestAnimationFrame(() => {
      this.isDue = false;
      this.draw();
    });
  }

  draw() {
    const { pen, width, height, head } = this, style = getComputedStyle(this.canvas);
    const read = (name) => style.getPropertyValue(name);
    this.ink = { text: style.color, page: read("--paper"), dim: read("--faint"), line: read("--rule"), soft: read("--shade"), mark: read("--mark") };
    pen.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    pen.fillStyle = this.ink.page;
    pen.fillRect(0, 0, width, height);
    pen.font = `12px ${style.fontFamily}`;
    pen.textBaseline = "middle";
    const top = this.scroller.scrollTop;
    pen.save();
    pen.beginPath();
    pen.rect(0, head, width, height - head);
    pen.clip();
    pen.translate(0, head - top);
    const shown = this.lines.filter((line) => line.y + line.height > top && line.y < top + height - head), tick = this.tick();
    for (const at of this.ticks(tick)) this.box(this.x(at), top, 1, height, this.ink.line);
    for (const line of shown) this.drawLine(line);
    this.drawPlaces(shown);
    pen.restore();
    this.drawHead();
    this.drawPart();
    const place = `${this.ranks.length} ranks from ${duration(this.from)} to ${duration(this.to)}`;
    const part = this.part ? `; taken: ${duration(this.part.start)} to ${duration(this.part.end)}` : "";
    this.canvas.setAttribute("aria-label", place + part);
  }

  drawLine(line) {
    const { pen, ink, gutter, width } = this, middle = line.y + line.height / 2;
    if (line === this.lines[this.current] && document.activeElement === this.canvas) this.box(0, line.y, gutter, line.height, ink.soft);
    pen.fillStyle = ink.line;
    pen.fillRect(0, line.y + line.height - 1, width, line.kind === "row" ? 0.5 : 1);
    pen.save();
    pen.beginPath();
    pen.rect(gutter, line.y, width - gutter, line.height);
    pen.clip();
    if (line.kind === "rank") this.drawStates(line.rank, line.y + 1, line.height - 2);
    else if (line.folded) line.folded.forEach((rank, at, { length }) => this.drawStates(rank, line.y + 1 + (at * (line.height - 2)) / length, (line.height - 2) / length));
    else if (line.row?.unit !== undefined) this.drawValues(line);
    else if (line.row?.start) this.drawSlices(line);
    pen.restore();
    if (line.kind === "host") this.text(`${this.folded.has(line.host) ? "▸" : "▾"} ${this.gutter < 150 ? line.host.replace(/^.+(?=.{7}$)/, "…") : `${line.host} · ${line.ranks.length} ranks`}`, 4, middle, gutter - 8, this.isOdd(line) ? ink.mark : ink.text, "600");
    else if (line.kind === "rank") this.text(`${this.open.has(line.rank) ? "▾" : "▸"} ${this.label(line.rank)}`, this.hosts.length > 1 ? 12 : 4, middle, gutter - 14, this.isOdd(line) ? ink.mark : ink.text);
    else if (line.kind === "wait") this.text("reading …", 28, middle, gutter - 30, ink.dim);
    else this.text(line.row.title, 24 + line.row.indent * 8, line.row.unit === undefined ? line.y + LINE / 2 + 1 : middle - 7, gutter - 28 - line.row.indent * 8, line.row.kind === "group" ? ink.text : ink.dim);
    if (line.row?.unit !== undefined) this.text(`up to ${quantity(line.row.most, line.row.unit)}`, 24 + line.row.indent * 8, middle + 7, gutter - 28 - line.row.indent * 8, ink.dim);
  }

  isOdd({ host, rank, folded }) {
    return this.odd.has(host ?? rank) || (folded ?? []).some((rank) => this.odd.has(rank));
  }

  label(rank) {
    const { label, host } = this.rankOf.get(rank);
    return this.hosts.length > 1 || this.gutter < 150 ? label.split(" · ").filter((word) => !host.startsWith(word)).join(" · ") : label;
  }

  // Widths are measured once a text: measuring takes longer than drawing.
  widthOf(words, weight = "") {
    const { pen, widths } = this, key = weight + words;
    if (widths.size > 5000) widths.clear();
    if (!widths.has(key)) widths.set(key, pen.measureText(words).width);
    return widths.get(key);
  }

  // A text as far as there is room.
  text(words, x, y, room, colour, weight = "") {
    if (room < 8) return;
    const { pen } = this, { font } = pen;
    if (weight) pen.font = `${weight} ${font}`;
    const share = room / this.widthOf(words, weight), fitting = Math.floor(words.length * share) - 1;
    pen.fillStyle = colour;
    if (share >= 1) pen.fillText(words, x, y);
    else if (fitting > 0) pen.fillText(`${words.slice(0, fitting)}…`, x, y, room);
    pen.font = font;
  }

  box(x, y, wide, high, colour) {
    if (this.pen.fillStyle !== colour) this.pen.fillStyle = colour;
    this.pen.fillRect(x, y, wide, high);
  }

  drawStates(rank, y, high) {
    const { pen, ink } = this, states = this.states.get(rank);
    this.box(this.x(this.whole[0]), y, this.x(this.whole[1]) - this.x(this.whole[0]), high, ink.soft);
    if (!states) return;
    const { base, fine } = states, draw = (tile, from, to) => {
      const [low, high_] = [Math.max(from, tile.first), Math.min(to, tile.last)];
      const scale = tile.pixels / (tile.last - tile.first), left = this.x(low), wide = this.x(high_) - left;
      if (wide <= 0) return;
      pen.imageSmoothingEnabled = (high_ - low) * scale > wide * 1.5;
      pen.drawImage(tile.image, (low - tile.first) * scale, 0, Math.max((high_ - low) * scale, 1e-3), LEVELS, left, y, wide, high);
    };
    const [low, top] = [Math.max(this.from, this.whole[0]), Math.min(this.to, this.whole[1])];
    const isFiner = fine && fine.start < top && fine.end > low;
    if (!isFiner) return draw(base, low, top);
    const [start, end] = [Math.max(low, fine.start), Math.min(top, fine.end)];
    if (low < start) draw(base, low, start);
    if (end < top) draw(base, end, top);
    draw(fine, start, end);
  }

  drawSlices({ rank, row, y }) {
    const { pen } = this, { names, colours } = this.rows.get(rank);
    for (let at = 0; at < row.start.length; at++) {
      const left = Math.max(this.x(row.start[at]), this.gutter - 2), right = Math.min(this.x(row.end[at]), this.width + 2);
      if (right < this.gutter || left > this.width) continue;
      const wide = Math.max(right - left - (right - left > 3 ? 0.6 : 0), 1), top = y + 2 + row.depths[at] * LINE;
      const colour = colours[row.colour[at]][1];
      this.box(left, top, wide, LINE - 2, colour);
      if (this.pick && this.pick.rank === rank && this.pick.start === row.start[at] && this.pick.end === row.end[at]) {
        pen.strokeStyle = this.ink.text;
        pen.lineWidth = 2;
        pen.strokeRect(left - 1, top - 1, wide + 2, LINE);
      }
      if (wide > 24 && row.count[at] === 1) this.text(names[row.name[at]], left + 3, top + LINE / 2 - 0.5, wide - 6, inkOn(colour));
    }
  }

  drawValues({ rank, row, y, height }) {
    const { pen } = this, tile = this.rows.get(rank), { value, most } = row;
    const step = (tile.end - tile.start) / value.length, tall = height - 6;
    pen.fillStyle = this.colours["hidden communication"];
    for (let at = 0; at < value.length; at++) {
      if (!value[at] || value[at] < 0) continue;
      const left = this.x(tile.start + at * step), right = this.x(tile.start + (at + 1) * step);
      if (right < this.gutter || left > this.width) continue;
      const high = Math.max(1, (value[at] / (most || 1)) * tall);
      pen.fillRect(left, y + height - 2 - high, right - left + 0.3, high);
    }
  }

  // The time between two ticks: 1, 2 or 5 times a power of ten.
  tick() {
    const rough = ((this.to - this.from) / this.wide) * Math.min(TICK, this.wide / 4), power = 10 ** Math.floor(Math.log10(rough));
    return power * [1, 2, 5, 10].find((factor) => factor * power >= rough * (1 - 1e-9));
  }

  ticks(tick) {
    const first = Math.ceil((this.from - this.zero) / tick), last = Math.floor((this.to - this.zero) / tick);
    return Array.from({ length: Math.max(0, last - first + 1) }, (_, index) => this.zero + (first + index) * tick);
  }

  drawHead() {
    const { ink, gutter, width, head } = this;
    this.box(0, 0, width, head, ink.page);
    const span = this.to - this.from, last = this.to - this.zero, [unit, size] = last < 1e3 ? ["ns", 1] : span < 1e4 ? ["us", 1e3] : last < 2e10 ? ["ms", 1e6] : ["s", 1e9];
    const tick = this.tick(), digits = Math.max(0, Math.ceil(-Math.log10(tick / size) - 1e-9));
    this.text(`time [${unit}]`, 4, AXIS / 2, gutter - 8, ink.dim);
    for (const at of this.ticks(tick)) {
      const x = this.x(at);
      this.box(x, AXIS - 5, 1, 5, ink.dim);
      const label = ((at - this.zero) / size).toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
      if (x + 4 + this.widthOf(label) < width) this.text(label, x + 4, AXIS / 2, TICK, ink.text); // no number is cut
    }
    this.text(this.steps.size ? "steps" : this.gutter < 150 ? "no steps" : "no steps marked", 4, AXIS + STEPS / 2, gutter - 8, ink.dim);
    let drawn = 0;
    for (const [step, [start, end]] of this.steps) {
      const left = Math.max(this.x(start), gutter), wide = Math.min(this.x(end), width) - left;
      if (wide <= 0 || left + wide < drawn + 0.5) continue; // many are in one pixel
      drawn = left + wide;
      this.box(left, AXIS + 2, Math.max(1, wide - 1), STEPS - 4, this.colours.MARKERS);
      if (wide < 10) continue;
      const name = this.widthOf(`step ${step}`) < wide - 6 ? `step ${step}` : `${step}`;
      if (this.widthOf(name) < wide - 4) this.text(name, left + 3, AXIS + STEPS / 2, wide, inkOn(this.colours.MARKERS));
    }
    if (this.findings !== undefined) this.text(this.findings ? `findings${this.findings.length || this.gutter < 150 ? "" : ": none with a place"}` : "findings …", 4, head - 7, gutter - 8, ink.dim);
    for (const { start, end } of this.findings ?? []) {
      const x = this.x((start + end) / 2);
      if (x >= gutter && x <= width) this.text("▼", x - 6, head - 7, 20, ink.mark);
    }
    this.box(0, head - 1, width, 1, ink.dim);
    this.box(gutter - 1, 0, 1, this.height, ink.line);
  }

  // Findings at their places: a frame around their rank or host, or around all rows.
  drawPlaces(shown) {
    const { pen, ink } = this;
    pen.strokeStyle = ink.mark;
    for (const { start, end, rank, host } of this.findings ?? []) {
      const left = Math.max(this.x(start), this.gutter), right = Math.min(this.x(end), this.width);
      if (right < this.gutter || left > this.width) continue;
      const rows = rank === undefined ? null : shown.filter((line) => (host ? (line.host ?? this.rankOf.get(line.rank)?.host) === host : line.kind === "rank" ? line.rank === rank : line.folded?.includes(rank)));
      if (rows?.length === 0) continue;
      pen.lineWidth = 2;
      const [top, tall] = rows ? [rows[0].y, rows.at(-1).y + rows.at(-1).height - rows[0].y] : [0, this.high];
      pen.strokeRect(left, top + 1, Math.max(2, right - left), tall - 2);
    }
  }

  drawPart() {
    const part = this.drag?.part ?? this.part;
    if (!part) return;
    const { pen, ink } = this, left = clamp(this.x(part.start), this.gutter, this.width), right = clamp(this.x(part.end), this.gutter, this.width);
    pen.globalAlpha = 0.55;
    this.box(this.gutter, AXIS, left - this.gutter, this.height, ink.page);
    this.box(right, AXIS, this.width - right, this.height, ink.page);
    pen.globalAlpha = 1;
    pen.strokeStyle = ink.text;
    pen.lineWidth = 1;
    pen.strokeRect(left + 0.5, AXIS + 0.5, Math.max(1, right - left - 1), this.height - AXIS - 1);
    this.text(duration(part.end - part.start), left + 4, this.height - 9, right - left, ink.text);
  }

  // --- pointer and keys ----------------------------------------------------------------------------------------------

  listen() {
    const { canvas, scroller } = this;
    canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    canvas.addEventListener("pointerdown", (event) => this.press(event));
    canvas.addEventListener("pointermove", (event) => this.hover(event));
    canvas.addEventListener("pointerleave", () => { this.at = null; this.tip.hidden = true; });
    canvas.addEventListener("keydown", (event) => this.key(event));
    for (const name of ["focus", "blur"]) canvas.addEventListener(name, () => this.paint());
    scroller.addEventListener("scroll", () => { this.paint(); this.look(); });
    window.addEventListener("resize", () => { this.lay(); this.look(); });
    window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.paint());
    new MutationObserver(() => this.paint()).observe(document.documentElement, { attributeFilter: ["data-theme"] });
  }

  place(event) {
    const box = this.canvas.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
    const inRows = y - this.head + this.scroller.scrollTop;
    return { x, y, line: y < this.head ? null : this.lines.find((line) => inRows >= line.y && inRows < line.y + line.height), inRows };
  }

  wheel(event) {
    const { x } = this.place(event);
    if (x < this.gutter) return; // over the labels it scrolls
    event.preventDefault();
    const sideways = event.shiftKey ? event.deltaY || event.deltaX : event.deltaX;
    if (sideways && (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY))) this.pan(sideways / this.wide);
    else this.zoom(2 ** clamp(event.deltaY / 200, -1.5, 1.5), this.ns(x));
  }

  zoom(factor, around = this.at ? this.ns(this.at.x) : (this.from + this.to) / 2) {
    const span = clamp((this.to - this.from) * factor, LEAST_SPAN, (this.whole[1] - this.whole[0]) * (1.01 + 2 * this.slack));
    const share = (around - this.from) / (this.to - this.from);
    this.move(around - share * span, around + (1 - share) * span);
  }

  pan(share) {
    const by = share * (this.to - this.from);
    this.move(this.from + by, this.to + by);
  }

  // Shows a time, as far as the job goes.
  move(from, to) {
    const [low, high] = this.whole, margin = (high - low) * this.slack, span = Math.min(to - from, high - low + 2 * margin);
    const start = clamp(from, low - margin, Math.max(low - margin, high + margin - span));
    [this.from, this.to] = [start, start + span];
    this.paint();
    this.look();
    this.moved();
  }

  // Shows a time with some time around it, and a rank, whose host is unfolded.
  show(start, end, rank, margin = 0.5) {
    const around = Math.max((end - start) * margin, 1000);
    if (rank !== undefined) {
      this.folded.delete(this.rankOf.get(rank)?.host);
      this.lay();
      this.reveal(this.lines.find((line) => line.kind === "rank" && line.rank === rank));
    }
    this.move(start - around, end + around);
  }

  reveal(line) {
    if (!line) return;
    const { scroller } = this, room = scroller.clientHeight - this.head;
    if (line.y < scroller.scrollTop) scroller.scrollTop = line.y;
    else if (line.y + line.height > scroller.scrollTop + room) scroller.scrollTop = line.y + line.height - room;
  }

  press(event) {
    if (event.button || !this.ranks.length) return;
    const from = this.place(event);
    if (from.line) this.current = this.lines.indexOf(from.line);
    if (from.x < this.gutter) {
      if (from.line) this.toggle(from.line);
      return;
    }
    const { canvas } = this;
    canvas.setPointerCapture(event.pointerId);
    this.drag = { from: this.ns(from.x), x: from.x, part: null };
    const move = (next) => {
      const { x } = this.place(next), to = this.ns(clamp(x, this.gutter, this.width));
      if (Math.abs(x - this.drag.x) < 4 && !this.drag.part) return;
      const [low, high] = [Math.min(this.drag.from, to), Math.max(this.drag.from, to)];
      this.drag.part = { start: Math.max(0, Math.round(low)), end: Math.max(1, Math.round(high)) };
      this.paint();
    };
    const stop = (next) => {
      canvas.removeEventListener("pointermove", move);
      const { part } = this.drag;
      this.drag = null;
      if (next.type === "pointerup" && part && part.end > part.start) this.calls.taken(part);
      else if (next.type === "pointerup") this.click(from);
      this.paint();
    };
    canvas.addEventListener("pointermove", move);
    for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, (next) => this.drag && stop(next), { once: true });
  }

  click({ x, y, line, inRows }) {
    if (y < this.head) {
      const finding = this.findings?.find(({ start, end }) => Math.abs(this.x((start + end) / 2) - x) < 8);
      const step = [...this.steps.values()].find(([start, end]) => this.ns(x) >= start && this.ns(x) < end);
      if (y > AXIS + STEPS && finding) this.show(finding.start, finding.end, finding.rank);
      else if (y > AXIS && step) this.show(...step, undefined, 0.1);
      return;
    }
    const slice = line && this.sliceAt(line, x, inRows);
    if (slice) this.choose({ rank: line.rank, row: line.index, id: slice.id });
    else if (line?.kind === "rank" || line?.kind === "host") this.toggle(line);
  }

  sliceAt(line, x, inRows) {
    const { row } = line;
    if (!row?.start) return null;
    const depth = Math.floor((inRows - line.y - 2) / LINE);
    let best = null;
    for (let at = 0; at < row.start.length; at++) {
      const left = this.x(row.start[at]), right = Math.max(this.x(row.end[at]), left + 1);
      if (row.depths[at] === depth && x >= left - 1.5 && x <= right + 1.5 && (!best || Math.abs(left + right - 2 * x) < best.off)) {
        best = { at, id: row.id[at], off: Math.abs(left + right - 2 * x) };
      }
    }
    return best;
  }

  async choose(place, isShown = false) {
    try {
      const slice = await this.calls.ask(`slice?${new URLSearchParams(place)}`);
      this.pick = { ...place, start: slice.start, end: slice.end };
      if (isShown) this.show(slice.start, slice.end, place.rank, 4);
      this.calls.picked({ ...slice, ...place });
      this.moved();
      this.paint();
    } catch (error) {
      this.calls.failed(error);
    }
  }

  hover(event) {
    this.at = this.place(event);
    const lines = this.drag || !this.ranks.length ? [] : this.words(this.at);
    this.tip.hidden = !lines.length;
    if (!lines.length) return;
    this.tip.replaceChildren(...lines.map((text) => Object.assign(document.createElement("div"), { textContent: text })));
    const wide = this.tip.offsetWidth, left = this.at.x + 14 + wide > this.width ? this.at.x - wide - 10 : this.at.x + 14;
    Object.assign(this.tip.style, { left: `${Math.max(0, left)}px`, top: `${this.at.y + 18}px` });
  }

  // The text for a place, in a few lines.
  words({ x, y, line, inRows }) {
    const now = this.ns(x), when = `at ${duration(Math.max(0, now))}`;
    if (x < this.gutter) return line?.kind === "rank" ? [this.rankOf.get(line.rank).label, this.rankOf.get(line.rank).about.split("\n")[0]] : line?.row ? [line.row.title] : [];
    const step = [...this.steps].find(([, [start, end]]) => now >= start && now < end);
    const inStep = step ? `step ${step[0]}` : "outside of steps";
    if (y < this.head) {
      const finding = y > AXIS + STEPS && this.findings?.find(({ start, end }) => Math.abs(this.x((start + end) / 2) - x) < 8);
      return finding ? [finding.text] : step && y > AXIS ? [`${inStep} · ${duration(step[1][1] - step[1][0])}`] : [];
    }
    if (line?.kind === "rank") return [`${this.label(line.rank)} · ${inStep} · ${when}`, this.sharesAt(line.rank, now)];
    if (line?.row?.unit !== undefined) {
      const tile = this.rows.get(line.rank), value = line.row.value[Math.floor(((now - tile.start) / (tile.end - tile.start)) * line.row.value.length)];
      return [line.row.title, `${value === null || value === undefined ? "no value" : quantity(value, line.row.unit)} · ${when}`];
    }
    const slice = line && this.sliceAt(line, x, inRows);
    if (!slice) return [];
    const { row } = line, { names } = this.rows.get(line.rank), others = row.count[slice.at] - 1;
    const length = duration(row.end[slice.at] - row.start[slice.at]);
    return [names[row.name[slice.at]], others ? `and ${others} more within ${length} · ${inStep}` : `${length} · ${inStep} · ${when}`];
  }

  sharesAt(rank, now) {
    const states = this.states.get(rank), tile = states && [states.fine, states.base].find((each) => each && now >= each.first && now < each.last);
    if (!tile) return states ? "idle 100 %" : "reading …";
    const at = Math.floor(((now - tile.first) / (tile.last - tile.first)) * tile.pixels);
    const shares = this.names.map((name, state) => [name, Math.round(tile.shares[state * tile.pixels + at] / 2.55)]);
    const idle = Math.max(0, 100 - sum(shares.map(([, share]) => share)));
    return [...shares, ["idle", idle]].filter(([, share]) => share).map(([name, share]) => `${name} ${share} %`).join(", ");
  }

  key(event) {
    const { key, shiftKey } = event, line = this.lines[this.current];
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const step = (this.to - this.from) / 50, part = this.part ?? { start: Math.round((this.from + this.to) / 2), end: Math.round((this.from + this.to) / 2) };
    const extended = (by) => this.mark({ start: part.start, end: Math.round(clamp(part.end + by, part.start + 1, this.whole[1])) });
    const actions = {
      ArrowLeft: () => (shiftKey ? extended(-step) : this.pan(-0.1)),
      ArrowRight: () => (shiftKey ? extended(step) : this.pan(0.1)),
      a: () => this.pan(-0.1),
      d: () => this.pan(0.1),
      "+": () => this.zoom(0.7),
      "=": () => this.zoom(0.7),
      w: () => this.zoom(0.7),
      "-": () => this.zoom(1 / 0.7),
      s: () => this.zoom(1 / 0.7),
      Home: () => this.move(...this.whole),
      ArrowUp: () => this.step(-1),
      ArrowDown: () => this.step(1),
      " ": () => line && this.toggle(line),
      Enter: () => (this.marked ? this.calls.taken(this.part) : line && this.toggle(line)),
      Escape: () => this.calls.taken(null),
    };
    if (!actions[key]) return;
    event.preventDefault();
    actions[key]();
  }

  step(by) {
    this.current = clamp(this.current + by, 0, this.lines.length - 1);
    const line = this.lines[this.current];
    this.reveal(line);
    this.say(line.kind === "rank" ? `rank ${line.rank}` : line.host ?? line.row?.title ?? "");
    this.paint();
  }

  // Shows a part that is not selected yet.
  mark(part) {
    [this.part, this.marked] = [part, true];
    this.paint();
  }

  setPart(part) {
    [this.part, this.marked] = [part, false];
    this.paint();
  }

  setFindings(findings) {
    this.findings = findings;
    this.odd = new Set(findings.map(({ host, rank }) => host ?? rank));
    this.paint();
  }

  // --- the address ---------------------------------------------------------------------------------------------------

  moved() {
    clearTimeout(this.moving);
    this.moving = setTimeout(() => this.calls.moved(), 150);
    this.look();
  }

  address() {
    const { pick } = this, isWhole = this.from <= this.whole[0] && this.to >= this.whole[1];
    return {
      at: isWhole ? "" : `${Math.round(Math.max(0, this.from))}-${Math.round(this.to)}`,
      ...this.rowsOfAddress(),
      pick: pick ? `${pick.rank}.${pick.row}.${pick.id}` : "",
    };
  }

  rowsOfAddress() {
    return { open: [...this.open].join(","), fold: [...this.folded].join(",") || (this.isMany ? NONE : "") };
  }

  restore(given) {
    const [from, to] = numbers(given("at"), "-"), [rank, row, id] = numbers(given("pick"), ".");
    if (to > from) [this.from, this.to] = [from, to];
    this.restoreRows(given);
    if (id !== undefined) this.choose({ rank, row, id });
  }

  restoreRows(given) {
    this.isRestored = ["open", "fold", "pick"].some((key) => given(key) !== null);
    for (const number of numbers(given("open"), ",").slice(0, MOST_OPEN)) this.open.add(number);
    for (const host of (given("fold") ?? "").split(",").filter((host) => host && host !== NONE)) this.folded.add(host);
  }
}

const numbers = (text, by) => (text ?? "").split(by).filter((word) => /^\d+$/.test(word)).map(Number);

const nameOf = ({ kind, rank, start, end, pixels }) => [kind, rank, start, end, pixels].join();

// Whether a tile holds a time in pixels that are fine enough.
function fits(tile, low, high, view) {
  if (!tile) return false;
  const own = ((tile.last ?? tile.end) - (tile.first ?? tile.start)) / tile.pixels, needed = (view.to - view.from) / view.wide;
  const [from, to] = [Math.max(view.from, view.whole[0]), Math.min(view.to, view.whole[1])];
  const isThere = tile.start <= from && tile.end >= to;
  return isThere && own <= needed * 1.05 && (own >= needed / 4 || (tile.start <= low && tile.end >= high));
}

function quantity(value, unit) {
  const sizes = unit === "bytes" ? [["GB", 1e9], ["MB", 1e6], ["kB", 1e3], ["bytes", 1]] : [["G", 1e9], ["M", 1e6], ["k", 1e3], ["", 1]];
  const [prefix, size] = sizes.find(([, least]) => Math.abs(value) >= least) ?? sizes.at(-1);
  return `${Number((value / size).toPrecision(4))} ${prefix}${unit === "bytes" ? "" : prefix ? ` ${unit}` : unit}`.trim();
}
