"use strict";
// The page of `nearkin compare`. Every text comes from the JSON document in #data and is untrusted: it becomes text nodes and
// attributes, never markup. Colours are classes, so that dark mode and print need no redrawing.
{
const data = JSON.parse(document.getElementById("data").textContent);
const {table, protocol, score} = data;
const COLORS = 7; // and eight shapes, without a common factor: 56 pairs before one repeats
const MANY = 12, CURVES = 5;
const STATUS_SHAPE = {better: 2, worse: 4, unclear: 0, baseline: 1, reference: 3};

// ---- Elements ----

const $ = id => document.getElementById(id);
const SVG = "http://www.w3.org/2000/svg", HTML = "http://www.w3.org/1999/xhtml";
// control characters, and those that turn the direction of a text, become visible
const clean = text => String(text).replace(/[\u0000-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, "\ufffd");

function make(space, tag, attributes, children) {
  const node = document.createElementNS(space, tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (typeof value === "function") node.addEventListener(name, value);
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(name, clean(value));
  }
  for (const child of children.flat()) {
    if (child !== null && child !== undefined) node.append(child instanceof Node ? child : clean(child));
  }
  return node;
}
const html = (tag, attributes, ...children) => make(HTML, tag, attributes, children);
const svg = (tag, attributes, ...children) => make(SVG, tag, attributes, children);
const widthOf = id => Math.max(240, $(id).clientWidth); // a page in the background may have none
const fill = (id, ...children) => $(id).replaceChildren(...children.flat().map(c => c instanceof Node ? c : clean(c)));
const shorten = (text, most) => {
  const letters = [...clean(text)];
  return letters.length <= most ? letters.join("") : `${letters.slice(0, Math.max(1, most - 1)).join("")}…`;
};

/** Shorten texts; where this makes some of them equal, what all begin with goes first. */
function shortenAll(texts, most) {
  const all = texts.map(clean), short = all.map(text => shorten(text, most));
  let same = 0;
  while (all.length > 1 && same < all[0].length && all.every(text => text[same] === all[0][same])) same++;
  if (new Set(short).size === new Set(all).size || same < 4) return short;
  return all.map(text => shorten(`…${text.slice(same)}`, most));
}

// ---- Numbers ----

const fixed = (value, decimals) => {
  const text = value.toFixed(decimals);
  return Number(text) === 0 ? text.replace("-", "") : text.replace("-", "−");
};
const missing = value => value === null || value === undefined;
const shown = value => score.sign * score.factor * value;
const plain = value => missing(value) ? "" : fixed(shown(value), score.decimals);
const figure = value => missing(value) ? "" : `${score.prefix}${plain(value)}${score.unit}`;
const signed = value => missing(value) ? "" : (shown(value) > 0 && Number(plain(value)) !== 0 ? "+" : "") + plain(value);
const points = score.unit === "%" ? " points" : "";
const interval = row => {
  if (missing(row.low) || missing(row.high)) return "";
  const [low, high] = score.sign < 0 ? [row.high, row.low] : [row.low, row.high];
  return `${signed(low)} to ${signed(high)}`;
};
const percent = value => `${fixed(value, 1)}%`;
const number = value => {
  if (typeof value !== "number") return missing(value) ? "–" : String(value);
  if (Number.isInteger(value) && Math.abs(value) < 1e15) return value.toLocaleString("en").replace("-", "−");
  return String(Number(value.toPrecision(4))).replace("-", "−");
};
const counted = (count, thing) => `${number(count)} ${thing}${count === 1 ? "" : thing.endsWith("ss") ? "es" : "s"}`;
const pValue = p => missing(p) ? "" : p < 0.001 ? "<0.001" : String(Number(p.toPrecision(2)));
const second = value => missing(value) ? "" : table.task === "classification" ? fixed(100 * value, 1) : number(Number(value.toPrecision(3)));
const span = range => {
  if (missing(range)) return "";
  const [low, middle, high] = range;
  return low === high ? number(middle) : `${number(middle)} (${number(low)}–${number(high)})`;
};
const seconds = value => missing(value) ? "" : value < 1 ? `${fixed(1000 * value, 0)} ms` : `${fixed(value, 1)} s`;
const inText = text => /^[A-Z][a-z]/.test(text) ? text[0].toLowerCase() + text.slice(1) : text;
const mean = values => values.reduce((sum, value) => sum + value, 0) / values.length;

// ---- What the document holds ----

const ORDER = {choice: 0, method: 1, baseline: 1, reference: 2};
const ranking = [...data.ranking].sort((a, b) => ORDER[a.kind] - ORDER[b.kind] || b.score - a.score);
const baseline = ranking.find(row => row.kind === "baseline");
const contestants = ranking.filter(row => row.kind === "method");
const leader = ranking.find(row => row.kind === "choice") || contestants.find(row => row.status === "better") || contestants[0] || baseline;
const labels = table.classes ? table.classes.map(group => group.label) : null;
const answer = value => missing(value) ? "–" : labels ? labels[value] : number(value);
const maps = (data.maps || []).map(map => ({ // what all share may stand in the first alone
  ...map, row: map.row || data.maps[0].row, answer: map.answer || data.maps[0].answer, values: map.values || data.maps[0].values}));
const drawings = [];

// ---- Scales, axes, shapes ----

const linear = ([a, b], [c, d]) => value => a === b ? (c + d) / 2 : c + (value - a) / (b - a) * (d - c);
const extent = values => values.reduce(([low, high], value) => [Math.min(low, value), Math.max(high, value)], [Infinity, -Infinity]);
const widen = ([low, high], share) => {
  const more = low === high ? Math.max(1e-6, Math.abs(low) * 0.05) : share * (high - low);
  return [low - more, high + more];
};

function ticks([low, high], count) {
  const rough = (high - low) / count, power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find(factor => factor * power >= rough * 0.999);
  const found = [];
  for (let place = Math.ceil(low / step - 1e-9); place * step <= high + step * 1e-9; place++) found.push(place * step);
  return {found, text: value => fixed(value, Math.max(0, Math.min(12, -Math.floor(Math.log10(step) + 1e-9))))};
}

/** Draw the axis below: ticks of `scale` at `found`, grid lines up to `top`, and a title. */
function axisBelow(node, scale, {found, text}, top, bottom, title) {
  const group = svg("g", {class: "axis"});
  for (const value of found) {
    group.append(svg("path", {class: "grid", d: `M${scale(value)} ${top}V${bottom}`}),
      svg("text", {x: scale(value), y: bottom + 16, "text-anchor": "middle"}, text(value)));
  }
  const [left, right] = [scale.range[0], scale.range[1]];
  group.append(svg("text", {x: (left + right) / 2, y: bottom + 34, "text-anchor": "middle"}, title));
  node.append(group);
}

/** Draw the axis on the left, its title above it. */
function axisLeft(node, scale, {found, text}, left, right, title) {
  const group = svg("g", {class: "axis"});
  for (const value of found) {
    group.append(svg("path", {class: "grid", d: `M${left} ${scale(value)}H${right}`}),
      svg("text", {x: left - 6, y: scale(value) + 4, "text-anchor": "end"}, text(value)));
  }
  group.append(svg("text", {x: 0, y: 12}, title));
  node.append(group);
}
const ranged = (domain, range) => Object.assign(linear(domain, range), {range});

// Eight shapes by their corners, around 0, with about the same area
const round = (count, reach) => [...Array(count).keys()].map(i =>
  [reach(i) * Math.sin(2 * Math.PI * i / count), -reach(i) * Math.cos(2 * Math.PI * i / count)]);
const CROSS = [[-0.4, -1.1], [0.4, -1.1], [0.4, -0.4], [1.1, -0.4], [1.1, 0.4], [0.4, 0.4], [0.4, 1.1], [-0.4, 1.1], [-0.4, 0.4],
  [-1.1, 0.4], [-1.1, -0.4], [-0.4, -0.4]];
const SHAPES = [round(16, () => 1), [[-0.9, -0.9], [0.9, -0.9], [0.9, 0.9], [-0.9, 0.9]], [[0, -1.15], [1.1, 0.85], [-1.1, 0.85]],
  [[0, -1.25], [1.05, 0], [0, 1.25], [-1.05, 0]], [[0, 1.15], [1.1, -0.85], [-1.1, -0.85]], CROSS,
  CROSS.map(([x, y]) => [0.75 * (x - y), 0.75 * (x + y)]), round(10, i => i % 2 ? 0.55 : 1.3)];
const path = corners => `M${corners.map(([x, y]) => `${x.toFixed(1)} ${y.toFixed(1)}`).join("L")}`;
const shape = (kind, x, y, r) => `${path(SHAPES[kind % SHAPES.length].map(([dx, dy]) => [x + r * dx, y + r * dy]))}Z`;
const icon = (kind, name, line = false) => svg("svg", {class: `icon ${name}`, viewBox: "0 0 16 16", "aria-hidden": "true"},
  line ? svg("path", {class: "curve", d: "M0 8H16"}) : null, svg("path", {class: "mark", d: shape(kind, 8, 8, 5)}));

// ---- Charts that can be explored ----

/** Put an empty chart into a place and return it. */
function chart(host, title, description, width, height) {
  const node = svg("svg", {viewBox: `0 0 ${width} ${height}`, width, height, role: "img", tabindex: 0,
    "aria-label": `${title}. ${description}`}, svg("title", {}, title), svg("desc", {}, description));
  // an empty title of its own keeps the browser from showing the chart's as a second tooltip
  node.append(svg("rect", {width, height, fill: "transparent"}, svg("title")));
  host.replaceChildren(node);
  return node;
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

/**
 * Let a pointer and the arrow keys walk through `places`, each {x, y, lines(), size, square}. With walk "order" an arrow leads
 * to the next place by that coordinate, so that none is missed; with "near" to the nearest one in that direction.
 */
function explore(node, places, walk, distance = (p, x, y) => Math.hypot(p.x - x, p.y - y)) {
  const ring = svg("rect", {class: "ring", visibility: "hidden"});
  node.append(ring);
  let now = -1;
  const hide = () => { ring.setAttribute("visibility", "hidden"); hideTip(); };
  const show = place => {
    const point = places[now = place], r = point.size || 8;
    const box = {x: point.x - r, y: point.y - r, width: 2 * r, height: 2 * r, rx: point.square ? 0 : r, visibility: "visible"};
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
    const along = p => dx * p.x + dy * p.y, across = p => dy * p.x + dx * p.y, here = places[now];
    if (walk === "order") {
      const order = places.map((_, i) => i).sort((i, j) => along(places[i]) - along(places[j]) || (i - j) * (dx + dy));
      return order[Math.min(order.length - 1, order.indexOf(now) + 1)];
    }
    let best = now, least = Infinity;
    places.forEach((p, i) => {
      const ahead = along(p) - along(here), cost = ahead + 3 * Math.abs(across(p) - across(here));
      if (ahead > 0.5 && cost < least) [best, least] = [i, cost];
    });
    return best;
  };
  node.addEventListener("pointermove", point);
  node.addEventListener("pointerdown", point);
  node.addEventListener("pointerleave", event => { if (event.pointerType === "mouse") hide(); });
  node.addEventListener("pointercancel", hide);
  node.addEventListener("blur", hide);
  node.addEventListener("keydown", event => {
    if (event.key === "Escape") return hide();
    const step = ARROWS[event.key], edge = {Home: 0, End: places.length - 1}[event.key];
    if ((!step && edge === undefined) || !places.length || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    show(edge !== undefined ? edge : now < 0 ? 0 : next(step));
  });
}

// ---- Head, facts, texts ----

function copyButton(id, source) {
  const button = $(id), said = button.textContent;
  button.addEventListener("click", () => {
    getSelection().selectAllChildren($(source)); // so that it can still be copied by hand
    button.textContent = document.execCommand("copy") ? "Copied" : "Selected: now copy it by hand";
    setTimeout(() => { button.textContent = said; }, 2500);
  });
}

function writeHead() {
  const tile = (name, value, kind) => value ? html("div", {class: kind}, html("dt", {}, name), html("dd", {}, value)) : null;
  if (leader) {
    const against = leader === baseline ? "" : signed(leader.difference) + points;
    fill("keys", [tile(`${leader.name}, ${inText(score.title)}`, figure(leader.score)),
      tile(baseline ? `against ${baseline.name}` : "difference", leader === baseline ? "" : against),
      tile("95% interval", leader === baseline ? "" : interval(leader)),
      tile(protocol.tests > 1 ? `p, of ${protocol.tests} tests` : "p", pValue(leader.p))].filter(Boolean));
    if (leader.kind === "choice") {
      fill("promise", `${leader.name}: method, dimension and number of neighbours are all chosen inside the training rows, so this `
        + "is the figure that a saved model can promise.");
    }
  }
  if (data.quote) fill("quote", data.quote);
  else $("quotable").hidden = true;
  copyButton("copy-quote", "quote");
  fill("notes", (data.notes || []).map(note => html("li", {}, note)));
}

function writeFacts() {
  const classes = table.classes || [], twins = table.twins || {rows: 0};
  const sampled = data.ranking.filter(row => row.learned_rows && row.learned_rows < protocol.training_rows);
  const by = new Map();
  for (const row of sampled) by.set(row.learned_rows, [...(by.get(row.learned_rows) || []), row.name]);
  const unlabelled = table.labelled < table.rows ? `, ${number(table.labelled)} of them labelled` : "";
  const facts = [
    ["Rows", number(table.rows) + unlabelled],
    ["Features", number(table.features) + (table.sparse ? ", sparse" : "")],
    ["Target", `${table.target}` + (labels ? `, ${counted(classes.length, "class")}` : table.range ? `, from ${number(table.range[0])} to ${number(table.range[1])}` : "")],
    ["Classes", classes.length ? classes.slice(0, 8).map(c => `${shorten(c.label, 30)} ${number(c.rows)}`).join(", ") + (classes.length > 8 ? ", …" : "") : ""],
    ["Largest class", missing(table.largest_class) ? "" : `${percent(100 * table.largest_class)} of the rows`],
    ["Groups", table.groups ? `${number(table.groups)}, none of them split between folds` : ""],
    ["Held out", `${counted(protocol.folds, "fold")}` + (protocol.repeats > 1 ? ` in ${protocol.repeats} repeats` : "")
      + `, about ${number(protocol.training_rows)} training rows each` + (protocol.scaled ? ", standardized on those" : ", not standardized")],
    ["Detectable", missing(protocol.detectable) ? "" : `differences from about ${plain(protocol.detectable).replace("−", "")}${points}; smaller ones stay unclear`],
    ["Twins", twins.rows ? `${counted(twins.rows, "row")} (${percent(100 * twins.share)}) equal to another row${twins.kept ? ", kept as they are" : ""}` : "", "warn"],
    ["Left out", (table.left_out || []).map(c => `${c.column} (${c.reason})`).join("; ")],
    ["Suspicious", (table.suspicious || []).map(c => `${c.column} alone reaches ${figure(c.score)}`).join("; "), "warn"],
    ["May be groups", (table.group_hints || []).length ? `${table.group_hints.join(", ")}: if rows of one belong together, say so with --groups` : "", "warn"],
    ["Samples", [...by].map(([rows, names]) => `${names.join(", ")} learned from ${number(rows)} of ${number(protocol.training_rows)} rows`).join("; ")],
  ];
  fill("facts", facts.filter(([, value]) => value).map(([name, value, kind]) => [html("dt", {}, name), html("dd", {class: kind}, value)]).flat());
}

function writeEnd() {
  fill("methods", ranking.filter(row => row.summary).map(row =>
    html("div", {}, html("dt", {}, row.name), html("dd", {}, row.summary + (row.params ? ` (${row.params})` : "")))));
  const quoted = text => /^[\w@%+=:,.\/-]+$/.test(text) ? text : `'${String(text).replaceAll("'", `'"'"'`)}'`;
  const command = (data.command || []).map(quoted).join(" ");
  const neighbors = missing(protocol.neighbors) ? "number of neighbours chosen inside the training rows" : counted(protocol.neighbors, "nearest neighbour");
  const settings = {
    command,
    score: `${score.title}; beside it ${String(protocol.second_score || "nothing").replaceAll("_", " ")}`,
    vote: neighbors,
    folds: `${protocol.folds} in ${counted(protocol.repeats, "repeat")}; ${counted(protocol.held_out_rows, "row")} held out`,
    scaling: protocol.scaled ? "standardized on the training rows" : "none",
    test: protocol.test,
    seed: data.seed,
    took: seconds(data.seconds),
    versions: [`nearkin ${data.nearkin}`, ...Object.entries(data.versions || {}).map(([name, version]) => `${name} ${version}`)].join(", "),
    machine: data.machine,
  };
  fill("settings", Object.entries(settings).filter(([, value]) => !missing(value) && value !== "").map(([name, value]) =>
    html("tr", {}, html("th", {scope: "row"}, name), html("td", {id: name === "command" ? name : null}, value))));
  copyButton("copy-command", "command");
}

// ---- The ranking ----

/** Return the ends of the score axis: what lies far below the others, such as a majority vote, does not squeeze these. */
function rankingDomain() {
  const main = ranking.filter(row => row.kind !== "reference"), means = main.map(row => row.score).sort((a, b) => a - b);
  const laid = row => baseline && !missing(row.low) ? [baseline.score + row.low, baseline.score + row.high] : [];
  const spread = rows => extent(rows.flatMap(row => [...(row.folds || []), row.score, ...laid(row)]));
  const best = means.at(-1), middle = means[Math.floor(means.length / 2)], most = spread(main.filter(row => row.score >= middle))[1];
  const low = Math.max(spread(main)[0], middle - 4 * Math.max(best - middle, most - best, 0.01 * Math.abs(best)));
  const near = ranking.map(row => row.score).filter(value => value > low - 0.4 * (most - low) && value < most + 0.4 * (most - low));
  return widen(extent([low, most, ...near]).map(shown).sort((a, b) => a - b), 0.03);
}

function drawRanking() {
  const host = $("ranking"), width = widthOf("ranking"), narrow = width < 560, step = narrow ? 36 : 26;
  const left = narrow ? 4 : Math.min(230, 20 + 6.6 * Math.max(...ranking.map(row => clean(row.name).length))), right = width - 56;
  const gaps = ranking.map((row, i) => i && row.kind !== ranking[i - 1].kind && (row.kind === "reference" || ranking[i - 1].kind === "choice") ? 14 : 0);
  const places = [];
  let at = 8;
  for (const gap of gaps) { at += gap + step; places.push(at - (narrow ? 10 : step / 2)); }
  const top = 4, bottom = at + 6;
  const node = chart(host, `Ranking by ${inText(score.title)}`,
    "A line a method: mean, folds and the 95% interval of its difference. Up and down arrows walk through the methods; the table below holds the figures.",
    width, bottom + 42);
  const domain = rankingDomain(), scale = ranged(domain, [left + 8, right]);
  axisBelow(node, scale, ticks(domain, narrow ? 4 : 8), top, bottom, score.axis);
  const inside = value => value >= domain[0] && value <= domain[1];
  const clip = value => scale(Math.min(domain[1], Math.max(domain[0], value)));
  if (baseline) node.append(svg("path", {class: "dashed", d: `M${clip(shown(baseline.score))} ${top}V${bottom}`}));
  const spots = ranking.map((row, i) => {
    const y = places[i], value = shown(row.score), x = clip(value);
    const group = svg("g", {class: row.status});
    if (gaps[i]) node.append(svg("path", {class: "grid", d: `M0 ${y - (narrow ? 30 : step / 2 + 7)}H${width}`}));
    if (baseline && !missing(row.low) && row !== baseline) {
      const ends = [row.low, row.high].map(end => clip(shown(baseline.score + end))).sort((a, b) => a - b);
      group.append(svg("rect", {class: "interval", x: ends[0], y: y - 7, width: Math.max(1, ends[1] - ends[0]), height: 14, rx: 3}));
    }
    (row.folds || []).forEach((fold, number) => {
      if (row.folds.length > 1 && inside(shown(fold))) group.append(svg("circle", {class: "fold", cx: scale(shown(fold)), cy: y + 10 * (number * 7 % 15 / 14 - 0.5), r: 2.2}));
    });
    // a value outside the axis becomes an arrow at its edge
    const out = inside(value) ? null : value < domain[0] ? [[5, -6], [-5, 0], [5, 6]] : [[-5, -6], [5, 0], [-5, 6]];
    group.append(svg("path", {class: "mark", d: out ? `${path(out.map(([dx, dy]) => [x + dx, y + dy]))}Z` : shape(STATUS_SHAPE[row.status] || 0, x, y, 6)}));
    const strong = row.kind === "choice" || row.kind === "baseline" ? "name strong" : row.kind === "reference" ? "name faint" : "name";
    const name = svg("text", narrow ? {x: 4, y: y - 11, class: strong} : {x: left - 4, y: y + 4, "text-anchor": "end", class: strong},
      svg("title", {}, row.name), shorten(row.name, narrow ? Math.floor(width / 7) : 32));
    node.append(group, name, svg("text", {x: width - 2, y: y + 4, "text-anchor": "end", class: strong}, plain(row.score)));
    return {x, y, lines: () => rankingLines(row)};
  });
  explore(node, spots, "order", (p, x, y) => Math.abs(p.y - y));
}

function rankingLines(row) {
  const [low, high] = extent((row.folds || []).map(shown));
  return [row.name, `${figure(row.score)}${missing(row.deviation) ? "" : ` ± ${fixed(score.factor * row.deviation, score.decimals)}`}, ${row.status}`,
    missing(row.difference) || row === baseline ? null : `${signed(row.difference)}${points} against ${baseline ? baseline.name : "the baseline"}`
      + (interval(row) ? `, 95% interval ${interval(row)}` : "") + (missing(row.p) ? "" : `, p ${pValue(row.p)}`),
    (row.folds || []).length > 1 ? `folds from ${fixed(low, score.decimals)} to ${fixed(high, score.decimals)}` : null].filter(Boolean);
}

function writeRankingKey() {
  const said = {better: "better", worse: "worse", unclear: "unclear: may be chance", baseline: "baseline, and its dashed line", reference: "reference"};
  const used = Object.keys(said).filter(status => ranking.some(row => row.status === status));
  const many = ranking.some(row => (row.folds || []).length > 1), wide = ranking.some(row => !missing(row.low));
  const band = svg("svg", {class: "icon unclear", viewBox: "0 0 16 16", "aria-hidden": "true"}, svg("rect", {class: "interval", y: 3, width: 16, height: 10, rx: 3}));
  const dot = svg("svg", {class: "icon unclear", viewBox: "0 0 16 16", "aria-hidden": "true"}, svg("circle", {class: "fold", cx: 8, cy: 8, r: 2.5}));
  fill("ranking-key", [...used.map(status => html("span", {}, icon(STATUS_SHAPE[status], status), said[status])),
    wide ? html("span", {}, band, "95% interval of the difference, laid from the baseline") : null,
    many ? html("span", {}, dot, "a fold") : null].filter(Boolean));
  fill("ranking-caption", `${score.title} on held-out rows; ${baseline ? `every difference is to ${baseline.name}` : "no baseline"}.`
    + (ranking.some(row => row.kind === "reference") ? " The references, no k-NN, stand below for comparison." : "")
    + " Sort the table by its headings.");
}

function writeTable() {
  const has = name => ranking.some(row => !missing(row[name]));
  const withDeviation = row => [plain(row.score), missing(row.deviation) ? null : html("span", {class: "minor"}, ` ± ${fixed(score.factor * row.deviation, score.decimals)}`)];
  const of = name => row => row === baseline ? "" : signed(row[name]);
  const columns = [
    {title: "method", cell: row => row.name, key: row => clean(row.name).toLowerCase(), text: true},
    {title: inText(score.title) + (score.unit ? `\u00a0${score.unit}` : ""), cell: withDeviation, key: row => shown(row.score)},
    {title: String(protocol.second_score || "").replaceAll("_", " "), cell: row => second(row.second), key: row => row.second, minor: true, hide: !has("second")},
    {title: "difference", cell: of("difference"), key: row => missing(row.difference) ? null : shown(row.difference)},
    {title: "95% interval", cell: row => row === baseline ? "" : interval(row), key: row => missing(row.low) ? null : shown(row.low), minor: true, hide: !has("low")},
    {title: "p", cell: row => pValue(row.p), key: row => row.p, hide: !has("p")},
    {title: "verdict", cell: row => row.kind === "reference" ? "" : row.status, key: row => row.status, text: true, kind: "status"},
    {title: "dim", cell: row => span(row.dimension), key: row => row.dimension && row.dimension[1], minor: true, hide: !has("dimension")},
    {title: "k", cell: row => span(row.neighbors), key: row => row.neighbors && row.neighbors[1], minor: true, hide: !has("neighbors")},
    {title: "soft", cell: row => missing(row.soft) ? "" : `${fixed(100 * row.soft, 0)}%`, key: row => row.soft, minor: true, hide: !has("soft")},
    {title: "fit", cell: row => seconds(row.fit_seconds), key: row => row.fit_seconds, minor: true, hide: !has("fit_seconds")},
  ].filter(column => !column.hide);
  const kinds = column => [column.kind, column.minor ? "minor" : null, column.text ? null : "number"].filter(Boolean).join(" ");
  const line = row => html("tr", {class: `${row.status} ${row.kind}`}, columns.map((column, i) => i
    ? html("td", {class: kinds(column)}, column.cell(row)) : html("th", {scope: "row"}, column.cell(row))));
  const parts = [["choice"], ["method", "baseline"], ["reference"]].map(some => ranking.filter(row => some.includes(row.kind)));
  const bodies = parts.map(() => html("tbody"));
  const put = compare => parts.forEach((rows, i) => bodies[i].replaceChildren(
    ...(i === 2 && rows.length ? [html("tr", {class: "apart"}, html("th", {colspan: columns.length, scope: "rowgroup"}, "References, without k-NN"))] : []),
    ...[...rows].sort(compare).map(line)));
  const heads = columns.map((column, i) => html("th", {scope: "col", class: kinds(column), "aria-sort": i !== 1 ? null : score.sign < 0 ? "ascending" : "descending"},
    html("button", {type: "button", click: () => sort(i)}, column.title)));
  const sort = chosen => {
    const down = heads[chosen].getAttribute("aria-sort");
    const descending = down ? down === "ascending" : !columns[chosen].text && columns[chosen].title !== "p";
    heads.forEach(head => head.removeAttribute("aria-sort"));
    heads[chosen].setAttribute("aria-sort", descending ? "descending" : "ascending");
    const key = columns[chosen].key, turn = descending ? -1 : 1;
    put((a, b) => { // what has no value comes last either way
      const [u, v] = [key(a), key(b)];
      return missing(u) || missing(v) ? missing(u) - missing(v) : u < v ? -turn : u > v ? turn : 0;
    });
  };
  put(() => 0);
  fill("table", html("thead", {}, html("tr", {}, heads)), bodies.filter((_, i) => parts[i].length));
}

// ---- Maps of held-out rows ----

const hidden = new Set(); // classes
const color = place => `c${place % COLORS}`;

function drawMap() {
  const map = maps[$("method").selectedIndex], width = widthOf("map"), strip = missing(map.y);
  const visible = map.x.map((_, i) => i).filter(i => !labels || !hidden.has(map.answer[i]));
  const present = labels ? [...new Set(map.answer)].sort((a, b) => a - b) : [];
  const axes = strip && !labels, left = axes ? 56 : strip ? Math.min(140, width / 3) : 8, top = axes ? 24 : 8;
  const bottom = top + (strip && labels ? Math.max(160, 22 * present.length) : Math.min(560, Math.max(300, 0.75 * width)));
  const right = width - 8;
  const node = chart($("map"), `Map of held-out rows by ${map.name}`,
    `${counted(map.x.length, "row")}; the arrow keys walk through them, and say their neighbours.`, width, bottom + 28);
  node.append(svg("rect", {class: "grid", x: left, y: top, width: right - left, height: bottom - top}));
  const xs = widen(extent(map.x), 0.04), heights = strip ? map.answer : map.y;
  let x = linear(xs, [left + 8, right - 8]), y;
  if (strip && labels) {
    const row = linear([-0.5, present.length - 0.5], [top, bottom]), place = new Map(present.map((value, i) => [value, i]));
    // a strip for each class; the golden ratio spreads the rows in it
    y = i => row(place.get(map.answer[i]) + 0.6 * (i * 0.618 % 1 - 0.5));
    const short = shortenAll(labels, Math.floor(left / 7.5));
    for (const value of present) {
      node.append(svg("text", {x: left - 6, y: row(place.get(value)) + 4, "text-anchor": "end"}, svg("title", {}, labels[value]), short[value]));
    }
  } else {
    const ys = widen(extent(heights), 0.04), scale = linear(ys, [bottom - 8, top + 8]);
    y = i => scale(heights[i]);
    if (axes) axisLeft(node, scale, ticks(ys, 6), left, right, shorten(table.target, 40));
    else { // the same unit in both directions, unless one would vanish
      const unit = [(xs[1] - xs[0]) / (right - left - 16), (ys[1] - ys[0]) / (bottom - top - 16)], most = Math.max(...unit);
      if (most / Math.min(...unit) < 8) {
        const [cx, cy] = [(xs[0] + xs[1]) / 2, (ys[0] + ys[1]) / 2];
        x = value => (left + right) / 2 + (value - cx) / most;
        y = i => (top + bottom) / 2 - (heights[i] - cy) / most;
      }
    }
  }
  node.append(svg("text", {class: "faint", x: (left + right) / 2, y: bottom + 18, "text-anchor": "middle"}, strip ? "dimension 1" : "dimension 1 across, dimension 2 upwards"));
  const r = width < 560 && visible.length > 300 ? 3.2 : 4.5;
  const heat = labels ? null : linear(table.range || extent(map.answer), [0, 100]);
  const spots = visible.map(i => {
    const [px, py] = [x(map.x[i]), y(i)], value = map.answer[i];
    node.append(labels ? svg("path", {class: `mark ${color(value)}`, d: shape(value, px, py, r)})
      : svg("circle", {class: "heat", cx: px.toFixed(1), cy: py.toFixed(1), r, style: `--t:${heat(value).toFixed(1)}`}));
    return {x: px, y: py, lines: () => mapLines(map, i)};
  });
  explore(node, spots, "order");
  const k = missing(protocol.neighbors) ? "k" : protocol.neighbors;
  fill("map-caption", `${map.name} in ${strip ? "one dimension" : "two dimensions"}: ${k}-NN ${map.said}. ${number(map.x.length)} of them are drawn.`);
}

function mapLines(map, i) {
  const names = map.row, near = map.near ? map.near[i] : [], rows = map.near_row ? map.near_row[i] : [];
  return [`row ${names ? names[i] : i}: ${shorten(answer(map.answer[i]), 60)}`,
    ...near.map((value, j) => `nearest: ${shorten(answer(value), 40)}${missing(rows[j]) ? "" : ` (row ${rows[j]})`}`),
    ...Object.entries(map.values || {}).map(([name, values]) => `${shorten(name, 40)}: ${shorten(number(values[i]), 60)}`)];
}

function writeMapLegend() {
  if (!labels) return drawings.push(drawColorScale);
  const short = shortenAll(labels, 36);
  const chips = table.classes.map((group, place) => html("button", {type: "button", title: group.label, "aria-pressed": "true", click: () => {
    hidden.has(place) ? hidden.delete(place) : hidden.add(place);
    refresh();
  }}, icon(place, color(place)), short[place], html("small", {}, number(group.rows))));
  const refresh = () => {
    chips.forEach((chip, place) => chip.setAttribute("aria-pressed", String(!hidden.has(place))));
    drawMap();
  };
  const only = test => {
    table.classes.forEach((group, place) => test(group) ? hidden.delete(place) : hidden.add(place));
    refresh();
  };
  const search = html("input", {type: "search", placeholder: "only labels with …", "aria-label": "Show only labels that contain", input: event => {
    const wanted = event.target.value.toLowerCase(), fits = group => clean(group.label).toLowerCase().includes(wanted);
    table.classes.forEach((group, place) => { chips[place].hidden = !fits(group); });
    only(fits);
  }});
  const many = labels.length > MANY;
  const tools = html("div", {class: "tools"}, many ? search : null,
    html("button", {type: "button", click: () => only(() => true)}, "All"), html("button", {type: "button", click: () => only(() => false)}, "None"));
  const said = many ? `${labels.length} classes share ${COLORS} colours and ${SHAPES.length} shapes: a colour returns with another shape after ${COLORS} classes`
    + `${labels.length > COLORS * SHAPES.length ? `, and the same sign after ${COLORS * SHAPES.length}` : ""}. Type a part of a label to see some of them alone.`
    : "Click a label to hide its rows or to show them.";
  fill("legend", html("p", {class: "aside"}, said), labels.length > 2 ? tools : "", html("div", {class: "chips"}, chips));
}

function drawColorScale() {
  const width = Math.min(420, widthOf("legend")), [low, high] = table.range || extent(maps[0].answer), scale = linear([0, 40], [0, width]);
  const node = svg("svg", {viewBox: `0 0 ${width} 44`, width, height: 44, role: "img", "aria-label": `Colours of ${table.target}, from ${number(low)} to ${number(high)}`});
  for (let i = 0; i < 40; i++) node.append(svg("rect", {class: "heat", style: `--t:${100 * i / 39};stroke:none`, x: scale(i), y: 18, width: width / 40 + 0.5, height: 10}));
  node.append(svg("text", {x: 0, y: 12}, shorten(table.target, 50)), svg("text", {class: "faint", x: 0, y: 42}, number(low)),
    svg("text", {class: "faint", x: width, y: 42, "text-anchor": "end"}, number(high)));
  fill("legend", node);
}

function startMaps() {
  if (!maps.length) { $("maps").hidden = true; return; }
  fill("method", maps.map(map => html("option", {}, `${shorten(map.name, 60)} (${figure(map.score)})`)));
  $("method").addEventListener("change", drawMap);
  writeMapLegend();
  drawings.push(drawMap);
}

// ---- Scores by dimension ----

const curves = (data.curves || []).map(curve => ({...curve, mean: curve.folds.map(mean)}));
const raw = curves.find(curve => baseline && curve.name === baseline.name);
const picked = new Map(); // of a curve its colour

function drawCurves() {
  const width = widthOf("curves"), left = 46, right = width - 10, top = 24, bottom = Math.min(380, Math.max(260, 0.5 * width));
  const drawn = curves.filter(curve => picked.has(curve) || (curve === raw && picked.has("raw")));
  const node = chart($("curves"), `${score.title} by dimension`, "Left and right arrows walk along a curve, up and down between curves.", width, bottom + 42);
  if (!drawn.length) return explore(node, [], "near");
  const domain = widen(extent(drawn.flatMap(curve => curve.folds.flat().map(shown))), 0.05);
  const far = extent(drawn.flatMap(curve => curve.dimension).map(Math.log)), xs = far[0] === far[1] ? [far[0] - 0.5, far[1] + 0.5] : widen(far, 0.03);
  const place = ranged(xs, [left, right]), x = Object.assign(value => place(Math.log(value)), {range: [left, right]}), y = linear(domain, [bottom, top]);
  const own = [...new Set(drawn.flatMap(curve => curve.dimension))].sort((a, b) => a - b);
  const steps = own.length <= 6 ? own : [1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000].filter(value => Math.log(value) >= xs[0] && Math.log(value) <= xs[1]);
  axisLeft(node, y, ticks(domain, 6), left, right, score.axis);
  axisBelow(node, x, {found: steps, text: String}, top, bottom, "dimensions");
  const spots = [];
  for (const curve of drawn) {
    const place = curve === raw ? null : picked.get(curve), group = svg("g", {class: place === null ? "ink" : color(place)});
    const line = values => curve.dimension.map((dimension, i) => [x(dimension), y(values[i])]);
    if (place !== null && curve.folds.some(folds => folds.length > 1)) {
      const ends = curve.folds.map(folds => extent(folds.map(shown)));
      group.append(svg("path", {class: "band", d: `${path([...line(ends.map(end => end[1])), ...line(ends.map(end => end[0])).reverse()])}Z`}));
    }
    const means = curve.mean.map(shown);
    group.append(place === null ? svg("path", {class: "dashed", d: `M${left} ${y(means.at(-1))}H${right}`}) : svg("path", {class: "curve", d: path(line(means))}));
    curve.dimension.forEach((dimension, i) => {
      const spot = {x: x(dimension), y: y(means[i]), lines: () => [curve.name, `${counted(dimension, "dimension")}: ${figure(curve.mean[i])}`]};
      group.append(svg("path", {class: "mark", d: shape(place === null ? 1 : place, spot.x, spot.y, 4.5)}));
      spots.push(spot);
    });
    node.append(group);
  }
  explore(node, spots, "near");
}

function startCurves() {
  if (!curves.length) { $("curves-section").hidden = true; return; }
  fill("curves-title", `${score.title} by dimension`);
  const best = curves.filter(curve => curve !== raw).sort((a, b) => Math.max(...b.mean) - Math.max(...a.mean));
  if (raw) picked.set("raw", null);
  const free = () => [...Array(COLORS).keys()].find(place => ![...picked.values()].includes(place));
  for (const curve of best.slice(0, CURVES - picked.size)) picked.set(curve, free());
  const items = [...(raw ? [raw] : []), ...best].map(curve => {
    const key = curve === raw ? "raw" : curve, sign = html("span"), box = html("input", {type: "checkbox", change: () => {
      box.checked ? picked.set(key, curve === raw ? null : free()) : picked.delete(key);
      refresh();
    }});
    return {key, curve, box, sign, label: html("label", {}, box, sign, shorten(curve.name, 60))};
  });
  const refresh = () => {
    for (const {key, curve, box, sign} of items) {
      box.checked = picked.has(key);
      box.disabled = !box.checked && picked.size >= CURVES;
      sign.replaceChildren(...(box.checked ? [curve === raw ? icon(1, "ink", true) : icon(picked.get(key), color(picked.get(key)), true)] : []));
    }
    drawCurves();
  };
  $("curve-choice").append(...items.map(item => item.label));
  if (items.length <= CURVES) $("curve-choice").querySelector("legend").hidden = true;
  drawings.push(refresh);
}

// ---- Confusion ----

function drawConfusion() {
  const {before, after, name} = data.confusion, names = data.confusion.labels, count = names.length;
  const wrong = matrix => matrix.flatMap((row, i) => row.filter((_, j) => i !== j));
  const most = Math.max(1, ...[before, after].map(matrix => extent(wrong(matrix))[1]).filter(Number.isFinite));
  for (const [id, matrix, title] of [["before", before, `Before: ${baseline ? baseline.name : "baseline"}`], ["after", after, `After: ${name}`]]) {
    fill(`${id}-title`, title);
    const room = widthOf(id), letters = Math.min(22, Math.max(4, ...names.map(text => clean(text).length))), margin = 10 + 6.6 * Math.min(letters, room < 420 ? 12 : 22);
    const upright = (margin - 10) * count < room - margin - 20;
    const above = upright ? 22 : 0.72 * margin + 14, beside = upright ? 4 : above;
    const size = Math.max(14, Math.min(60, Math.floor((room - margin - beside) / count)));
    const short = shortenAll(names, Math.floor((margin - 8) / 6.6));
    const node = chart($(id), title, `Shares of the held-out rows of ${counted(count, "class")} by the label they got; the arrow keys walk through the cells.`,
      Math.ceil(margin + size * count + beside), Math.ceil(above + size * count + 4));
    const texts = svg("g"), spots = [];
    names.forEach((text, i) => {
      const middle = above + size * (i + 0.5), across = margin + size * (i + 0.5);
      texts.append(svg("text", {x: margin - 6, y: middle + 4, "text-anchor": "end"}, svg("title", {}, text), short[i]),
        svg("text", {transform: `translate(${across + (upright ? 0 : 2)} ${above - 5}) rotate(${upright ? 0 : -45})`, "text-anchor": upright ? "middle" : null}, svg("title", {}, text), short[i]));
      matrix[i].forEach((share, j) => {
        const right = i === j, cell = {x: margin + size * j + 0.5, y: above + size * i + 0.5, width: size - 1, height: size - 1};
        // right answers are left without colour: it is the errors that are looked for
        node.append(svg("rect", {...cell, class: right ? "cell right" : "cell", style: right ? null : `--t:${(70 * share / most).toFixed(1)}`}));
        if (size >= 30 && share >= 0.05) texts.append(svg("text", {class: "share", x: margin + size * (j + 0.5), y: middle + 4}, fixed(share, share > 99.9 ? 0 : 1)));
        spots.push({x: margin + size * (j + 0.5), y: middle, size: size / 2, square: true,
          lines: () => [percent(share), `true: ${shorten(text, 80)}`, `called: ${shorten(names[j], 80)}`]});
      });
    });
    node.append(texts);
    explore(node, spots, "near");
  }
}

function startConfusion() {
  if (!data.confusion) { $("confusion").hidden = true; return; }
  const {labels: names, classes} = data.confusion;
  $("pair").classList.toggle("two", names.length <= 12);
  fill("confusion-caption", "Rows: the true class; columns: the label that its held-out rows got, in percent. Errors are coloured; "
    + `${names.length < classes ? `the ${names.length} most confused of ${classes} classes` : "all classes"}.`);
  drawings.push(drawConfusion);
}

// ---- All of it ----

const drawAll = () => { hideTip(); for (const draw of drawings) draw(); };
$("main").hidden = false;
for (const node of document.querySelectorAll("h1, #verdict")) node.textContent = clean(node.textContent);
writeHead();
writeFacts();
writeRankingKey();
writeTable();
writeEnd();
drawings.push(drawRanking);
startMaps();
startCurves();
startConfusion();
drawAll();
let drawnFor = $("main").clientWidth;
addEventListener("resize", () => requestAnimationFrame(() => {
  if (drawnFor === $("main").clientWidth) return; // a phone's address bar that comes and goes
  drawnFor = $("main").clientWidth;
  drawAll();
}));
document.addEventListener("pointerdown", event => { if (!event.target.closest("svg")) hideTip(); });
document.documentElement.dataset.drawn = "yes";
}
