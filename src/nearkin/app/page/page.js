"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
// Okabe and Ito's colours, told apart by colour-blind readers; black and yellow would vanish on one of the two papers.
const COLORS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#8C8C8C"];
const SYMBOLS = ["circle", "square", "triangle-up", "diamond", "triangle-down", "cross", "x", "star"];
const STATUS = {better: COLORS[2], worse: COLORS[1], baseline: COLORS[6], unclear: COLORS[0]};
const dark = matchMedia("(prefers-color-scheme: dark)");
const narrow = matchMedia("(max-width: 44rem)");
const style = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
// plotly reads some HTML in its texts
const safe = text => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
const percent = value => `${value.toFixed(1)}%`;
const {axis: scoreAxis, prefix, unit, decimals} = data.score;
const figure = value => `${prefix}${value.toFixed(decimals)}${unit}`;
const mean = values => values.reduce((sum, value) => sum + value, 0) / values.length;
const deviation = values => Math.sqrt(values.reduce((sum, value) => sum + (value - mean(values)) ** 2, 0) / (values.length - 1));
for (const row of data.ranking) Object.assign(row, {mean: mean(row.folds), std: deviation(row.folds)});
for (const curve of data.curves) curve.mean = curve.folds.map(mean);
const answer = value => data.labels ? safe(data.labels[value]) : String(value);

function layout(extra) {
  const axis = {gridcolor: style("--line"), zerolinecolor: style("--line"), linecolor: style("--line"), automargin: true};
  const merged = {
    font: {color: style("--ink"), family: "system-ui, sans-serif", size: narrow.matches ? 11 : 13},
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    hoverlabel: {bgcolor: style("--paper"), bordercolor: style("--line"), font: {color: style("--ink")}, align: "left"},
    modebar: {bgcolor: "rgba(0,0,0,0)", color: style("--faint"), activecolor: style("--ink")},
    margin: {l: 10, r: 10, t: 30, b: 10},
    ...extra,
  };
  for (const name of ["xaxis", "yaxis"]) merged[name] = {...axis, ...(extra[name] || {})};
  return merged;
}

function draw(id, traces, extra, zoom = false) {
  // without zoom a finger on the picture scrolls the page
  const shown = layout(extra);
  for (const name of ["xaxis", "yaxis"]) shown[name].fixedrange = !zoom;
  const config = {responsive: true, displaylogo: false, displayModeBar: zoom, modeBarButtons: [["toImage", "zoom2d", "pan2d", "resetScale2d"]]};
  Plotly.react(id, traces, shown, config);
}

function drawRanking() {
  const rows = [...data.ranking].reverse();
  const folds = rows.map((row, position) => ({
    type: "scatter", mode: "markers", x: row.folds,
    y: row.folds.map((_, fold) => position + 0.36 * ((fold * 7 % 15) / 14 - 0.5)),
    marker: {color: STATUS[row.status], opacity: 0.35, size: 6},
    text: row.folds.map((value, fold) => `${safe(row.name)}, fold ${fold + 1}: ${figure(value)}`), hoverinfo: "text",
  }));
  const means = {
    type: "scatter", mode: "markers", x: rows.map(row => row.mean), y: rows.map((_, position) => position),
    error_x: {type: "data", array: rows.map(row => row.std), color: style("--ink"), thickness: 1.5},
    marker: {color: rows.map(row => STATUS[row.status]), size: 11, line: {color: style("--paper"), width: 1}},
    text: rows.map(row => `${safe(row.name)}: ${figure(row.mean)} ± ${row.std.toFixed(decimals)}, ${row.status}`), hoverinfo: "text",
  };
  const raw = rows.find(row => row.status === "baseline").mean;
  draw("ranking", [...folds, means], {
    showlegend: false,
    xaxis: {title: {text: scoreAxis}, zeroline: false},
    yaxis: {tickvals: rows.map((_, position) => position), ticktext: rows.map(row => safe(row.name)), zeroline: false},
    shapes: [{type: "line", x0: raw, x1: raw, yref: "paper", y0: 0, y1: 1, line: {color: style("--faint"), dash: "dash"}}],
  });
}

function hover(map, point) {
  const near = map.near[point].map((label, i) => `${answer(label)} (row ${safe(map.near_row[point][i])})`);
  return `<b>row ${safe(map.row[point])}: ${answer(map.answer[point])}</b><br>nearest: ${near.join("<br>nearest: ")}`;
}

function classTraces(map) {
  return data.labels.map((label, number) => {
    const points = map.answer.flatMap((code, point) => code === number ? [point] : []);
    return {
      type: "scatter", mode: "markers", name: safe(label),
      x: points.map(point => map.x[point]),
      // one dimension is drawn as a strip for each class
      y: points.map((point, i) => map.y ? map.y[point] : number + 0.6 * ((i * 0.618) % 1 - 0.5)),
      marker: {color: COLORS[number % COLORS.length], symbol: SYMBOLS[number % SYMBOLS.length], size: 8, opacity: 0.8},
      text: points.map(point => hover(map, point)), hoverinfo: "text",
    };
  }).filter(trace => trace.x.length > 0);
}

function numberTrace(map) {
  const [cmin, cmax] = data.range, title = {text: safe(data.target)};
  const bar = narrow.matches ? {orientation: "h", y: -0.15, yanchor: "top", title: {...title, side: "bottom"}} : {title};
  return {
    type: "scatter", mode: "markers", x: map.x, y: map.y || map.answer,
    // told apart by colour-blind readers; the outline keeps either end apart from the paper
    marker: {color: map.answer, cmin, cmax, colorscale: "Cividis", size: 9, line: {color: style("--faint"), width: 0.8},
      colorbar: {thickness: 14, outlinewidth: 0, ...bar}},
    text: map.answer.map((_, point) => hover(map, point)), hoverinfo: "text",
  };
}

