"use strict";
// The page of `nearkin compare`, `check` and `adapt`: it draws the JSON document in #data. Every text in it is untrusted: it
// becomes text nodes and attributes, never markup. Colours are classes, so that dark mode and print need no redrawing.
{
const data = JSON.parse(document.getElementById("data").textContent);
const {table, protocol, score, beside, maps, curves} = data;
const COLORS = 7, CURVES = 5; // and eight shapes: 56 pairs before one repeats
const STATUS_SHAPE = {better: 2, worse: 4, unclear: 0, baseline: 1, reference: 3};

// ---- Elements ----

const $ = id => document.getElementById(id);
const SVG = "http://www.w3.org/2000/svg", HTML = "http://www.w3.org/1999/xhtml";
// line breaks and runs of blanks become one blank; what else is not seen, such as control characters and those that turn the
// direction of a text, becomes visible
const BLANKS = /[ \t-\r\u2028\u2029]+/g, UNSEEN = /\p{C}/gu;
const clean = text => String(text).replace(BLANKS, " ").replace(UNSEEN, "\ufffd");
const missing = value => value === null || value === undefined;
const nodes = children => children.flat().filter(child => !missing(child)).map(c => c instanceof Node ? c : clean(c));

function make(space, tag, attributes, children) {
  const node = document.createElementNS(space, tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") node.addEventListener(name, value);
    else if (!missing(value)) node.setAttribute(name, clean(value));
  }
  node.append(...nodes(children));
  return node;
}
const html = (tag, attributes, ...children) => make(HTML, tag, attributes, children);
const svg = (tag, attributes, ...children) => make(SVG, tag, attributes, children);
const textAt = (x, y, attributes, ...children) => svg("text", {x, y, ...attributes}, children);
const widthOf = id => Math.max(240, $(id).clientWidth); // a page in the background may have none
const fill = (id, ...children) => $(id).replaceChildren(...nodes(children));
const aside = (...children) => html("p", {class: "aside"}, children);
const plot = (id, ...more) => html("div", {id, class: ["chart", ...more].join(" ")});
const section = (title, ...children) => $("main").append(html("section", {}, html("h2", {}, title), ...children));
const pair = figures => html("div", {class: figures.length > 1 ? "pair two" : "pair"}, figures.map(([title, ...children]) =>
  html("figure", {}, html("figcaption", {}, title), children)));
const listOf = lines => html("ul", {class: "aside"}, lines.map(line => html("li", {}, minus(line))));

/** Return a table; a column is its heading, its cell of a row, and its class. */
const grid = (rows, columns, kind = () => null) => html("div", {class: "wide"}, html("table", {class: "rows"},
  html("thead", {}, html("tr", {}, columns.map(([title, , name]) => html("th", {scope: "col", class: name}, title)))),
  html("tbody", {}, rows.map(row =>
    html("tr", {class: kind(row)}, columns.map(([, cell, name]) => html("td", {class: name}, cell(row))))))));
const shorten = (text, most) => {
  const letters = [...clean(text)];
  return letters.length <= most ? letters.join("") : `${letters.slice(0, most - 1).join("")}…`;
};

/** Shorten texts; what all of them begin with goes first, where they are long. */
function shortAll(texts, most) {
  const all = texts.map(clean), same = [...all[0]].findIndex((_, i) => all.some(text => text[i] !== all[0][i]));
  const long = all.length > 1 && same > 3 && all.some(text => text.length > most);
  return all.map(text => shorten(long ? `…${text.slice(same)}` : text, most));
}

// ---- Numbers ----

const fixed = (value, decimals) => { // halves become even, as the command writes them
  const digits = {minimumFractionDigits: decimals, maximumFractionDigits: decimals, useGrouping: false};
  const text = value.toLocaleString("en", {...digits, roundingMode: "halfEven"});
  return Number(text) === 0 ? text.replace("-", "") : text.replace("-", "−");
};
const shown = value => score.factor * value;
const plain = (value, by = score) => {
  if (missing(value)) return "";
  return missing(by.decimals) ? number(Number((by.factor * value).toPrecision(3))) : fixed(by.factor * value, by.decimals);
};
const figure = value => plain(value) + (missing(value) ? "" : score.unit);
const points = score?.unit === "%" ? " points" : "";
// Figures of the ranking are written by the command, so that they are the same there and here.
const minus = text => text.replace(/(^|[\s[])-(?=\d)/g, "$1−"); // of numbers, in a sentence, too
const scoreOf = row => minus(row.written.score);
const differenceOf = row => minus(row.written.difference);
const interval = row => missing(row.low) || missing(row.high) ? ""
  : `${minus(row.written.low)} to ${minus(row.written.high)}`;
const deviation = row => missing(row.deviation) ? "" : ` ± ${plain(row.deviation)}`;
const percent = value => `${fixed(value, 1)}%`;
const number = value => {
  if (typeof value !== "number") return missing(value) ? "–" : String(value);
  if (Number.isInteger(value) && Math.abs(value) < 1e15) return value.toLocaleString("en").replace("-", "−");
  return String(Number(value.toPrecision(4))).replace("-", "−");
};
const counted = (count, thing) => `${number(count)} ${thing}${count === 1 ? "" : thing.endsWith("ss") ? "es" : "s"}`;
const pValue = p => missing(p) ? "" : p < 0.001 ? "<0.001" : String(Number(p.toPrecision(2)));
const span = range => missing(range) ? "" : range[0] === range[2] ? number(range[1])
  : `${number(range[1])} (${number(range[0])}–${number(range[2])})`; // lowest, median, highest
const seconds = value => missing(value) ? "" : value < 1 ? `${fixed(1000 * value, 0)} ms` : `${fixed(value, 1)} s`;
const inText = text => /^[A-Z][a-z]/.test(text) ? text[0].toLowerCase() + text.slice(1) : text;

// ---- What the document holds ----

const ORDER = {choice: 0, method: 1, baseline: 1, reference: 2};
const better = (a, b) => score.sign * (b - a); // to sort by, best first
const ranking = [...data.ranking || []].sort((a, b) => ORDER[a.kind] - ORDER[b.kind] || better(a.score, b.score));
const baseline = ranking.find(row => row.kind === "baseline");
const choice = ranking[0];
const labels = table.classes ? table.classes.map(group => group.label) : null;
const answer = row => labels ? labels[data.rows.answer[row]] : number(data.rows.answer[row]);
const drawings = [];

// ---- Scales, axes, shapes ----

const linear = ([a, b], range) => Object.assign(
  value => range[0] + (a === b ? 0.5 : (value - a) / (b - a)) * (range[1] - range[0]), {range});
const extent = values =>
  values.reduce(([low, high], value) => [Math.min(low, value), Math.max(high, value)], [Infinity, -Infinity]);
const around = ([low, high], room) => [low - room, high + room];
const widen = (ends, share) => around(ends, share * (ends[1] - ends[0]) || Math.max(1e-6, Math.abs(ends[0]) * 0.05));

function ticks([low, high], count) {
  const rough = (high - low) / count, power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find(factor => factor * power >= rough * 0.999);
  const found = [];
  for (let place = Math.ceil(low / step - 1e-9); place * step <= high + step * 1e-9; place++) found.push(place * step);
  const decimals = Math.max(0, Math.min(12, -Math.floor(Math.log10(step) + 1e-9)));
  return {found, text: value => fixed(value, decimals)};
}

/** Draw the axis below: ticks, grid lines up to `top`, and a title. */
function axisBelow(node, scale, {found, text}, top, bottom, title) {
  const middle = (scale.range[0] + scale.range[1]) / 2, centred = {"text-anchor": "middle"};
  const lines = found.map(value => [svg("path", {class: "grid", d: `M${scale(value)} ${top}V${bottom}`}),
    textAt(scale(value), bottom + 16, centred, text(value))]);
  node.append(svg("g", {class: "axis"}, textAt(middle, bottom + 34, centred, title), lines.flat()));
}

/** Draw the axis on the left, its title above it. */
function axisLeft(node, scale, {found, text}, left, right, title) {
  const lines = found.map(value => [svg("path", {class: "grid", d: `M${left} ${scale(value)}H${right}`}),
    textAt(left - 6, scale(value) + 4, {"text-anchor": "end"}, text(value))]);
  node.append(svg("g", {class: "axis"}, textAt(0, 12, {}, title), lines.flat()));
}

// Eight shapes by their corners, around 0, with about the same area
const round = (count, reach) => [...Array(count).keys()].map(i =>
  [reach(i) * Math.sin(2 * Math.PI * i / count), -reach(i) * Math.cos(2 * Math.PI * i / count)]);
const CROSS = [[-0.4, -1.1], [0.4, -1.1], [0.4, -0.4], [1.1, -0.4], [1.1, 0.4], [0.4, 0.4], [0.4, 1.1], [-0.4, 1.1],
  [-0.4, 0.4], [-1.1, 0.4], [-1.1, -0.4], [-0.4, -0.4]];
const SHAPES = [round(16, () => 1), [[-0.9, -0.9], [0.9, -0.9], [0.9, 0.9], [-0.9, 0.9]],
  [[0, -1.15], [1.1, 0.85], [-1.1, 0.85]], [[0, -1.25], [1.05, 0], [0, 1.25], [-1.05, 0]],
  [[0, 1.15], [1.1, -0.85], [-1.1, -0.85]], CROSS,
  CROSS.map(([x, y]) => [0.75 * (x - y), 0.75 * (x + y)]), round(10, i => i % 2 ? 0.55 : 1.3)];
const color = place => `c${place % COLORS}`;
const path = corners => `M${corners.map(([x, y]) => `${x.toFixed(1)} ${y.toFixed(1)}`).join("L")}`;
const shape = (kind, x, y, r) => `${path(SHAPES[kind % SHAPES.length].map(([dx, dy]) => [x + r * dx, y + r * dy]))}Z`;
const iconOf = (name, ...children) => svg("svg", {class: `icon ${name}`, viewBox: "0 0 16 16", "aria-hidden": "true"}, children);
const icon = (kind, name, line = false) => iconOf(name, line ? svg("path", {class: "curve", d: "M0 8H16"}) : null,
  svg("path", {class: "mark", d: shape(kind, 8, 8, 5)}));

// ---- Charts that can be explored ----

/** Put an empty chart into a place and return it. */
function chart(id, title, description, width, height) {
  const said = {role: "img", tabindex: 0, "aria-label": `${title}. ${description}`};
  const node = svg("svg", {viewBox: `0 0 ${width} ${height}`, width, height, ...said});
  fill(id, node);
  return node;
}

/**
 * Draw series of points, each {kind, sign, x, y, low, high, lines(i)}: its class, its shape (none: a line without marks), and
 * the ends of a band, or with `bars` of a bar at each point; `dashed` is a line of its own kind, `level` a height.
 */
function drawLines(id, title, {series, axes, log = false, marks, domain, level, rules = []}) {
  const width = widthOf(id), left = 46, right = width - 10, top = 24, bottom = Math.min(380, Math.max(240, 0.5 * width));
  const node = chart(id, title, "The arrow keys walk through the points.", width, bottom + 42);
  if (!series.length) return;
  const known = values => values.filter(value => !missing(value)), to = log ? Math.log : value => value;
  const own = [...new Set(series.flatMap(one => one.x))].sort((a, b) => a - b), ends = [own[0], own.at(-1)].map(to);
  const heights = known(series.flatMap(one => [one.y, one.low || [], one.high || []].flat()));
  const span = ends[0] === ends[1] ? around(ends, Math.abs(ends[0]) / 4 || 0.5) : around(ends, log ? 0.03 * (ends[1] - ends[0]) : 0);
  const along = linear(span, [left, right]);
  const x = Object.assign(value => along(to(value)), {range: along.range});
  const reach = domain || widen(extent(heights), 0.05), y = linear(reach, [bottom, top]), spots = [];
  axisLeft(node, y, ticks(reach, 6), left, right, axes[1]);
  axisBelow(node, x, marks ? marks(own) : ticks(span, width < 420 ? 4 : 8), top, bottom, axes[0]);
  if (!missing(level)) node.append(svg("path", {class: "dashed", d: `M${left} ${y(level)}H${right}`}));
  for (const {at, text} of rules) {
    node.append(svg("path", {class: "dashed", d: `M${x(at)} ${top}V${bottom}`}),
      textAt(x(at) + (x(at) > right - 40 ? -4 : 4), bottom - 6, {"text-anchor": x(at) > right - 40 ? "end" : "start"}, text));
  }
  for (const one of series) {
    const group = svg("g", {class: one.kind}), line = values => one.x.map((value, i) => [value, values[i]])
      .filter(([, value]) => !missing(value)).map(([at, value]) => [x(at), y(value)]);
    const bar = (value, i) => svg("path", {class: "curve", d: `M${x(value)} ${y(one.low[i])}V${y(one.high[i])}`});
    if (one.bars) group.append(...one.x.map(bar));
    const drawn = line(one.y), band = one.low && !one.bars ? [...line(one.high), ...line(one.low).reverse()] : [];
    if (band.length) group.append(svg("path", {class: "band", d: `${path(band)}Z`}));
    if (drawn.length) group.append(svg("path", {class: one.dashed ? "dashed" : "curve", d: path(drawn)}));
    one.x.forEach((value, i) => {
      if (missing(one.y[i])) return;
      const [px, py] = [x(value), y(one.y[i])];
      if (!missing(one.sign)) group.append(svg("path", {class: "mark", d: shape(one.sign, px, py, 4.5)}));
      if (one.ringed === i) group.append(svg("circle", {class: "ring", cx: px, cy: py, r: 11}));
      if (one.lines) spots.push({x: px, y: py, lines: () => one.lines(i)});
    });
    node.append(group);
  }
  explore(node, spots);
}

function showTip(node, point) {
  const box = node.getBoundingClientRect(), factor = box.width / node.viewBox.baseVal.width;
  const x = box.left + factor * point.x, y = box.top + factor * point.y, tip = $("tip");
  fill("tip", point.lines().map(line => html("div", {}, line)));
  const [w, h, seen] = [tip.offsetWidth, tip.offsetHeight, document.documentElement.clientWidth];
  const left = x + 14 + w < seen ? x + 14 : x - 14 - w;
  const top = left < 4 || y - h / 2 < 0 ? y + 16 : y - h / 2;
  tip.style.left = `${Math.max(4, Math.min(left, seen - w - 4)) + scrollX}px`;
  tip.style.top = `${top + scrollY}px`;
}
const hideTip = () => fill("tip");

const ARROWS = {ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1]};

/** Let a pointer and the arrow keys walk through `places`, each {x, y, lines(), size, square}: an arrow leads to the next. */
function explore(node, places, distance = (p, x, y) => Math.hypot(p.x - x, p.y - y)) {
  const ring = svg("rect", {class: "ring", visibility: "hidden"});
  node.append(ring);
  let now = -1;
  const hide = () => { ring.setAttribute("visibility", "hidden"); hideTip(); };
  const show = place => {
    const point = places[now = place], r = point.size || 8, rx = point.square ? 0 : r;
    const box = {x: point.x - r, y: point.y - r, width: 2 * r, height: 2 * r, rx, visibility: "visible"};
    for (const [name, value] of Object.entries(box)) ring.setAttribute(name, value);
    showTip(node, point);
  };
  const point = event => {
    const box = node.getBoundingClientRect(), factor = node.viewBox.baseVal.width / box.width;
    const x = (event.clientX - box.left) * factor, y = (event.clientY - box.top) * factor;
    let best = -1, least = 24;
    places.forEach((p, i) => { const d = distance(p, x, y); if (d < least) [best, least] = [i, d]; });
    if (best < 0) hide();
    else if (best !== now || ring.getAttribute("visibility") === "hidden") show(best);
  };
  const next = ([dx, dy]) => {
    const along = i => dx * places[i].x + dy * places[i].y;
    const order = places.map((_, i) => i).sort((i, j) => along(i) - along(j) || (i - j) * (dx + dy));
    return order[Math.min(order.length - 1, order.indexOf(now) + 1)];
  };
  for (const name of ["pointermove", "pointerdown"]) node.addEventListener(name, point);
  for (const name of ["pointercancel", "blur"]) node.addEventListener(name, hide);
  node.addEventListener("pointerleave", event => { if (event.pointerType === "mouse") hide(); });
  node.addEventListener("keydown", event => {
    if (event.key === "Escape") return hide();
    const step = ARROWS[event.key];
    if (!step || !places.length || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    show(now < 0 ? 0 : next(step));
  });
}

// ---- Head, facts, texts ----

/** Let a button select a text, so that it can also be copied by hand, and copy it. */
function copyButton(id, source) {
  $(id).addEventListener("click", () => {
    getSelection().selectAllChildren($(source));
    $(id).textContent = document.execCommand("copy") ? "Copied" : "Selected: now copy it by hand";
  });
}

function writeHead() {
  const tile = (name, value) => value ? html("div", {}, html("dt", {}, name), html("dd", {}, value)) : null;
  const keys = [tile(`${choice.name}, ${inText(score.title)}`, scoreOf(choice) + score.unit),
    tile(`against ${baseline.name}`, differenceOf(choice) + points), tile("95% interval", interval(choice)),
    tile(protocol.tests > 1 ? `p (corrected for ${protocol.tests} tests)` : "p", pValue(choice.p))];
  document.querySelector("header").append(html("dl", {id: "keys"}, keys.filter(Boolean)), aside(
    `${choice.name}: method, dimension and number of neighbours are all chosen inside the training rows, `
    + (data.doubts.length ? "but given the doubts above, do not expect this figure on new rows."
      : `so this is the figure to expect of a saved model${table.twins.share > MANY_TWINS
        ? " on rows without a twin here: rows with one may do better" : ""}.`)));
}

function writeFacts() {
  const more = Math.max(0, (table.n_left_out ?? 0) - table.left_out.length);
  const kind = labels ? counted(table.n_classes ?? labels.length, "class") : `from ${table.range.map(number).join(" to ")}`;
  const named = (table.classes || []).slice(0, 8).map(c => `${shorten(c.label, 30)} ${number(c.rows)}`);
  const repeats = protocol?.repeats > 1 ? ` in ${protocol.repeats} repeats` : "";
  const gaps = table.missing ? table.missing.features.slice(0, 8).map(f => `${f.feature} ${number(f.rows)}`).join(", ")
    + (table.missing.n_features > 8 ? ", …" : "") : "";
  const facts = [
    ["Rows", number(table.rows) + (table.labelled < table.rows ? `, ${number(table.labelled)} of them labelled` : "")],
    ["Columns", missing(table.features) ? number(table.columns) : ""],
    ["Features", missing(table.features) ? "" : number(table.features) + (table.sparse ? ", sparse" : "")
      + (table.features > table.columns ? ` from ${counted(table.columns, "column")}` : "")
      + (table.missing.n_features ? `, ${number(table.missing.n_features)} with missing cells` : "")],
    ["Target", `${table.target}, ${kind}`],
    ["Classes", named.join(", ") + (named.length < labels?.length ? ", …" : "")],
    ["Largest class", missing(table.largest_class) ? "" : `${table.largest_class} of the rows`],
    ["Groups", table.groups ? number(table.groups) + (protocol ? ", none of them split between folds" : "") : ""],
    ["Held out", protocol && `${counted(protocol.folds, "fold")}${repeats}, about ${number(protocol.training_rows)} training rows each, `
      + `${protocol.scaled ? "standardized on those" : "not standardized"}`],
    ["Left out", table.left_out.map(c => `${c.column} (${c.reason})`).join("; ") + (more ? ` and ${number(more)} more` : "")],
    ["Missing cells", table.missing?.cells ? `${number(table.missing.cells)} (${gaps})` : ""],
    ["Suspicious", table.suspicious.map(c => `${c.column} alone predicts ${table.target}`).join("; "), "warn"],
    ["May be groups", table.group_hints.length
      ? `${table.group_hints.join(", ")}: if rows of one value belong together, give --groups` : "", "warn"],
  ];
  section("The table", html("dl", {class: "facts"}, facts.filter(([, value]) => value).flatMap(([name, value, kind]) =>
    [html("dt", {}, name), html("dd", {class: kind}, value)])), ranking.length ? null : listOf(data.notes));
}

function writeMethods() {
  const setting = params => Object.entries(params).map(([name, value]) => name === "method" ? value : `${name}=${value}`)
    .join(" ");
  const said = row => row.choices.map(c => `${setting(c.params)} in ${counted(c.folds, "fold")}`).join("; ");
  const chosen = row => row.choices.length ? ` Chosen: ${said(row)}.` : "";
  const kept = ranking.filter(row => row.summary || row.choices.length);
  section("The methods", html("dl", {id: "methods"}, kept.map(row =>
    html("div", {}, html("dt", {}, row.name), html("dd", {}, row.summary + chosen(row))))));
  section("To quote", html("figure", {id: "quotable"}, html("blockquote", {id: "quote"}, minus(data.quote)),
    html("button", {type: "button", id: "copy-quote"}, "Copy this sentence")));
  copyButton("copy-quote", "quote");
}

function writeEnd() {
  const quoted = text => /^[\w@%+=:,.\/-]+$/.test(text) ? text : `'${text.replaceAll("'", `'"'"'`)}'`;
  const versions = Object.entries({nearkin: data.nearkin, ...data.versions});
  const vote = () => missing(protocol.neighbors) ? "number of neighbours and their weights chosen inside the training rows"
    : counted(protocol.neighbors, "nearest neighbour");
  const settings = {
    command: data.command.map(quoted).join(" "),
    vote: protocol && vote(),
    test: protocol?.test,
    seed: data.seed,
    took: seconds(data.seconds),
    versions: versions.map(([name, version]) => `${name} ${version}`).join(", "),
    machine: data.machine,
  };
  const lines = Object.entries(settings).filter(([, value]) => !missing(value) && value !== "");
  section("To reproduce these figures", html("table", {id: "settings"}, lines.map(([name, value]) =>
    html("tr", {}, html("th", {scope: "row"}, name), html("td", {id: name === "command" ? name : null}, value)))),
    html("button", {type: "button", id: "copy-command"}, "Copy the command"));
  copyButton("copy-command", "command");
}

// ---- The ranking ----

/** Return a score, or the best that there is where this is beyond it, such as 100%. */
const possible = value => score.sign > 0 ? Math.min(value, 1) : Math.max(value, 0);

/** Return the ends of the score axis: what is far worse than the others, such as a majority vote, does not squeeze these. */
function rankingDomain() {
  const good = value => score.sign * value; // larger is better
  const main = ranking.filter(row => row.kind !== "reference");
  const means = main.map(row => good(row.score)).sort((a, b) => a - b);
  const laid = row => missing(row.low) ? [] : [baseline.score + row.low, baseline.score + row.high];
  const spread = rows => extent(rows.flatMap(row => [...row.folds, row.score, ...laid(row)]).map(good));
  const best = means.at(-1), middle = means[Math.floor(means.length / 2)];
  const most = spread(main.filter(row => good(row.score) >= middle))[1];
  const low = Math.max(spread(main)[0], middle - 4 * Math.max(best - middle, most - best, 0.01 * Math.abs(best)));
  const room = 0.4 * (most - low);
  const near = ranking.map(row => good(row.score)).filter(value => value > low - room && value < most + room);
  return widen(extent([low, most, ...near].map(value => shown(possible(good(value))))), 0.03);
}

function drawRanking() {
  const width = widthOf("ranking"), narrow = width < 560, step = narrow ? 36 : 26, right = width - 56;
  const left = narrow ? 4 : Math.min(230, 20 + 6.6 * Math.max(...ranking.map(row => clean(row.name).length)));
  const apart = (a, b) => a && a.kind !== b.kind && (b.kind === "reference" || a.kind === "choice");
  const gaps = ranking.map((row, i) => apart(ranking[i - 1], row) ? 14 : 0), places = [];
  let at = 8;
  for (const gap of gaps) { at += gap + step; places.push(at - (narrow ? 10 : step / 2)); }
  const top = 4, bottom = at + 6;
  const node = chart("ranking", `Ranking by ${inText(score.title)}`,
    "One line per method: mean, folds and the 95% interval of its difference. Up and down arrows walk through the methods; "
    + "the table below holds the figures.", width, bottom + 42);
  const domain = rankingDomain(), scale = linear(domain, [left + 8, right]);
  axisBelow(node, scale, ticks(domain, narrow ? 4 : 8), top, bottom, score.axis);
  const inside = value => value >= domain[0] && value <= domain[1];
  const clip = value => scale(Math.min(domain[1], Math.max(domain[0], value)));
  node.append(svg("path", {class: "dashed", d: `M${clip(shown(baseline.score))} ${top}V${bottom}`}));
  const spots = ranking.map((row, i) => {
    const y = places[i], value = shown(row.score), x = clip(value), group = svg("g", {class: row.status});
    if (gaps[i]) node.append(svg("path", {class: "grid", d: `M0 ${y - (narrow ? 30 : step / 2 + 7)}H${width}`}));
    if (interval(row)) {
      const ends = [row.low, row.high].map(end => clip(shown(possible(baseline.score + end))));
      const box = {x: ends[0], y: y - 7, width: Math.max(1, ends[1] - ends[0]), height: 14, rx: 3};
      group.append(svg("rect", {class: "interval", ...box}));
    }
    const folds = row.folds.length > 1 ? row.folds.map(shown) : [];
    folds.forEach((fold, place) => { // beside one another, as far as they go
      const cy = y + 10 * (place * 7 % 15 / 14 - 0.5);
      if (inside(fold)) group.append(svg("circle", {class: "fold", cx: scale(fold), cy, r: 2.2}));
    });
    // a value outside the axis becomes an arrow at its edge
    const turn = inside(value) ? 0 : value < domain[0] ? -1 : 1;
    const arrow = [[-5 * turn, -6], [5 * turn, 0], [-5 * turn, 6]].map(([dx, dy]) => [x + dx, y + dy]);
    group.append(svg("path", {class: "mark", d: turn ? `${path(arrow)}Z` : shape(STATUS_SHAPE[row.status], x, y, 6)}));
    const strong = ["choice", "baseline"].includes(row.kind) ? "name strong" : row.kind === "reference" ? "name faint" : "name";
    const name = narrow ? textAt(4, y - 11, {class: strong}, shorten(row.name, Math.floor(width / 7)))
      : textAt(left - 4, y + 4, {class: strong, "text-anchor": "end"}, shorten(row.name, 32));
    node.append(group, name, textAt(width - 2, y + 4, {class: strong, "text-anchor": "end"}, scoreOf(row)));
    return {x, y, lines: () => rankingLines(row)};
  });
  explore(node, spots, (p, x, y) => Math.abs(p.y - y));
}

function rankingLines(row) {
  const against = `${differenceOf(row)}${points} against ${baseline.name}`;
  const more = [interval(row) && `95% interval ${interval(row)}`, row.p === null ? "" : `p ${pValue(row.p)}`];
  return [row.name, `${scoreOf(row)}${score.unit}${deviation(row)}, ${row.status}`,
    row === baseline ? "" : [against, ...more].filter(Boolean).join(", ")].filter(Boolean);
}

function startRanking() {
  const said = {better: "better", worse: "worse", unclear: "unclear: may be chance",
    baseline: "baseline, and its dashed line", reference: "reference"};
  const used = Object.keys(said).filter(status => ranking.some(row => row.status === status));
  const band = iconOf("unclear", svg("rect", {class: "interval", y: 3, width: 16, height: 10, rx: 3}));
  const dot = iconOf("unclear", svg("circle", {class: "fold", cx: 8, cy: 8, r: 2.5}));
  const key = html("div", {id: "ranking-key", class: "key"},
    used.map(status => html("span", {}, icon(STATUS_SHAPE[status], status), said[status])),
    ranking.some(interval) ? html("span", {}, band, "95% interval of the difference, added to the baseline") : null,
    ranking.some(row => row.folds.length > 1) ? html("span", {}, dot, "a fold") : null);
  section("Ranking", aside(`${score.title} on held-out rows${score.sign < 0 ? ", smaller is better" : ""}; every difference is `
    + `from ${baseline.name}.${used.includes("reference") ? " The references, which are not k-NN, stand below." : ""}`
    + " Sort the table by its headings."), key, plot("ranking"),
    html("div", {class: "wide"}, html("table", {id: "table", class: "ranking"})), data.notes.length ? listOf(data.notes) : null);
  drawings.push(drawRanking);
}

/** Return a text in parts, between which its line may break. */
const parted = (...texts) => texts.flatMap((text, i) => [i ? " " : "", html("span", {}, text)]);

function writeTable() {
  const inScore = row => [html("span", {}, scoreOf(row)), html("span", {class: "minor"}, " ", html("span", {}, deviation(row).trim()))];
  const ends = row => interval(row) && parted(`${minus(row.written.low)} to`, minus(row.written.high));
  const spread = range => span(range) && parted(...span(range).split(" "));
  const headed = by => inText(by.title) + (by.unit && `\u00a0${by.unit}`), second = row => row.scores[beside.name];
  // heading, what is written, what is sorted by, classes
  const columns = [
    ["method", row => row.name, row => clean(row.name).toLowerCase(), ""],
    [headed(score), inScore, row => row.score, "number ends"],
    [headed(beside), row => minus(row.written.second), second, "number minor"],
    ["difference", row => row === baseline ? "" : differenceOf(row), row => row.difference, "number"],
    ["95% interval", ends, row => row.low, "number ends minor"],
    ["p", row => pValue(row.p), row => row.p, "number"],
    ["verdict", row => row.kind === "reference" ? "" : row.status, row => row.status, "status"],
    ["dim", row => spread(row.dimension), row => row.dimension && row.dimension[1], "number ends minor"],
    ["k", row => row.kind !== "reference" && missing(row.neighbors) ? "all" : spread(row.neighbors),
      row => row.neighbors && row.neighbors[1], "number ends minor"],
    ["soft", row => missing(row.soft) ? "" : `${fixed(100 * row.soft, 0)}%`, row => row.soft, "number minor"],
    ["fit", row => row === baseline ? "" : seconds(row.fit_seconds), row => row.fit_seconds, "number minor"],
  ];
  const line = row => html("tr", {class: `${row.status} ${row.kind}`}, columns.map(([, cell, , kind], i) =>
    i ? html("td", {class: kind}, cell(row)) : html("th", {scope: "row"}, cell(row))));
  const parts = [["choice"], ["method", "baseline"], ["reference"]].map(some => ranking.filter(row => some.includes(row.kind)));
  const bodies = parts.map(() => html("tbody", {}));
  const heading = html("th", {colspan: columns.length, scope: "rowgroup"}, "References, without k-NN");
  const put = compare => parts.forEach((rows, i) => // the references' heading comes first
    bodies[i].replaceChildren(...(i === 2 ? [html("tr", {class: "apart"}, heading)] : []), ...[...rows].sort(compare).map(line)));
  let sorted = null, turn = 1;
  const sortBy = (button, key, text) => {
    turn = sorted === button ? -turn : text ? 1 : -1;
    sorted = button;
    heads.forEach(head => head.removeAttribute("aria-sort"));
    button.parentNode.setAttribute("aria-sort", turn < 0 ? "descending" : "ascending");
    put((a, b) => { // what has no value comes last either way
      const [u, v] = [key(a), key(b)];
      return missing(u) || missing(v) ? missing(u) - missing(v) : u < v ? -turn : u > v ? turn : 0;
    });
  };
  const heads = columns.map(([title, , key, kind]) => html("th", {scope: "col", class: kind},
    html("button", {type: "button", click: event => sortBy(event.currentTarget, key, !kind.includes("number"))}, title)));
  put(() => 0);
  fill("table", html("thead", {}, html("tr", {}, heads)), bodies.filter((_, i) => parts[i].length));
}

// ---- What the columns do ----

const MANY_TWINS = 0.05; // share of the rows from which the lead names them
const LEAST_EFFECT = 0.1; // where no column moves the rows farther, bars and curves look like that
const SHOWN_EFFECTS = 12, size = value => fixed(value, 2); // as `nearkin inspect` writes it

function drawEffects() {
  const {effects} = data.columns, shownEffects = effects.slice(0, SHOWN_EFFECTS), width = widthOf("effects"), step = 24;
  const short = shownEffects.map(one => shorten(one.column, width < 560 ? 16 : 32));
  const left = Math.min(width / 2.5, 14 + 6.8 * Math.max(...short.map(text => text.length))), right = width - 56;
  const scale = linear([0, Math.max(effects[0].effect, LEAST_EFFECT)], [left, right]);
  const node = chart("effects", "How far each column moves the rows", "One bar per column, the most important first; up and down "
    + "arrows walk through them.", width, step * shownEffects.length + 6);
  const spots = shownEffects.map((one, i) => {
    const y = step * i + 4, end = scale(one.effect);
    node.append(svg("rect", {class: "bar", x: left, y, width: Math.max(1, end - left), height: step - 8, rx: 2}),
      textAt(left - 6, y + 12, {"text-anchor": "end"}, short[i]), textAt(end + 6, y + 12, {class: "faint"}, size(one.effect)));
    return {x: end, y: y + 8, lines: () => [one.column, `moves the rows by ${size(one.effect)} (root mean square)`]};
  });
  explore(node, spots, (p, x, y) => Math.abs(p.y - y));
}

const DAYS = " (days since 1970)", LAST_DAY = 2.9e6; // of the year 9909
const isDates = curve => curve.edges && curve.name.endsWith(DAYS) && curve.edges.every(edge => Math.abs(edge) < LAST_DAY);
const nameOf = curve => isDates(curve) ? curve.name.slice(0, -DAYS.length) : curve.name;
const day = value => new Date(86400000 * value).toISOString().slice(0, 10);

const LETTER = 6.4, LINE = 18; // pixels of a letter below a panel, and between lines of slanted texts

/** Return the marks of the horizontal axis of a panel: numbers, dates, or the values of a category; of many, as many as fit. */
function panelAxis(curve, left, right, askew) {
  if (curve.levels) {
    const n = curve.levels.length, x = linear([-0.5, n - 0.5], [left, right]);
    const short = shortAll(curve.levels, n > 4 ? 9 : askew ? 11 : 14);
    const each = Math.ceil(LINE * n / (right - left)), at = curve.levels.map((_, i) => i);
    return {x, at, found: at.filter(i => i % each === 0), text: i => short[i]};
  }
  const ends = extent(curve.edges), x = linear(ends, [left, right]), middle = (ends[0] + ends[1]) / 2;
  if (isDates(curve)) return {x, at: curve.edges, found: [...new Set([ends[0], middle, ends[1]])], text: day};
  const many = ticks(ends[0] === ends[1] ? around(ends, 1) : ends, 4);
  const most = right + (curve.missing ? -3 * LETTER : 8); // "missing" stands behind
  const fits = value => value >= ends[0] && value <= ends[1] && x(value) + many.text(value).length * LETTER / 2 <= most;
  return {x, at: curve.edges, found: many.found.filter(fits), text: many.text};
}

/** Tell whether the texts of values would touch, were they level. */
function wouldTouch(levels, width) {
  const longest = Math.max(...shortAll(levels, 14).map(text => text.length));
  return levels.length > 4 || (longest + 1) * LETTER > width / levels.length;
}

function drawPanel(curve, id, domain) {
  const width = widthOf(id), left = 36, askew = curve.levels && wouldTouch(curve.levels, width - left - 8);
  const right = width - (curve.missing ? 40 : askew ? 20 : 8), top = 8, bottom = 170;
  const node = chart(id, curve.name, "The places of its values along the first axes; the arrow keys walk through them.", width,
    bottom + (askew ? 62 : 22));
  const {x, at, found, text} = panelAxis(curve, left, right, askew), y = linear(domain, [bottom, top]);
  axisLeft(node, y, ticks(domain, 4), left, width - 4, "");
  const before = value => curve.missing && isDates(curve) && value === found.at(-1) ? 16 : 0; // "missing" stands behind
  const anchor = value => !isDates(curve) ? "middle" : value === found[0] ? "start" : value === found[2] ? "end" : "middle";
  const label = value => askew ? svg("text", {transform: `translate(${x(value)} ${bottom + 12}) rotate(40)`}, text(value))
    : textAt(x(value) - before(value), bottom + 16, {"text-anchor": anchor(value)}, text(value));
  node.append(svg("g", {class: "axis"}, found.map(label)));
  if (curve.missing) {
    node.append(svg("path", {class: "grid", d: `M${right + 6} ${top}V${bottom}`}),
      textAt(width - 2, bottom + 16, {class: "faint", "text-anchor": "end"}, "missing"));
  }
  const spots = [];
  curve.places.forEach((places, axis) => {
    const group = svg("g", {class: color(axis)}), line = places.map((value, i) => [x(at[i]), y(value)]);
    if (!curve.levels) group.append(svg("path", {class: "curve", d: path(line)}));
    const put = (px, py, shownValue, value) => {
      group.append(svg("path", {class: "mark", d: shape(axis, px, py, curve.levels ? 5 : 3.5)}));
      spots.push({x: px, y: py, lines: () => [`${nameOf(curve)}: ${shownValue}`, `axis ${axis + 1}: ${number(value)}`]});
    };
    const said = i => curve.levels ? curve.levels[i] : isDates(curve) ? day(at[i]) : number(at[i]);
    line.forEach(([px, py], i) => put(px, py, said(i), places[i]));
    if (curve.missing) put(width - 20, y(curve.missing[axis]), "missing", curve.missing[axis]);
    node.append(group);
  });
  explore(node, spots);
}

function startColumns() {
  const {columns} = data;
  if (!columns || !columns.effects.length) return;
  const {axes, effects, curves: panels, squared} = columns;
  const [one, two] = (squared ? [1, 4] : [2, 4]).map(power => `${(100 * Math.exp(-power)).toPrecision(2)}%`);
  const hiddenEffects = columns.n_columns - Math.min(SHOWN_EFFECTS, effects.length);
  section("What the columns do", html("p", {}, "NCA tables gives every value of a column a place and adds up the places of the "
    + `values of a row: rows with ${labels ? "the same class" : "similar numbers"} come to lie together. All rows vote for a new `
    + `one, a row at distance 1 with ${one} of the weight of one at the same place, at distance 2 with ${two}. The bars say how `
    + "far each column moves the rows from their mean; a column with a short bar hardly matters."), plot("effects"),
    html("p", {class: "aside", id: "effects-more"},
      hiddenEffects > 0 ? `${counted(hiddenEffects, "more column")} move${hiddenEffects === 1 ? "s" : ""} the rows less.` : null),
    html("h3", {}, "Where the values of a column lie"),
    aside("The most important columns: values at the same height count as equal, and values far apart tell rows apart, in the "
      + "distances of the vote. Between the marks, the edges of the bins, a number moves evenly; beyond the last it moves no "
      + "more. Learned from all rows."),
    html("div", {class: "key"}, axes.map((share, axis) => html("span", {}, icon(axis, color(axis), true),
      `axis ${axis + 1} (${percent(100 * share)} of the variance)`))),
    html("div", {id: "panels"}, panels.map((curve, i) => html("figure", {},
      html("figcaption", {}, shorten(nameOf(curve), 40)), plot(`panel-${i}`)))));
  const heights = panels.flatMap(curve => [...curve.places.flat(), ...(curve.missing || [])]);
  const domain = widen(extent([...heights, -LEAST_EFFECT / 2, LEAST_EFFECT / 2]), 0.06);
  drawings.push(drawEffects, () => panels.forEach((curve, i) => drawPanel(curve, `panel-${i}`, domain)));
}

// ---- Maps of held-out rows ----

const hidden = new Set(); // classes

/** Return the scales of two dimensions, with the same unit unless one would vanish. */
function plane(map, left, right, top, bottom) {
  const xs = widen(extent(map.x), 0.04), ys = widen(extent(map.y), 0.04);
  const unit = [(xs[1] - xs[0]) / (right - left - 16), (ys[1] - ys[0]) / (bottom - top - 16)], most = Math.max(...unit);
  const [cx, cy] = [(xs[0] + xs[1]) / 2, (ys[0] + ys[1]) / 2], [ux, uy] = most / Math.min(...unit) < 8 ? [most, most] : unit;
  return [i => (left + right) / 2 + (map.x[i] - cx) / ux, i => (top + bottom) / 2 - (map.y[i] - cy) / uy];
}

/** Return the scales of one dimension: upwards the number, or a strip for each class that is there. */
function strip(node, map, answers, left, right, top, bottom) {
  const present = [...new Set(answers)].sort((a, b) => a - b), place = new Map(present.map((value, i) => [value, i]));
  const ys = labels ? [-0.5, present.length - 0.5] : widen(extent(answers), 0.04), y = linear(ys, [bottom - 8, top + 8]);
  const short = labels ? shortAll(labels, Math.floor(left / 7.5)) : [];
  const names = {found: present.map((_, i) => i), text: i => short[present[i]]};
  axisLeft(node, y, labels ? names : ticks(ys, 6), left, right, shorten(table.target, 40));
  const x = linear(widen(extent(map.x), 0.04), [left + 8, right - 8]);
  // the golden ratio spreads the rows in a strip
  return [i => x(map.x[i]), i => y(labels ? place.get(answers[i]) + 0.6 * (i * 0.618 % 1 - 0.5) : answers[i])];
}

function drawMap() {
  const map = maps[$("method").selectedIndex], width = widthOf("map"), flat = missing(map.y), right = width - 8;
  const answers = map.x.map((_, i) => data.rows.answer[i]);
  const visible = answers.map((_, i) => i).filter(i => !hidden.has(answers[i]));
  const left = !flat ? 8 : labels ? Math.min(140, width / 3) : 56, top = flat ? 24 : 8;
  const bottom = top + (flat && labels ? Math.max(160, 22 * new Set(answers).size) : Math.min(560, Math.max(300, 0.75 * width)));
  const node = chart("map", `Map of held-out rows by ${map.name}`,
    `${counted(map.x.length, "row")}; the arrow keys walk through them and name neighbours.`, width, bottom + 28);
  node.append(svg("rect", {class: "grid", x: left, y: top, width: right - left, height: bottom - top}));
  const [x, y] = flat ? strip(node, map, answers, left, right, top, bottom) : plane(map, left, right, top, bottom);
  node.append(textAt((left + right) / 2, bottom + 18, {class: "faint", "text-anchor": "middle"},
    flat ? "dimension 1" : "dimension 1 across, dimension 2 upwards"));
  const r = width < 560 && visible.length > 300 ? 3.2 : 4.5, heat = linear(table.range || [0, 1], [0, 100]);
  const spots = visible.map(i => {
    const [px, py] = [x(i), y(i)], value = answers[i];
    node.append(labels ? svg("path", {class: `mark ${color(value)}`, d: shape(value, px, py, r)})
      : svg("circle", {class: "heat", cx: px.toFixed(1), cy: py.toFixed(1), r, style: `--t:${heat(value).toFixed(1)}`}));
    return {x: px, y: py, lines: () => mapLines(map, i)};
  });
  explore(node, spots);
  const {held_out: count} = data.rows, drawn = count > map.x.length ? `, ${number(map.x.length)} of them drawn` : "";
  fill("map-caption", `${map.name} in ${flat ? "one dimension" : "two dimensions"}: ${map.vote} ${map.said} `
    + `(${counted(count, "row")} of the first fold${drawn}).`);
}

function mapLines(map, i) {
  const {name, values} = data.rows;
  return [`row ${name[i]}: ${shorten(answer(i), 60)}`,
    ...map.near[i].map(row => `nearest: ${shorten(answer(row), 40)} (row ${name[row]})`),
    ...Object.entries(values).map(([column, all]) => `${column}: ${shorten(number(all[i]), 60)}`)];
}

function writeLegend() {
  const short = shortAll(labels, 36);
  const chips = table.classes.map((group, place) => {
    const toggle = () => { hidden.delete(place) || hidden.add(place); refresh(); };
    return html("button", {type: "button", title: group.label, "aria-pressed": "true", click: toggle},
      icon(place, color(place)), short[place], html("small", {}, number(group.rows)));
  });
  const refresh = () => {
    chips.forEach((chip, place) => chip.setAttribute("aria-pressed", String(!hidden.has(place))));
    drawMap();
  };
  const switchAll = () => { hidden.size ? hidden.clear() : labels.forEach((_, place) => hidden.add(place)); refresh(); };
  const tools = html("div", {class: "tools"}, html("button", {type: "button", click: switchAll}, "All or none"));
  const shared = labels.length > COLORS ? ` After ${COLORS} classes, colours repeat with other shapes.` : "";
  fill("legend", html("p", {class: "aside"}, `Click a label to hide its rows or to show them.${shared}`),
    labels.length > 2 ? tools : null, html("div", {class: "chips"}, chips));
}

function startMaps() {
  if (!maps.length) return;
  const options = maps.map(map => html("option", {}, `${map.name} (${figure(map.score)})`));
  section("Maps of held-out rows",
    aside("Learned from the training rows of the first fold; only rows that were held out are drawn. Point at a row, tap it, or "
      + "use the arrow keys to see its neighbours among the training rows."),
    html("p", {}, html("label", {}, "Method ", html("select", {id: "method", change: drawMap}, options))),
    html("p", {id: "map-caption"}), plot("map"), html("div", {id: "legend"}));
  if (labels) writeLegend();
  else fill("legend", `${table.target} from ${number(table.range[0])}`, html("span", {class: "scale"}), number(table.range[1]));
  drawings.push(drawMap);
}

// ---- Scores by dimension ----

const raw = curves?.find(curve => curve.name === baseline.name);
const picked = new Map(); // of a curve its colour, null for the baseline

function drawCurves() {
  const usual = [1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000], all = values => values.map(shown);
  const series = curves.filter(curve => picked.has(curve)).map(curve => {
    const place = picked.get(curve), ends = place === null ? {} : {low: all(curve.low), high: all(curve.high)};
    const lines = i => [curve.name, `${counted(curve.dimension[i], "dimension")}: ${figure(curve.mean[i])}`];
    return {kind: place === null ? "ink" : color(place), sign: place ?? 1, x: curve.dimension, y: all(curve.mean), ...ends, lines};
  });
  drawLines("curves", `${score.title} by dimension`, {series, axes: ["dimensions", score.axis], log: true,
    level: picked.has(raw) ? shown(raw.mean.at(-1)) : null,
    marks: own => ({found: own.length <= 6 ? own : usual.filter(m => m >= own[0] && m <= own.at(-1)), text: String})});
}

function startCurves() {
  if (!curves.some(curve => curve !== raw && curve.dimension.length > 1)) return; // no line to draw
  const top = curve => [...curve.mean].sort(better)[0];
  const best = curves.filter(curve => curve !== raw).sort((a, b) => better(top(a), top(b)));
  const usual = choice.choices[0]?.params.method, chosen = best.filter(curve => curve.name === usual);
  const none = usual && usual !== baseline.name && !chosen.length;
  const all = [...(raw ? [raw] : []), ...chosen, ...best.filter(curve => curve.name !== usual)];
  const free = curve => curve === raw ? null : [...Array(COLORS).keys()].find(place => ![...picked.values()].includes(place));
  for (const curve of all.slice(0, CURVES)) picked.set(curve, free(curve));
  const items = all.map(curve => {
    const pick = () => { box.checked ? picked.set(curve, free(curve)) : picked.delete(curve); refresh(); };
    const sign = html("span", {}), box = html("input", {type: "checkbox", change: pick});
    return {curve, box, sign, label: html("label", {}, box, sign, shorten(curve.name, 60))};
  });
  const refresh = () => {
    for (const {curve, box, sign} of items) {
      box.checked = picked.has(curve);
      box.disabled = !box.checked && picked.size >= CURVES;
      const place = picked.get(curve);
      sign.replaceChildren(...(box.checked ? [place === null ? icon(1, "ink", true) : icon(place, color(place), true)] : []));
    }
    drawCurves();
  };
  section(`${score.title} by dimension`, aside("Not to choose by: the dimensions of the ranking were chosen inside "
    + "the training rows. A line is the mean over folds, the band around it spans them. "
    + (none ? `${usual}, the most frequent choice, has no dimension to choose.` : "")), plot("curves"),
    html("fieldset", {class: "key"}, html("legend", {}, "At most five curves at once"), items.map(item => item.label)));
  drawings.push(refresh);
}

// ---- Confusion ----

function drawMatrix(id, matrix, title, most) {
  const names = data.confusion.labels, count = names.length, room = widthOf(id);
  const short = shortAll(names, room < 420 ? 12 : 22);
  const margin = 10 + 6.6 * Math.max(4, ...short.map(text => text.length)), above = 0.72 * margin + 14; // where the columns' names stand askew
  const size = Math.max(14, Math.min(60, Math.floor((room - margin - above) / count)));
  const node = chart(id, title, `Shares of the held-out rows of ${counted(count, "class")} by the label they got; the arrow keys `
    + "walk through the cells.", Math.ceil(margin + size * count + above), Math.ceil(above + size * count + 4));
  const texts = svg("g", {}), spots = [];
  names.forEach((_, i) => {
    const y = above + size * i, x = margin + size * (i + 0.5);
    texts.append(textAt(margin - 6, y + size / 2 + 4, {"text-anchor": "end"}, short[i]),
      svg("text", {transform: `translate(${x + 2} ${above - 5}) rotate(-45)`}, short[i]));
    matrix[i].forEach((share, j) => {
      const right = i === j, left = margin + size * j, middle = [left + size / 2, y + size / 2];
      // right answers are left without colour: it is the errors that are looked for
      const style = right ? {class: "cell right"} : {class: "cell", style: `--t:${(70 * share / most).toFixed(1)}`};
      node.append(svg("rect", {x: left + 0.5, y: y + 0.5, width: size - 1, height: size - 1, ...style}));
      const text = size >= 30 && share >= 0.05 ? fixed(share, share > 99.9 ? 0 : 1) : "";
      texts.append(textAt(middle[0], middle[1] + 4, {class: "share"}, text));
      const lines = () => [percent(share), `true: ${names[i]}`, `predicted: ${names[j]}`];
      spots.push({x: middle[0], y: middle[1], size: size / 2, square: true, lines});
    });
  });
  node.append(texts);
  explore(node, spots);
}

function startConfusion() {
  if (!data.confusion) return;
  const {labels: names, classes, before, after, name} = data.confusion;
  const wrong = [before, after].flatMap(matrix => matrix.flatMap((row, i) => row.filter((_, j) => i !== j)));
  const most = Math.max(1, extent(wrong)[1]), titles = [`Before: ${baseline.name}`, `After: ${name}`];
  const which = names.length < classes ? ` These are the ${names.length} most confused of ${classes} classes.` : "";
  const figures = pair(["before", "after"].map((id, i) => [titles[i], plot(id, "wide")]));
  figures.classList.toggle("two", names.length <= 12);
  section("Confusion between classes", aside("Rows: the true class; columns: the label that its held-out rows got, in percent. "
    + `Errors are coloured.${which}`), figures);
  ["before", "after"].forEach((id, i) => drawings.push(() => drawMatrix(id, [before, after][i], titles[i], most)));
}

// ---- Rows to look at ----

const FEWEST_ROWS = 25, MOST_ROWS = 200;

function startRows() {
  const {rows, twins, far, expected} = data, target = shorten(table.target, 40), n = rows.length, first = Math.round(expected);
  const drawn = rows.slice(0, Math.min(MOST_ROWS, Math.max(FEWEST_ROWS, first)));
  const named = list => list.flatMap((one, i) => [i ? ", " : "", `${number(one.row)} `, html("bdi", {}, one.label)]);
  const sure = row => 100 * Math.min(Math.max(row.probability, 0.01), 0.99); // never certain
  section(first ? "Labels that are probably wrong" : "The least certain labels", aside(`The first ${drawn.length} rows. Each is labelled by rows near it in a space `
    + "that was learned without it. The probability assumes that labels were replaced at random, as often as among the rows with the "
    + "surest votes; 'expected' is the expected number of wrong labels down to this row; rows beyond the expected total are faint. "
    + "Rows are numbered as in the file, the first is 0."),
    grid(drawn.map((row, at) => ({...row, at})), [
      ["row", row => [number(row.row), row.name === String(row.row) ? null : html("small", {}, ` ${row.name}`)],
        drawn.some(row => row.name !== String(row.row)) ? "named" : null],
      [target, row => row.label], ["probably", row => row.predicted],
      ["wrong", row => `${fixed(sure(row), 0)}%`, "number"],
      ["", row => html("span", {class: "track"}, html("span", {style: `width:${fixed(100 * row.probability, 0)}%`})), "minor"],
      ["expected", row => fixed(row.expected, 1), "number minor"], ["nearest rows", row => named(row.neighbors), "minor"],
    ], row => row.at < first ? null : "rest"));
  const x = [0, ...rows.map((_, i) => i + 1)], y = [0, ...rows.map(row => row.expected)], most = Math.max(1, y.at(-1));
  const lines = i => [`first ${counted(x[i], "row")}`, `${fixed(y[i], 1)} wrong labels expected`];
  section("How many to look at", aside("Expected wrong labels among the first rows; dashed: if all were wrong."),
    plot("look"));
  drawings.push(() => drawLines("look", "Expected wrong labels among the first rows", {axes: ["rows looked at, in this order", ""],
    domain: [0, 1.05 * most], series: [{kind: "ink", dashed: true, x: [0, Math.min(n, most)], y: [0, Math.min(n, most)]},
      {kind: "unclear", x, y, lines}]}));
  const none = html("p", {}, "none");
  section("Contradictory twins", aside(`Rows that are equal in all features, but not in ${target}.`),
    twins.groups ? grid(twins.first, [["rows", named]]) : none);
  section("Far from all others", aside("Distance to the fifth nearest row, in units of the median, and the column in which the row "
    + "differs most."), far.rows ? grid(far.first, [["row", row => number(row.row), "number"],
    ["times as far", row => plain(row.ratio, {factor: 1}), "number"], ["mostly in", row => row.column]]) : none.cloneNode(true));
}

// ---- Vectors ----

const SHORT = {"precision@1": "P@1", "precision@10": "P@10", "recall@100": "R@100", "nDCG@10": "nDCG@10", MAP: "MAP",
  MRR: "MRR"};
const share = value => missing(value) ? "" : fixed(100 * value, 1);
const change = of => [`${of.difference < 0 ? "" : "+"}${share(of.difference)} `,
  html("small", {}, `[${share(of.low)}, ${share(of.high)}]`)];
const partOf = (part, queries) => `${["queries", "all"].includes(part) ? "" : `${part}: `}${number(queries)} held-out queries`;

function startVectors() {
  const {vectors, part, queries, taken, recommended} = data, raw = vectors[0], parts = Object.keys(queries);
  const kinds = [...new Set(vectors.map(one => one.kind))], paint = i => /^(raw|centred)$/.test(kinds[i]) ? "ink" : color(i);
  const says = taken === recommended ? "recommended" : "taken", known = one => one !== raw && !missing(one.by_part[part].low);
  section("Quality and size", aside("Up and to the left is better. Dashed: the raw vectors. A bar is the 95 % interval of the "
    + "difference from them, added to their score: where it crosses the dashed line, no difference is shown. The ring marks the "
    + `vectors that are ${says}: ${taken}.`),
    html("div", {class: "key"}, kinds.map((kind, i) => html("span", {}, icon(i, paint(i), true), kind))),
    pair(parts.map((of, i) => [partOf(of, queries[of]), plot(`quality-${i}`)])));
  const farFrom = (size, [first, last]) => Math.log(last / size) > 0.14 * Math.log(last / first); // whose label stands there
  const powers = own => ({found: own.filter(size => size === own.at(-1)
    || Number.isInteger(Math.log2(size)) && farFrom(size, [own[0], own.at(-1)])), text: number});
  parts.forEach((of, place) => drawings.push(() => {
    const at = one => 100 * one.by_part[of].scores[score], from = end => 100 * (raw.by_part[of].scores[score] + end);
    const series = kinds.map((kind, i) => {
      const some = vectors.filter(one => one.kind === kind).sort((a, b) => a.bytes - b.bytes), bars = some.every(known);
      const [low, high] = ["low", "high"].map(end => some.map(one => from(one.by_part[of][end]))), ends = bars && {bars, low, high};
      const lines = i => [some[i].name, `${SHORT[score]} ${fixed(at(some[i]), 1)} %, ${counted(some[i].bytes, "byte")}`,
        some[i].status];
      return {kind: paint(i), sign: i, x: some.map(one => one.bytes), y: some.map(at), lines, ...ends,
        ringed: some.findIndex(one => one.name === taken)};
    });
    drawLines(`quality-${place}`, partOf(of, queries[of]), {series, axes: ["bytes a vector", `${SHORT[score]}, %`], log: true,
      level: at(raw), marks: powers});
  }));
  const shownScores = Object.keys(SHORT).filter(name => name !== "MAP" || name === score);
  const other = parts.find(of => of !== part);
  section("The vectors", grid(vectors, [
    ["vectors", one => one.name], ["bytes", one => number(one.bytes), "number"],
    ...shownScores.map(name =>
      [SHORT[name], one => share(one.by_part[part].scores[name]), name === score ? "number" : "number minor"]),
    [`${SHORT[score]} − raw`, one => one === raw ? "" : change(one.by_part[part]), "number"],
    ...other ? [[`${other} − raw`, one => one === raw ? "" : change(one.by_part[other]), "number minor"]] : [],
    ["p", one => pValue(one.p), "number minor"], ["fit", one => seconds(one.fit_seconds), "number minor"],
    ["verdict", one => missing(one.p) ? "" : one.status, "status"],
  ], one => `${one.status} ${one.name === taken ? "choice" : ""}`),
    aside("P@k: the share of relevant ones among the first k. R@100: the share of the relevant ones that is among the first 100. "
      + "nDCG@10: gains of the first ten ranks, discounted by log2(1 + rank), relative to the ideal order. MRR: 1 / rank of the "
      + `first relevant one. All in percent, candidates ranked by cosine; ${partOf(part, queries[part])}. There are ${counted(table.rows, "vector")} of ${counted(table.dimensions, "dimension")}.`), listOf(data.notes));
}

function startMatches() {
  const {sentences, parts} = data.matches, none = one => missing(one.cosine);
  const LINES = [["right", "precision", {kind: "c0"}], ["recall", "recall", {kind: "c1"}],
    ["false_answers", "false answers", {kind: "ink", dashed: true}]];
  const key = LINES.map(([, name, {kind, dashed}]) =>
    html("span", {}, iconOf(kind, svg("path", {class: dashed ? "dashed" : "curve", d: "M0 8H16"})), name));
  const band = iconOf("c0", svg("rect", {class: "band", y: 3, width: 16, height: 10}));
  section("Which cosine is a match?", sentences.map(text => html("p", {}, minus(text))),
    html("div", {class: "key"}, key, html("span", {}, band, "precision, down to its 95 % lower bound"),
      html("span", {}, "vertical: cosine at which a precision is promised")),
    pair(parts.map(({part, queries}, i) => [partOf(part, queries), plot(`matches-${i}`)])),
    grid(parts.flatMap(({part, promises}) => promises.map(one => ({...one, part}))), [
      ["matches", one => one.part], ["precision", one => fixed(100 * one.precision, 0), "number"],
      ["cosine at least", one => none(one) ? "none" : fixed(one.cosine, 4), "number"],
      ...LINES.map(([key, name]) => [key === "right" ? key : name, one => share(one[key]), "number"]),
    ]));
  parts.forEach(({part, queries, promises, curve}, place) => drawings.push(() => {
    const all = key => curve[key].map(value => missing(value) ? null : 100 * value);
    const bound = all("bound").map(value => value > 0 ? value : null);
    const sure = all("right").map((value, i) => bound[i] && value);
    const series = LINES.map(([key, name, style]) => ({...style, x: curve.cosine, y: all(key),
      lines: i => [`cosine at least ${fixed(curve.cosine[i], 4)}`, `${name} ${share(curve[key][i])} %`]}));
    Object.assign(series[0], {low: bound, high: sure});
    const rules = new Map(promises.filter(one => !none(one)).map(one => [one.cosine, `${fixed(100 * one.precision, 0)} %`]));
    drawLines(`matches-${place}`, partOf(part, queries), {series, axes: ["minimum cosine of a match", "%"], domain: [0, 102],
      rules: [...rules].map(([at, text]) => ({at, text}))});
  }));
}

// ---- All of it ----

const drawAll = () => { hideTip(); for (const draw of drawings) draw(); };
document.querySelector("h1").textContent = clean(document.querySelector("h1").textContent);
const [answerLine, ...otherLines] = (data.verdict ? data.verdict.split("\n") : data.sentences).map(minus);
fill("verdict", html("strong", {}, answerLine), otherLines.map(line => html("span", {}, line)));
if (ranking.length) {
  writeHead();
  writeFacts();
  startRanking();
  writeTable();
  startColumns();
  startMaps();
  startCurves();
  startConfusion();
  writeMethods();
} else if (data.vectors) {
  startVectors();
  startMatches();
} else {
  startRows();
  writeFacts();
}
writeEnd();
drawAll();
let drawnFor = innerWidth;
addEventListener("resize", () => { // a phone's address bar that comes and goes changes the height alone
  if (drawnFor !== innerWidth) requestAnimationFrame(drawAll);
  drawnFor = innerWidth;
});
document.addEventListener("pointerdown", event => { if (!event.target.closest("svg")) hideTip(); });
document.documentElement.dataset.drawn = "yes";
}
