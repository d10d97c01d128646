"use strict";
// The report's page: unpacks data and Plotly, draws figures, filters and lists rows. A text of a file is never set as
// HTML; texts for Plotly are escaped.

const COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000"];
const SYMBOLS = ["circle", "square", "diamond", "triangle-up", "triangle-down", "cross", "x", "star", "pentagon"];
const MOST_SERIES = 24;  // values with their own colour; further values share one
const FAST_FROM = 3000;  // number of points from which WebGL draws
const MOST_ROWS = 100;   // lines of a page of the table of rows
const SHORT = 26;        // characters of a cell that does not wrap
const DARK = matchMedia("(prefers-color-scheme: dark)").matches;
const GRID = DARK ? "#3a3d44" : "#ddd", PAPER = DARK ? "#16181c" : "#fff", INK = DARK ? "#e8e8e8" : "#222", LINE = DARK ? "#bbb" : "#444";
const AXES = { type: "log", tickformat: ".3~s", gridcolor: GRID, zeroline: false };  // 20µ, whatever the zoom
const SHARE = ".3~%";  // tick format of fractions
const DASHES = ["solid", "dash", "dot", "dashdot"];  // for the roofs of memory levels

const element = (id) => document.getElementById(id);

// Plotly interprets some HTML in its texts.
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

// Unpacks a column into an object with at(row).
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

// Returns a head and texts of a column in one unit: that of the median.
function unified(head, values, unit) {
  const known = values.filter((value) => Number.isFinite(value) && value > 0).sort((a, b) => a - b);
  if (unit === undefined || unit === "%" || unit === "" || !known.length) {
    return [head, values.map((value) => unit === undefined ? value : scaled(value, unit))];
  }
  const power = Math.max(-4, Math.min(5, Math.floor(Math.log10(known[known.length >> 1]) / 3)));
  const shown = (value) => Number.isFinite(value) ? String(+(value / 10 ** (3 * power)).toPrecision(4)) : "-";
  return [`${head} (${"pnum kMGTP"[power + 4].trim()}${unit})`, values.map(shown)];
}

// Returns the sort key of a cell: its number in SI units if it begins with one, else its text.
function sortKey(text) {
  const found = /^([+-]?[\d.]+) ?([pnumkMGTP]?)(?:%|B|FLOP|OP|s|W|$)/.exec(text);
  return found ? parseFloat(found[1]) * 1000 ** ("pnum kMGTP".indexOf(found[2] || " ") - 4) : text.replace(/^-$/, "");
}

function compared(a, b) {
  if (typeof a === typeof b) return a < b ? -1 : a > b ? 1 : 0;
  return typeof a === "number" ? -1 : 1;  // missing values come last
}

