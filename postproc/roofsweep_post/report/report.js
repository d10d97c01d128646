"use strict";
// The report's page: unpacks data and Plotly, draws, filters, and shows rows. Every text of a file is set as text, never
// as HTML; where Plotly wants a text it is escaped first.

const COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000"];
const SYMBOLS = ["circle", "square", "diamond", "triangle-up", "triangle-down", "cross", "x", "star", "pentagon"];
const MOST_SERIES = 24;  // values of a colour's axis; the rest share one
const FAST_FROM = 3000;  // points from which WebGL draws
const MOST_ROWS = 50;    // of the table of rows
const SHORT = 26;        // letters of a cell that is not broken
const AXES = { type: "log", exponentformat: "SI", gridcolor: "#ddd", zeroline: false };

const element = (id) => document.getElementById(id);

// Plotly takes some HTML in its texts.
function escaped(text) {
  return text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
}

async function unpacked(id) {
  const binary = atob(element(id).textContent);
  const bytes = Uint8Array.from(binary, (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  element(id).remove();
  return new Response(stream).text();
}

function buffer(text) {
  return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)).buffer;
}

// A column as it travels, as something with at(row).
function column(packed) {
  if (packed.floats !== undefined) {
    const values = new Float32Array(buffer(packed.floats));
    return { values, at: (row) => values[row] };
  }
  if (packed.integers !== undefined) {
    const values = new Uint32Array(buffer(packed.integers));
    return { values, at: (row) => values[row] };
  }
  const places = new Uint32Array(buffer(packed.places));
  return { words: packed.words, places, at: (row) => packed.words[places[row]] };
}

function columns(group) {
  return Object.fromEntries(Object.entries(group).map(([name, packed]) => [name, column(packed)]));
}

function scaled(value, unit) {
  if (!Number.isFinite(value)) return "-";
  if (unit === "%") return (100 * value).toFixed(1) + " %";
  if (value === 0 || unit === "") return String(+value.toPrecision(4));
  const power = Math.max(-4, Math.min(5, Math.floor(Math.log10(Math.abs(value)) / 3)));
  return +(value / 10 ** (3 * power)).toPrecision(4) + " " + "pnum kMGTP"[power + 4].trim() + unit;
}

function table(parent, head, lines, onClick) {
  const made = document.createElement("table");
  const line = (row, name, cells) => {
    for (const text of cells) {
      const cell = row.appendChild(document.createElement(name));
      cell.textContent = text;
      if (text.length <= SHORT) cell.className = "short";
    }
    return row;
  };
  line(made.createTHead().insertRow(), "th", head);
  const body = made.createTBody();
  lines.forEach((cells, place) => {
    const row = line(body.insertRow(), "td", cells);
    if (onClick) row.addEventListener("click", () => onClick(place));
  });
  const box = document.createElement("div");
  box.className = "scroll";
  box.appendChild(made);
  parent.replaceChildren(box);
}

class Report {
  constructor(content) {
    this.content = content;
    this.texts = columns(content.texts);
    this.figures = columns(content.figures);
    this.axes = columns(content.axes);
    this.labels = column(content.labels);
    this.kernels = {
      row: column(content.kernels.row).values,
      name: column(content.kernels.name),
      columns: content.kernels.columns.map((one) => ({ ...one, ...column(one) })),
    };
    this.wanted = {};  // {axis: set of words}
    this.shown = [];
  }

  // The figures: x, y, and what else is drawn. Each is at the row's own memory level.
  kinds() {
    const f = this.figures;
    return {
      "complexity and time": { x: f.bandwidth_floor, y: f.compute_floor, x2: f.bandwidth_plane, y2: f.compute_plane,
        titles: ["bandwidth time (s), closed: bytes / roof", "compute time (s), closed: FLOPs / roof"], square: true },
      "Roofline": { x: f.intensity, y: f.performance, roofs: true,
        titles: ["arithmetic intensity (FLOP/byte)", "performance (FLOP/s)"] },
      "complexity": { x: f.bytes_at, y: f.flops, titles: ["bytes", "FLOPs"] },
      "time and fraction of the roof": { x: f.time_median, y: f.roof_fraction, titles: ["time (s)", "fraction of the roof"] },
      "time and noise": { x: f.time_median, y: f.noise, titles: ["time (s)", "half the 95 % interval over the median"] },
      "time and the host's time": { x: f.time_median, y: f.host_time, titles: ["time (s)", "host time (s)"], square: true },
    };
  }