function drawMap() {
  const map = data.maps[document.getElementById("method").selectedIndex], aside = data.labels ? "class" : safe(data.target);
  draw("map", data.labels ? classTraces(map) : [numberTrace(map)], {
    showlegend: Boolean(data.labels),
    legend: narrow.matches ? {orientation: "h", y: -0.1} : {},
    xaxis: {showticklabels: false, zeroline: false, title: {text: "dimension 1"}},
    yaxis: {showticklabels: !map.y && !data.labels, zeroline: false, title: {text: map.y ? "dimension 2" : aside}},
  }, !narrow.matches);
  document.getElementById("map-caption").textContent =
    `${map.name} in ${map.y ? "two dimensions" : "one dimension"}: ${data.neighbors}-NN ${map.said}.`;
}

function drawCurves() {
  const raw = data.curves.find(curve => curve.name === "raw k-NN");
  const learned = data.curves.filter(curve => curve !== raw);
  const traces = learned.flatMap((curve, number) => {
    const color = COLORS[number % COLORS.length];
    const low = curve.folds.map(folds => Math.min(...folds)), high = curve.folds.map(folds => Math.max(...folds));
    return [
      {x: [...curve.dimension, ...[...curve.dimension].reverse()], y: [...high, ...low.reverse()], fill: "toself",
        type: "scatter", mode: "none", fillcolor: color + "22", hoverinfo: "skip", showlegend: false, legendgroup: curve.name},
      {x: curve.dimension, y: curve.mean, type: "scatter", mode: "lines+markers", name: safe(curve.name), legendgroup: curve.name,
        line: {color, dash: number < COLORS.length ? "solid" : "dot"},
        marker: {color, symbol: SYMBOLS[number % SYMBOLS.length], size: 8},
        text: curve.mean.map((mean, i) => `${safe(curve.name)}, ${curve.dimension[i]} dimensions: ${figure(mean)}`), hoverinfo: "text"},
    ];
  });
  draw("curves", traces, {
    showlegend: true,
    legend: narrow.matches ? {orientation: "h", y: -0.25} : {},
    xaxis: {title: {text: "dimensions"}, type: "log", tickvals: [1, 2, 3, 5, 10, 20, 50, 100, 200]},
    yaxis: {title: {text: scoreAxis}, zeroline: false},
    shapes: [{type: "line", xref: "paper", x0: 0, x1: 1, y0: raw.mean[0], y1: raw.mean[0], line: {color: style("--faint"), dash: "dash"}}],
    annotations: [{xref: "paper", x: 0, y: raw.mean[0], text: `raw features, ${raw.dimension[0]} dimensions`, showarrow: false,
      xanchor: "left", yanchor: "bottom", font: {color: style("--faint")}}],
  });
}

function drawConfusion() {
  if (!data.confusion) return;
  const {before, after, name, classes} = data.confusion, labels = data.confusion.labels.map(safe);
  const shown = labels.length < classes ? `the ${labels.length} most confused of ${classes} classes` : "all classes";
  document.getElementById("confusion-caption").textContent =
    `Rows: the true class; columns: the label that held-out rows of it got, in percent; ${shown}.`;
  const off = matrix => matrix.map((row, i) => row.map((share, j) => i === j ? 0 : share));
  const most = Math.max(1, ...off(before).flat(), ...off(after).flat());
  // right answers are left without colour: it is the errors that are looked for
  const scale = [[0, "rgba(213,94,0,0)"], [1, "rgba(213,94,0,1)"]];
  const written = labels.length <= (narrow.matches ? 8 : 12);
  for (const [id, matrix, title] of [["before", before, "before: raw features"], ["after", after, `after: ${safe(name)}`]]) {
    const places = labels.map((_, i) => i);
    draw(id, [{
      type: "heatmap", x: places, y: places, z: off(matrix), zmin: 0, zmax: most, colorscale: scale, showscale: false,
      xgap: 1, ygap: 1,
      text: matrix.map((row, i) => row.map((share, j) => `${labels[i]} called ${labels[j]}: ${percent(share)}`)), hoverinfo: "text",
    }], {
      title: {text: title, font: {size: 14}},
      xaxis: {tickvals: places, ticktext: labels, constrain: "domain", showgrid: false, zeroline: false},
      yaxis: {tickvals: places, ticktext: labels, autorange: "reversed", scaleanchor: "x", constrain: "domain", showgrid: false, zeroline: false},
      annotations: !written ? [] : matrix.flatMap((row, i) => row.map((share, j) => (
        {x: j, y: i, text: share < 0.05 ? "" : share.toFixed(1), showarrow: false, font: {size: 11}}))),
    });
  }
}

function drawAll() {
  drawRanking();
  if (data.maps.length) drawMap();
  drawCurves();
  drawConfusion();
}

const choice = document.getElementById("method");
for (const map of data.maps) {
  const option = document.createElement("option");
  option.textContent = `${map.name} (${figure(map.score)} in two dimensions)`;
  choice.append(option);
}
choice.addEventListener("change", drawMap);
dark.addEventListener("change", drawAll);
narrow.addEventListener("change", drawAll);
drawAll();
document.documentElement.dataset.drawn = "yes";