// onSort(column): sorts a table of which `lines` is only a part. Without onSort a head sorts `lines`. order: [column, 1
// (up) or -1] of a sorted table. Heads with a meaning in `terms` have it as a tooltip.
function table(parent, head, lines, { onClick, onSort, order, terms = {} } = {}) {
  const made = document.createElement("table");
  const line = (row, name, cells) => {
    for (const text of cells) {
      const cell = row.appendChild(document.createElement(name));
      (name === "th" ? cell.appendChild(document.createElement("button")) : cell).textContent = text;
      if (name === "th") cell.title = terms[text.split(" (")[0]] || "";
      if (text.length <= SHORT) cell.className = "short";
    }
    return row;
  };
  const heads = line(made.createTHead().insertRow(), "th", head);
  const body = made.createTBody();
  const rows = lines.map((cells, place) => {
    const row = line(body.insertRow(), "td", cells);
    if (onClick) {
      row.tabIndex = 0;
      row.addEventListener("click", () => onClick(place));
      row.addEventListener("keydown", (event) => { if (event.key === "Enter") onClick(place); });
    }
    return row;
  });
  let last = -1, up = 1;
  const mark = (place, direction) => [...heads.cells].forEach((cell, at) => {
    cell.setAttribute("aria-sort", at !== place ? "none" : direction > 0 ? "ascending" : "descending");
    cell.firstChild.textContent = head[at] + (at !== place ? "" : direction > 0 ? " ▲" : " ▼");
  });
  if (order) mark(...order);
  const sort = (place) => {
    up = place === last ? -up : 1;
    last = place;
    mark(place, up);
    const keys = new Map(rows.map((row) => [row, sortKey(row.cells[place].textContent)]));
    body.append(...rows.sort((a, b) => up * compared(keys.get(a), keys.get(b))));
  };
  [...heads.cells].forEach((cell, place) => cell.addEventListener("click", () => (onSort || sort)(place)));
  const box = document.createElement("div");
  box.className = "scroll";
  box.tabIndex = 0;
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

  // Returns {figure: axes and options}, each at the row's own memory level. null: the figure of roofs.
  kinds() {
    const f = this.figures, rows = {
      "complexity and time": { x: f.bandwidth_floor, y: f.compute_floor, x2: f.bandwidth_plane, y2: f.compute_plane,
        titles: ["bandwidth time (s), closed: bytes / roof", "compute time (s), closed: FLOPs / roof"], square: true },
      "Roofline": { x: f.intensity, y: f.performance, roofs: true,
        titles: ["arithmetic intensity (FLOP/byte)", "performance (FLOP/s)"] },
      "complexity": { x: f.bytes_at, y: f.flops, titles: ["bytes", "FLOPs"] },
      "time and fraction of the roof": { x: f.time_median, y: f.roof_fraction, titles: ["time (s)", "share of the roof"], share: true },
      "time and noise": { x: f.time_median, y: f.noise, titles: ["time (s)", "half the 95 % interval over the median"],
        share: true },
      "time and a caller's time": { x: f.time_median, y: f.caller_time, titles: ["time (s)", "caller's time (s)"], square: true },
    };
    return { ...(this.content.count ? rows : {}), ...(this.content.points.length ? { "roofs against theory": null } : {}) };
  }

  start() {
    element("title").textContent = this.content.title;
    for (const text of this.content.heads) {
      element("heads").appendChild(document.createElement("div")).textContent = text;
    }
    element("manifest").textContent = this.content.manifests.map((text, place) =>
      `${this.content.heads[place]}\n${this.content.settings[place]}\n\n${text}`).join("\n\n");
    for (const name of ["failures", "roofs", "devices"]) {
      table(element(name), this.content[name].head, this.content[name].rows, { terms: this.content.terms });
    }
    this.summarize();
    if (!this.content.failures.rows.length) {
      element("failures").textContent = "Every configuration was measured.";
    }
    element("hover").textContent = this.content.count ? "Point at a symbol to see its row; a click shows its kernels."
      : "Point at a symbol to see its roof.";
    for (const part of document.querySelectorAll(".of-rows")) part.hidden = !this.content.count;
    element("figures").hidden = !Object.keys(this.kinds()).length;
    this.makeFilters();
    this.makeSelect("figure", Object.keys(this.kinds()), () => this.draw());
    const names = Object.keys(this.axes);
    this.makeSelect("colour", names, () => this.draw());
    element("colour").value = names.includes("precision") ? "precision" : names[0] || "";
    this.order = [2, -1];  // by time, the slowest first
    this.page = 0;
    for (const [id, step] of [["before", -1], ["after", 1]]) {
      element(id).addEventListener("click", () => { this.page += step; this.list(); });
    }
    element("search").addEventListener("input", () => this.filter());
    element("reset").addEventListener("click", () => this.reset());
    element("csv").addEventListener("click", () => this.save());
    this.restore();
    document.querySelector("main").hidden = false;
    element("state").hidden = true;
    this.filter();
  }

  // Fills the top of the page: counts, a bar of limiters, verdicts of devices, and the terms at its end.
  summarize() {
    const { text, limiters, devices } = this.content.summary, total = limiters.reduce((sum, one) => sum + one[1], 0);
    element("text").textContent = text;
    const words = limiters.map(([word, count]) => `${word || "unknown"} ${(100 * count / total).toFixed(0)} %`);
    limiters.forEach(([, count], place) => {
      const part = element("limiters").appendChild(document.createElement("span"));
      part.style.flexGrow = count;
      part.style.background = COLOURS[place % COLOURS.length];
      part.title = words[place];
    });
    element("limiters").setAttribute("aria-label", `limited by: ${words.join(", ")}`);
    words.forEach((word, place) => {
      const mark = element("limiter-words").appendChild(document.createElement("span"));
      mark.textContent = "\u25a0 ";
      mark.style.color = COLOURS[place % COLOURS.length];
      mark.setAttribute("aria-hidden", "true");
      element("limiter-words").append(place === words.length - 1 ? word : `${word}, `);
    });
    table(element("verdicts"), devices.head, devices.rows);
    for (const [term, meaning] of Object.entries(this.content.terms)) {
      element("terms").appendChild(document.createElement("dt")).textContent = term;
      element("terms").appendChild(document.createElement("dd")).textContent = meaning;
    }
  }

  // Writes the selection into the page's address, so that a link restores it.
  keep() {
    const found = new URLSearchParams({ figure: element("figure").value, colour: element("colour").value, sort: this.order,
      search: element("search").value });
    for (const [name, words] of Object.entries(this.wanted)) for (const word of words) found.append(`where ${name}`, word);
    history.replaceState(null, "", `#${found}`);
  }

  restore() {
    const found = new URLSearchParams(location.hash.slice(1));
    for (const id of ["figure", "colour"]) {
      if ([...element(id).options].some((option) => option.value === found.get(id))) element(id).value = found.get(id);
    }
    element("search").value = found.get("search") || "";
    const [column, direction] = (found.get("sort") || "").split(",").map(Number);
    if (this.columns()[column] && Math.abs(direction) === 1) this.order = [column, direction];
    for (const select of document.querySelectorAll("#filters select")) {
      const words = new Set(found.getAll(`where ${select.dataset.axis}`));
      for (const option of select.options) option.selected = words.has(option.value);
      this.wanted[select.dataset.axis] = new Set([...select.selectedOptions].map((option) => option.value));
    }
  }

  makeSelect(id, names, onChange) {
    for (const name of names) element(id).appendChild(document.createElement("option")).textContent = name;
    element(id).addEventListener("change", onChange);
  }

  // Makes a list for each filter. A list without a selection passes all rows.
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
    element("search").value = "";
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
    const sought = element("search").value.trim().toLowerCase();
    if (sought) {  // each distinct text is searched once
      const found = ["text", "label", "algorithm", "limited_by", "marks", "status", "error"].map((name) => {
        const own = this.texts[name], passes = own.words.map((text) => text.toLowerCase().includes(sought));
        return (row) => passes[own.places[row]];
      });
      tests.push((row) => found.some((test) => test(row)));
    }
    this.page = 0;
    this.shown = [];
    for (let row = 0; row < this.content.count; row++) {
      if (tests.every((test) => test(row))) this.shown.push(row);
    }
    element("count").textContent = `${this.shown.length} of ${this.content.count} rows`;
    this.draw();
    this.list();
  }

  // Returns {name: rows} by the values of the colour's axis.
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
    if (kind === undefined) return;
    this.keep();
    if (kind === null) return this.drawRoofs();
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
    if (kind.roofs) traces.push(...this.roofLines(traces));
    if (kind.square) traces.push(this.diagonal(traces));
    // An axis of few decades also has numbers at 2 and 5.
    const axis = (title, name, share) => {
      const [low, high] = this.span(traces, name);
      return { ...AXES, title, dtick: high / low > 1e4 ? 1 : "D2", ...(share ? { tickformat: SHARE } : {}) };
    };
    this.react(traces, { xaxis: axis(kind.titles[0], "x"), yaxis: axis(kind.titles[1], "y", kind.share) }, (row) => this.facts(row));
  }

  // Draws roofs in per cent of theory, a colour for each device.
  drawRoofs() {
    const points = this.content.points, devices = [...new Set(points.map((one) => one.device))];
    const traces = devices.map((device, place) => {
      const own = points.filter((one) => one.device === device);
      return { type: "scatter", mode: "markers", name: escaped(device), hoverinfo: "none", customdata: own,
        x: own.map((one) => one.share), y: own.map((one) => escaped(one.roof)),
        marker: { color: COLOURS[place % COLOURS.length], symbol: SYMBOLS[place % SYMBOLS.length], size: 8 } };
    });
    const y = { type: "category", autorange: "reversed", automargin: true, dtick: 1, gridcolor: GRID };
    this.react(traces, { xaxis: { title: "of theory at the nominal clock", ticksuffix: " %", gridcolor: GRID }, yaxis: y,
      height: Math.max(540, 15 * new Set(points.map((one) => one.roof)).size) },
      (one) => `${one.roof}\n${one.value}, ${one.share} % of theory\non ${one.device}`);
  }

  react(traces, layout, facts) {
    const plot = element("plot");
    const common = { hovermode: "closest", margin: { t: 34, r: 10, b: 45, l: 75 }, legend: { font: { size: 11 } },
      paper_bgcolor: PAPER, plot_bgcolor: PAPER, font: { color: INK }, height: 540 };
    plot.style.height = `${layout.height || common.height}px`;
    Plotly.react(plot, traces, { ...common, ...layout }, { responsive: true, displaylogo: false, showSendToCloud: false });
    for (const button of plot.querySelectorAll(".modebar-btn")) button.setAttribute("aria-label", button.dataset.title);
    this.factsOf = facts;
    if (!this.listening) {
      this.listening = true;
      const point = (event) => event.points[0].customdata;
      plot.on("plotly_hover", (event) => {
        if (point(event) !== undefined) element("hover").textContent = this.factsOf(point(event));
      });
      plot.on("plotly_relayout", (change) => {  // after a zoom Plotly chooses the ticks
        if (Object.keys(change).some((name) => /^.axis.range/.test(name))) {
          Plotly.relayout(plot, { "xaxis.dtick": null, "yaxis.dtick": null });
        }
      });
      plot.on("plotly_click", (event) => { if (Number.isInteger(point(event))) this.show(point(event)); });
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
      const levels = lines.filter((line) => line[0] === "bandwidth");
      for (const line of lines) {
        const [kind, name, value] = line, wide = kind === "bandwidth";
        const end = wide && top > 0 ? Math.min(high, top / value) : high;
        const x = [Math.min(low, end), end];
        const text = escaped((models.size > 1 ? `${model} ` : "") + `${name} ${scaled(value, wide ? "B/s" : "FLOP/s")}`);
        const colour = wide ? LINE : this.content.colours[name.split(" ")[0]] || LINE;
        found.push({ type: "scatter", mode: "lines+text", x, y: x.map((at) => wide ? at * value : value), name: text,
          line: { color: colour, width: 1.5, dash: wide ? DASHES[levels.indexOf(line) % DASHES.length] : "solid" },
          text: wide ? [text, ""] : ["", text], textposition: wide ? "bottom right" : "top left",
          textfont: { color: colour, size: 11 }, hoverinfo: "name", showlegend: false });
      }
    }
    return found;
  }

  diagonal(traces) {
    const [low, high] = this.span(traces, "x");
    return { type: "scatter", mode: "lines", x: [low, high], y: [low, high], hoverinfo: "skip",
      line: { color: LINE, width: 1, dash: "dash" }, name: "machine balance: equal times" };
  }

  // Returns all facts about a row, as lines of text.
  facts(row) {
    const t = (name) => this.texts[name].at(row), f = (name, unit) => scaled(this.figures[name].at(row), unit);
    const lines = [
      `${t("text")}  [${t("label")}]  on ${t("device_name")}, ${t("model")}`,
      `time ${f("time_median", "s")} +- ${f("noise", "%")} ${t("marks")}, ${f("performance", "FLOP/s")}, ` +
        `${f("roof_fraction", "%")} of its roof at ${t("roof_memory_level")}, AI ${f("intensity", "")} FLOP/byte, ` +
        `${f("launches", "")} launches, idle ${f("gap_time", "s")}, caller ${f("caller_time", "s")}`,
      `algorithm ${t("algorithm")}`,
      `limiter ${t("limited_by")}${t("evidence") ? ": " + t("evidence") : ""}`,
      t("count_note") ? `counts: ${t("count_note")}` : "",
      t("advice"),
      t("error") ? `${t("status")}: ${t("error")}` : "",
    ];
    return lines.filter((line) => line).join("\n");
  }

  // Columns of the table of rows: head, column, unit of numbers.
  columns() {
    const t = this.texts, f = this.figures;
    return [["configuration", t.text], ["device", t.device_name], ["time", f.time_median, "s"], ["+-", f.noise, "%"],
      ["performance", f.performance, "FLOP/s"], ["of roof", f.roof_fraction, "%"], ["limiter", t.limited_by],
      ["samples", t.marks], ["advice", t.advice]];
  }

  // Returns the filtered rows in the order of a column; rows without a value come last.
  sorted() {
    const [, own, unit] = this.columns()[this.order[0]], direction = this.order[1];
    const known = (row) => unit === undefined ? own.at(row) !== "" : Number.isFinite(own.at(row));
    return [...this.shown].sort((a, b) => known(b) - known(a) || (known(a) ? direction * compared(own.at(a), own.at(b)) : 0));
  }

  list() {
    const pages = Math.max(1, Math.ceil(this.shown.length / MOST_ROWS));
    this.page = Math.min(Math.max(this.page, 0), pages - 1);
    const first = this.sorted().slice(this.page * MOST_ROWS, (this.page + 1) * MOST_ROWS);
    const made = this.columns().map(([name, own, unit]) => unified(name, first.map((row) => own.at(row)), unit));
    element("page").textContent = `page ${this.page + 1} of ${pages}`;
    element("before").disabled = this.page === 0;
    element("after").disabled = this.page === pages - 1;
    table(element("rows"), made.map(([head]) => head), first.map((_, line) => made.map(([, texts]) => texts[line])), {
      onClick: (place) => this.show(first[place]), order: this.order, terms: this.content.terms,
      onSort: (place) => {
        this.order = [place, place === this.order[0] ? -this.order[1] : 1];
        this.page = 0;
        this.keep();
        this.list();
        element("rows").querySelectorAll("th button")[place].focus();
      } });
  }

  // Returns the filtered rows as CSV, in the table's order and in SI units, without texts that are spreadsheet formulas.
  csv() {
    const { text, ...others } = this.texts, found = { configuration: text, ...others, ...this.axes, ...this.figures };
    const cell = (value) => {
      if (typeof value === "number") return Number.isFinite(value) ? String(+value.toPrecision(4)) : "";
      return `"${value.replace(/^(?=[=+@\t-])/, "'").replace(/"/g, '""')}"`;
    };
    const lines = this.sorted().map((row) => Object.values(found).map((own) => cell(own.at(row))).join(","));
    return [Object.keys(found).join(","), ...lines, ""].join("\n");
  }

  save() {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([this.csv()], { type: "text/csv" }));
    link.download = "rows.csv";
    link.click();
    URL.revokeObjectURL(link.href);
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
    const own = [];
    for (let at = low; at < places.length && places[at] === row; at++) own.push(at);
    const made = [["kernel", own.map((at) => this.kernels.name.at(at))],
      ...this.kernels.columns.map((one) => unified(one.head, own.map((at) => one.at(at)), one.unit))];
    table(element("kernels"), made.map(([head]) => head), own.map((_, line) => made.map(([, texts]) => texts[line])));
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