  start() {
    element("title").textContent = this.content.title;
    for (const text of this.content.heads) {
      element("heads").appendChild(document.createElement("div")).textContent = text;
    }
    element("manifest").textContent = this.content.manifests.map((text, place) =>
      `${this.content.heads[place]}\n${this.content.settings[place]}\n\n${text}`).join("\n\n");
    for (const name of ["failures", "roofs", "devices"]) {
      table(element(name), this.content[name].head, this.content[name].rows);
    }
    if (!this.content.failures.rows.length) {
      element("failures").textContent = "Every configuration was measured.";
    }
    element("hover").textContent = "Point at a symbol to see its row; a click shows its kernels.";
    this.makeFilters();
    this.makeSelect("figure", Object.keys(this.kinds()), () => this.draw());
    const names = Object.keys(this.axes);
    this.makeSelect("colour", names, () => this.draw());
    element("colour").value = names.includes("precision") ? "precision" : names[0] || "";
    this.orders = {
      "the slowest": [this.figures.time_median, -1],
      "the furthest from their roof": [this.figures.roof_fraction, 1],
      "the noisiest": [this.figures.noise, -1],
    };
    this.makeSelect("order", Object.keys(this.orders), () => this.list());
    element("reset").addEventListener("click", () => this.reset());
    document.querySelector("main").hidden = false;
    element("state").hidden = true;
    this.filter();
  }

  makeSelect(id, names, onChange) {
    for (const name of names) element(id).appendChild(document.createElement("option")).textContent = name;
    element(id).addEventListener("change", onChange);
  }

  // A list for each axis; nothing chosen is everything.
  makeFilters() {
    const add = (name, words) => {
      const label = document.createElement("label");
      label.textContent = name;
      const select = document.createElement("select");
      select.multiple = true;
      select.size = Math.min(4, words.length);
      select.dataset.axis = name;
      for (const word of words) {
        const option = select.appendChild(document.createElement("option"));
        option.value = word;
        option.textContent = word === "" ? "(none)" : word;
      }
      select.addEventListener("change", () => {
        this.wanted[name] = new Set([...select.selectedOptions].map((option) => option.value));
        this.filter();
      });
      label.appendChild(select);
      element("filters").appendChild(label);
    };
    const byNumber = (a, b) => (parseFloat(a) - parseFloat(b)) || (a < b ? -1 : 1);
    const all = new Set(this.labels.words.flatMap((text) => text.split(" ")));
    if (all.size > 1) add("label", [...all].sort());
    for (const [name, own] of Object.entries(this.axes)) add(name, [...own.words].sort(byNumber));
  }

  reset() {
    this.wanted = {};
    for (const select of document.querySelectorAll("#filters select")) select.selectedIndex = -1;
    this.filter();
  }

  filter() {
    const tests = [];
    for (const [name, words] of Object.entries(this.wanted)) {
      if (words.size === 0) continue;
      const own = name === "label" && !this.axes.label ? this.labels : this.axes[name];
      const passes = own.words.map(own === this.labels
        ? (text) => text.split(" ").some((word) => words.has(word)) : (text) => words.has(text));
      tests.push((row) => passes[own.places[row]]);
    }
    this.shown = [];
    for (let row = 0; row < this.content.count; row++) {
      if (tests.every((test) => test(row))) this.shown.push(row);
    }
    element("count").textContent = `${this.shown.length} of ${this.content.count} rows`;
    this.draw();
    this.list();
  }

  // {name: rows} by the axis that colours.
  series() {
    const own = this.axes[element("colour").value];
    if (!own) return new Map([["rows", this.shown]]);
    const found = new Map();
    for (const row of this.shown) {
      const name = own.at(row) || "(none)";
      const key = found.has(name) || found.size < MOST_SERIES ? name : "others";
      if (!found.has(key)) found.set(key, []);
      found.get(key).push(row);
    }
    return new Map([...found].sort((a, b) => (parseFloat(a[0]) - parseFloat(b[0])) || (a[0] < b[0] ? -1 : 1)));
  }

  draw() {
    const kind = this.kinds()[element("figure").value];
    const type = this.shown.length > FAST_FROM ? "scattergl" : "scatter";
    const traces = [];
    let number = 0;
    const trace = (rows, x, y, open, name, place) => ({
      type, mode: "markers", name: escaped(name) + (open ? ", measured" : ""), customdata: rows, hoverinfo: "none",
      x: rows.map((row) => x.at(row)), y: rows.map((row) => y.at(row)),
      marker: { color: this.content.colours[name] || COLOURS[place % COLOURS.length], size: type === "scatter" ? 8 : 5,
        symbol: SYMBOLS[place % SYMBOLS.length] + (open ? "-open" : "") },
    });
    for (const [name, rows] of this.series()) {
      traces.push(trace(rows, kind.x, kind.y, false, name, number));
      if (kind.x2) traces.push(trace(rows, kind.x2, kind.y2, true, name, number));
      number += 1;
    }
    const points = traces.length;
    if (kind.roofs) traces.push(...this.roofLines(traces));
    if (kind.square) traces.push(this.diagonal(traces));
    const layout = {
      xaxis: { ...AXES, title: kind.titles[0] }, yaxis: { ...AXES, title: kind.titles[1] }, hovermode: "closest",
      margin: { t: 34, r: 10, b: 45, l: 65 }, legend: { font: { size: 11 } }, paper_bgcolor: "#fff",
    };
    const plot = element("plot");
    Plotly.react(plot, traces, layout, { responsive: true, displaylogo: false, showSendToCloud: false });
    this.points = points;
    if (!this.listening) {
      this.listening = true;
      const row = (event) => event.points[0].customdata;
      plot.on("plotly_hover", (event) => { if (row(event) !== undefined) element("hover").textContent = this.facts(row(event)); });
      plot.on("plotly_click", (event) => { if (row(event) !== undefined) this.show(row(event)); });
    }
  }

  span(traces, name) {
    let low = Infinity, high = 0;
    for (const one of traces) {
      for (const value of one[name]) {
        if (value > 0 && value < low) low = value;
        if (value > high && value < Infinity) high = value;
      }
    }
    return low < high ? [low / 2, high * 2] : [1e-6, 1];
  }

  roofLines(traces) {
    const [low, high] = this.span(traces, "x");
    const models = new Set(this.shown.map((row) => this.texts.model.at(row)));
    const found = [];
    for (const [model, lines] of Object.entries(this.content.lines)) {
      if (!models.has(model)) continue;
      const top = Math.max(...lines.filter((line) => line[0] !== "bandwidth").map((line) => line[2]));
      for (const [kind, name, value] of lines) {
        const end = kind === "bandwidth" && top > 0 ? Math.min(high, top / value) : high;
        const x = [Math.min(low, end), end];
        const text = `${name} ${scaled(value, kind === "bandwidth" ? "B/s" : "FLOP/s")}`;
        found.push({ type: "scatter", mode: "lines", x, y: x.map((at) => kind === "bandwidth" ? at * value : value),
          line: { color: "#444", width: 1 }, name: escaped(models.size > 1 ? `${model} ${text}` : text), hoverinfo: "name" });
      }
    }
    return found;
  }

  diagonal(traces) {
    const [low, high] = this.span(traces, "x");
    return { type: "scatter", mode: "lines", x: [low, high], y: [low, high], hoverinfo: "skip",
      line: { color: "#444", width: 1, dash: "dash" }, name: "machine balance: equal times" };
  }

  // What is known of a row, as lines of text.
  facts(row) {
    const t = (name) => this.texts[name].at(row), f = (name, unit) => scaled(this.figures[name].at(row), unit);
    const lines = [
      `${t("text")}  [${t("label")}]  on ${t("device_name")}, ${t("model")}`,
      `time ${f("time_median", "s")} +- ${f("noise", "%")} ${t("marks")}, ${f("performance", "FLOP/s")}, ` +
        `${f("roof_fraction", "%")} of its roof at ${t("roof_memory_level")}, AI ${f("intensity", "")} FLOP/byte, ` +
        `${f("launches", "")} launches, idle ${f("gap", "s")}, host ${f("host_time", "s")}`,
      `algorithm ${t("algorithm")}`,
      `limiter ${t("limited_by")}${t("evidence") ? ": " + t("evidence") : ""}`,
      t("count_note") ? `counts: ${t("count_note")}` : "",
      t("advice"),
      t("error") ? `${t("status")}: ${t("error")}` : "",
    ];
    return lines.filter((line) => line).join("\n");
  }

  list() {
    const [own, direction] = this.orders[element("order").value];
    const rows = this.shown.filter((row) => Number.isFinite(own.at(row)));
    rows.sort((a, b) => direction * (own.at(a) - own.at(b)));
    const first = rows.slice(0, MOST_ROWS);
    const t = (name, row) => this.texts[name].at(row), f = (name, row, unit) => scaled(this.figures[name].at(row), unit);
    const lines = first.map((row) => [
      t("text", row), t("device_name", row), f("time_median", row, "s"), f("noise", row, "%"),
      f("performance", row, "FLOP/s"), f("roof_fraction", row, "%"), t("limited_by", row), t("marks", row), t("advice", row),
    ]);
    const head = ["configuration", "device", "time", "+-", "performance", "of roof", "limiter", "samples", "advice"];
    table(element("rows"), head, lines, (place) => this.show(first[place]));
  }

  show(row) {
    element("row").hidden = false;
    element("facts").textContent = this.facts(row);
    const places = this.kernels.row;
    let low = 0, high = places.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (places[middle] < row) low = middle + 1; else high = middle;
    }
    const lines = [];
    for (let at = low; at < places.length && places[at] === row; at++) {
      lines.push([this.kernels.name.at(at), ...this.kernels.columns.map((one) => scaled(one.at(at), one.unit))]);
    }
    table(element("kernels"), ["kernel", ...this.kernels.columns.map((one) => one.head)], lines);
    element("row").scrollIntoView({ block: "nearest" });
  }
}

async function main() {
  if (typeof DecompressionStream === "undefined") throw new Error("this browser cannot unpack gzip: use one of 2023 or later");
  const content = JSON.parse(await unpacked("data"));
  const script = document.createElement("script");
  script.textContent = await unpacked("plotly");
  document.head.appendChild(script);
  window.report = new Report(content);
  window.report.start();
}

main().catch((error) => { element("state").textContent = `The report cannot be shown: ${error.message}`; throw error; });
