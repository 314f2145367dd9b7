// Charts.

// ---- bar charts

const drawing_width = Math.max(340, Math.min(1100, page.clientWidth));

/// Width of text in the font of the charts, in pixels.
const measuring = document.createElement("canvas").getContext("2d");
function width_of(text, size = 12) {
  measuring.font = size + 'px system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif';
  return measuring.measureText(text).width;
}
/// Text in lines of at most `most` pixels, broken after a sign between words if there is one.
function broken(text, most) {
  const lines = [""];
  for (const part of text.match(/[^-_/ ,]*[-_/ ,]*/g).flatMap(p => width_of(p) > most ? [...p] : [p])) {
    if (lines.at(-1) && width_of(lines.at(-1) + part) > most) lines.push("");
    lines[lines.length - 1] += part;
  }
  return lines;
}
/// Names of rows are whole: beside the marks where they leave room for them, else in lines above them.
function name_column(names, most) {
  const widest = Math.max(0, ...names.map(n => width_of(n))) + 10, room = drawing_width - 8;
  if (widest <= most) return {left: widest, above: 0, put: (svg, name, y) => svg.append(element("text", {x: 0, y, class: "name"}, name))};
  const above = 15 * Math.max(1, ...names.map(n => broken(n, room).length));
  return {left: 4, above, put: (svg, name, y) => broken(name, room).forEach((line, i, all) =>
    svg.append(element("text", {x: 0, y: y - 19 - 15 * (all.length - 1 - i), class: "name"}, line)))};
}
const clipped = (text, most) => text.length > most ? text.slice(0, most - 1) + "…" : text;
function bars(rows, key) {
  const width = drawing_width, {left, above, put} = name_column(rows.map(r => r.name), width * 0.34), height = 30 + above, longest = Math.max(...rows.map(r => r.parts.reduce((a, p) => a + p[1], 0))) || 1;
  const svg = element("svg", {viewBox: `0 0 ${width} ${rows.length * height + 4}`, role: "img", class: "bars"});
  rows.forEach((row, i) => {
    const y = i * height + 4 + above;
    put(svg, row.name, y + 15);
    let x = left;
    const all = row.parts.reduce((a, p) => a + p[1], 0);
    for (const [name, amount, note] of row.parts) {
      const w = amount / longest * (width - left - 90);
      const r = element("rect", {x, y, width: Math.max(w, 0), height: 22, fill: colour_of(name), class: "mark"});
      hover(r, `${row.name}\n${words(name)}: ${show(key, amount)}, ${(100 * amount / all).toFixed(1)} %${note ? "\n" + note : ""}`);
      svg.append(r);
      const value = show(key, amount);
      if (width_of(value, 11) + 8 < w) svg.append(element("text", {x: x + w / 2, y: y + 15, class: "value", "text-anchor": "middle"}, value));
      x += w;
    }
    svg.append(element("text", {x: x + 6, y: y + 15, class: "soft"}, show(key, all)));
  });
  return svg;
}

function tornado(e) {
  const rows = e.sensitivities.slice(0, 14);
  const name = s => s.pointer.replace(/^\/(platform|stack)\//, "");
  const width = drawing_width, {left, above, put} = name_column(rows.map(name), width * 0.45), height = 22 + above, most = Math.max(...rows.flatMap(s => [Math.abs(s.change_at_minus_10_percent || 0), Math.abs(s.change_at_plus_10_percent || 0)]));
  const svg = element("svg", {viewBox: `0 0 ${width} ${rows.length * height + 24}`, role: "img"});
  const middle = (left + width) / 2, unit = (width - left - 100) / 2 / most;
  svg.append(element("line", {x1: middle, x2: middle, y1: 0, y2: rows.length * height, class: "axis"}));
  rows.forEach((s, i) => {
    const y = i * height + 3 + above;
    put(svg, name(s), y + 13);
    for (const [at, change, c] of [["−10 %", s.change_at_minus_10_percent, colour(1)], ["+10 %", s.change_at_plus_10_percent, colour(0)]]) {
      if (change === null) continue;
      const w = change * unit;
      const r = element("rect", {x: Math.min(middle, middle + w), y, width: Math.abs(w), height: 16, fill: c, class: "mark"});
      hover(r, `${s.pointer} = ${s.value} (${s.kind})\nat ${at}: ${e.metric} ${percent(change)}`);
      svg.append(r, element("text", {x: middle + w + (w < 0 ? -4 : 4), y: y + 13, class: "soft", "text-anchor": w < 0 ? "end" : "start"}, percent(change)));
    }
  });
  svg.append(element("text", {x: 0, y: rows.length * height + 16, class: "soft"}, `change of ${words(e.metric)}: orange at 0.9 times the constant, blue at 1.1 times`));
  return svg;
}

/// Parses "15 PFLOPS".
const flops_of = text => { const m = /^([\d.]+) ([kMGTPE]?)FLOPS$/.exec(text?.value ?? text ?? ""); return m ? m[1] * (prefixes.find(([, p]) => p === m[2])?.[0] || 1) : 0; };
/// The precision whose dense peak a roof is: "NVFP4". Empty for a roof that is none.
function precision_of(top, r) {
  const peaks = Object.entries(r.inputs?.platform?.gpu?.peaks || {});
  return peaks.filter(([, p]) => Math.abs(flops_of(p?.dense) / top - 1) < 0.02).map(([n]) => n.toUpperCase()).join(", ");
}
/// Names beside the largest discs, where no other name is.
function disc_names(svg, discs, width) {
  const taken = [];
  for (const {x, y, radius, name, share} of [...discs].sort((a, b) => b.share - a.share)) {
    const w = width_of(name, 11), right = x + radius + 4 + w < width, box = [right ? x + radius + 4 : x - radius - 4 - w, y - 8, w, 14];
    if (share < 0.01 || taken.some(t => box[0] < t[0] + t[2] && t[0] < box[0] + box[2] && box[1] < t[1] + t[3] && t[1] < box[1] + box[3])) continue;
    taken.push(box);
    svg.append(element("text", {x: box[0], y: y + 4, class: "disc"}, name));
  }
}
/// 1, 2 and 5 times powers of ten between two numbers.
function round_numbers(low, high) {
  const out = [];
  for (let d = Math.floor(Math.log10(low)); d <= Math.log10(high); ++d) for (const m of [1, 2, 5]) if (m * 10 ** d >= low && m * 10 ** d <= high) out.push(m * 10 ** d);
  return out;
}
function roofline(e, r) {
  const points = e.kernels.filter(k => k.work_flop > 0 && k.moved_bytes > 0 && k.time_s > 0);
  if (!points.length) return null;
  const rate_of = {T: 1e12, G: 1e9}, memory = /^([\d.]+) ([TG])B\/s$/.exec(r.inputs?.platform?.gpu?.hbm_bandwidth?.value || "");
  const hbm = Math.max(memory ? memory[1] * rate_of[memory[2]] : 0, ...e.kernels.map(k => k.ceiling_Bps || 0));
  const tops = new Set(points.map(k => k.ceiling_FLOP_per_s).filter(Boolean));
  if (!tops.size) tops.add(Math.max(0, ...Object.values(r.inputs?.platform?.gpu?.peaks || {}).map(p => flops_of(p?.dense))));
  const peak = Math.max(...tops);
  if (!(hbm > 0) || !(peak > 0)) return null;
  const width = drawing_width, height = 340, left = 84, bottom = 40;
  const rate = k => k.work_flop * k.calls / k.time_s, intensity = k => k.work_flop / k.moved_bytes;
  const xs = [...points.map(intensity), peak / hbm], ys = [...points.map(rate), peak];
  const [x0, x1] = [Math.log10(Math.min(...xs) / 2), Math.log10(Math.max(...xs) * 2)];
  const [y0, y1] = [Math.log10(Math.min(...ys) / 2), Math.log10(peak * 1.6)];
  const px = v => left + (Math.log10(v) - x0) / (x1 - x0) * (width - left - 10);
  const py = v => height - bottom - (Math.log10(v) - y0) / (y1 - y0) * (height - bottom - 8);
  const svg = element("svg", {viewBox: `0 0 ${width} ${height}`, role: "img"});
  const marks = (a, b) => b - a < 2 ? round_numbers(10 ** a, 10 ** b) : round_numbers(10 ** a, 10 ** b).filter(v => Number.isInteger(Math.round(1e6 * Math.log10(v)) / 1e6));
  for (const v of marks(x0, x1))
    svg.append(element("line", {x1: px(v), x2: px(v), y1: 8, y2: height - bottom, class: "axis"}), element("text", {x: px(v), y: height - bottom + 16, class: "soft", "text-anchor": "middle"}, digits(v)));
  for (const v of marks(y0, y1))
    svg.append(element("line", {x1: left, x2: width - 10, y1: py(v), y2: py(v), class: "axis"}), element("text", {x: left - 6, y: py(v) + 4, class: "soft", "text-anchor": "end"}, scaled(v, "FLOP/s")));
  svg.append(element("text", {x: (left + width) / 2, y: height - 4, class: "soft", "text-anchor": "middle"}, "FLOP for each byte of GPU memory"));
  const low = Math.max(10 ** x0, 10 ** y0 / hbm);  // where the memory roof enters the chart
  for (const top of tops) {
    const corner = Math.max(low, top / hbm);
    svg.append(element("path", {d: `M${px(low)},${py(Math.min(top, low * hbm))} L${px(corner)},${py(top)} L${px(10 ** x1)},${py(top)}`, fill: "none", stroke: "var(--soft)", "stroke-width": 1.5}),
      element("text", {x: width - 12, y: py(top) - 5, class: "soft", "text-anchor": "end"}, [precision_of(top, r), scaled(top, "FLOP/s")].filter(Boolean).join(" ")));
  }
  const slope = Math.sqrt(low * Math.max(low, peak / hbm));
  svg.append(element("text", {x: px(slope) + 10, y: py(Math.min(peak, slope * hbm)) + 12, class: "soft"}, `memory ${scaled(hbm, "B/s")}`));
  const discs = [];
  for (const k of points) {
    const radius = 3 + 14 * Math.sqrt(k.share);
    discs.push({x: px(intensity(k)), y: py(rate(k)), radius, name: `${k.name}, ${k.phase}`, share: k.share});
    const c = element("circle", {cx: px(intensity(k)), cy: py(rate(k)), r: radius, fill: colour_of(k.bound), "fill-opacity": .65, class: "mark"});
    hover(c, `${k.name}, ${k.phase}\n${k.shape}\n${scaled(rate(k), "FLOP/s")}, ${digits(intensity(k))} FLOP/B\n${(100 * k.share).toFixed(1)} % of the time, bound by ${words(k.bound)}`);
    svg.append(c);
  }
  disc_names(svg, discs, width);
  return svg;
}

// ---- the timeline: tracks of slices, drawn on a canvas that zooms and follows the pointer

function timeline(t) {
  const canvas = element("canvas", {class: "timeline", role: "img", "aria-label": `timeline of ${t.scenario}`});
  const row = 18, left = Math.min(drawing_width * 0.45, Math.max(60, ...t.lanes.map(l => width_of(l.name, 11) + 10))), axis = 22;
  const end = Math.max(...t.lanes.flatMap(l => l.slices.length ? l.slices.map(s => s[1] + s[2]) : [0]));
  let from = 0, to = end;
  const height = t.lanes.length * row + axis;
  canvas.style.height = height + "px";
  const at = x => from + (x - left) / (canvas.clientWidth - left) * (to - from);
  function draw() {
    const ratio = window.devicePixelRatio || 1, width = canvas.clientWidth;
    canvas.width = width * ratio;
    canvas.height = height * ratio;
    const g = canvas.getContext("2d");
    g.scale(ratio, ratio);
    g.font = "11px sans-serif";
    const scale = (width - left) / (to - from), palette = t.names.map(n => resolve(n));
    t.lanes.forEach((track, i) => {
      g.fillStyle = css("--ink");
      g.fillText(clipped(track.name, left / 6.2), 2, i * row + 13);
      for (const [name, begin, length] of track.slices) {
        if (begin + length < from || begin > to) continue;
        const x = left + Math.max(0, begin - from) * scale, w = (Math.min(to, begin + length) - Math.max(from, begin)) * scale;
        g.fillStyle = palette[name];
        g.fillRect(x, i * row + 2, Math.max(w - (w > 4 ? 1 : 0), .4), row - 4);
      }
    });
    g.fillStyle = css("--soft");
    const ticks = width < 600 ? 2 : 5;
    for (let k = 0; k <= ticks; ++k) {
      const s = from + (to - from) * k / ticks;
      g.textAlign = k === 0 ? "left" : k === ticks ? "right" : "center";
      g.fillText(duration(s), left + (width - left) * k / ticks, height - 6);
    }
    g.textAlign = "left";
  }
  const kind_of_slice = n => n.split(/[ (:]/)[0];
  const hues = {forward: "--c0", backward: "--c2", optimizer: "--c4", host: "--c5", send: "--c3", gradient: "--c1", parameter: "--c6", decode: "--c0", prefill: "--c1", mixed: "--c2",
    steps: "--c2", serving: "--c0", detecting: "--c5", deciding: "--c5", loading: "--c1", initialising: "--c6", first_step: "--c4", waiting: "--c8", readying: "--c3"};
  const hue = n => hues[kind_of_slice(n)] || "--c7", resolve = n => css(hue(n));
  const legend_of_slices = element("div", {class: "legend"}, ...[...new Map(t.names.map(n => [kind_of_slice(n), hue(n)]))].map(([kind, c]) => {
    const swatch = element("i");
    swatch.style.background = `var(${c})`;
    return element("span", {}, swatch, words(kind));
  }));
  function zoom(factor, centre) {
    const c = centre === undefined ? (from + to) / 2 : centre;
    const length = Math.min(end, Math.max(end * 1e-5, (to - from) * factor));
    from = Math.min(Math.max(0, c - (c - from) * length / (to - from)), end - length);
    to = from + length;
    draw();
  }
  hover(canvas, e => {
    const box = canvas.getBoundingClientRect(), track = t.lanes[Math.floor((e.clientY - box.top) / row)], s = at(e.clientX - box.left);
    const hit = track?.slices.find(x => x[1] <= s && s < x[1] + x[2]);
    return hit ? `${track.name}\n${t.names[hit[0]]}${hit[3] >= 0 ? `, micro-batch ${hit[3]}` : ""}\n${duration(hit[2])} at ${duration(hit[1])}` : track ? `${track.name}\nidle at ${duration(s)}` : "";
  });
  let grabbed = null;
  canvas.addEventListener("pointerdown", e => { grabbed = [e.clientX, from, to]; canvas.setPointerCapture(e.pointerId); });
  canvas.addEventListener("pointerup", () => { grabbed = null; });
  canvas.addEventListener("pointermove", e => {
    if (!grabbed) return;
    const shift = (grabbed[0] - e.clientX) / (canvas.clientWidth - left) * (grabbed[2] - grabbed[1]);
    from = Math.min(Math.max(0, grabbed[1] + shift), end - (grabbed[2] - grabbed[1]));
    to = from + grabbed[2] - grabbed[1];
    draw();
  });
  canvas.addEventListener("wheel", e => { if (!e.ctrlKey && !e.shiftKey) return; e.preventDefault(); zoom(e.deltaY > 0 ? 1.25 : .8, at(e.offsetX)); }, {passive: false});
  const button = (text, act) => { const b = element("button", {type: "button"}, text); b.addEventListener("click", act); return b; };
  const controls = element("p", {class: "controls"}, button("zoom in", () => zoom(.5)), " ", button("zoom out", () => zoom(2)), " ", button("all", () => zoom(1e9)),
    element("span", {class: "soft small"}, "  drag to move, shift + wheel to zoom"));
  redraw.push(draw);
  return element("div", {}, controls, legend_of_slices, canvas);
}
const redraw = [];

// ---- curves by uPlot

function curves(title, x, series, options = {}) {
  const box = element("div");
  const width = () => Math.min(860, page.clientWidth - 8);
  const axis = format => ({stroke: css("--soft"), grid: {stroke: css("--line")}, ticks: {stroke: css("--line")}, values: (u, v) => v.map(y => y === null ? "" : format(y)),
    size: (u, labels) => 18 + 7.4 * Math.max(4, ...(labels || []).map(l => l.length))});
  // A logarithmic axis has marks at the values that are there, at round numbers if they are many.
  const log = (low, high, values) => {
    const few = values && values.length <= 12 ? values.filter(v => v > 0) : [];
    const all = few.length ? few : round_numbers(low, high);
    const step = Math.ceil(all.length / Math.max(2, Math.floor(width() / 80)));
    return {splits: () => all.filter((_, i) => (all.length - 1 - i) % step === 0), filter: (u, splits) => splits};
  };
  const ys = series.flatMap(s => s.values).filter(v => v > 0);
  const log_x = options.log_x ? log(x[0], x[x.length - 1], x) : {}, log_y = options.log_y ? log(Math.min(...ys) / 1.2, Math.max(...ys) * 1.2) : {};
  const around = (u, low, high) => [low / 1.15, high * 1.15];
  const make = () => {
    box.textContent = "";
    return new uPlot({
      width: width(), height: 260, title, cursor: {drag: {x: true, y: false}},
      scales: {x: {time: false, distr: options.log_x ? 3 : 1, ...(options.log_x ? {range: around} : {})}, y: {distr: options.log_y ? 3 : 1, range: options.log_y ? around : options.y_range}},
      axes: [{...axis(options.x_format || digits), size: 40, space: 90, ...log_x}, {...axis(options.y_format || digits), ...log_y}],
      series: [{label: options.x_label || "x", value: (u, v) => v === null ? "–" : (options.x_format || digits)(v)}, ...series.map((s, i) => ({
        label: s.name, stroke: css("--c" + (s.of ?? i) % 10), width: s.ideal ? 1 : 2, dash: s.ideal ? [6, 5] : undefined, points: {show: s.dots || (s.values.length < 40 && !s.ideal), size: s.dots ? 3 : 5}, spanGaps: true,
        paths: s.dots ? () => null : s.steps ? uPlot.paths.stepped({align: 1}) : undefined, value: (u, v) => v === null ? "–" : (options.y_format || digits)(v)}))],
    }, [x, ...series.map(s => s.values)], box);
  };
  redraw.push(make);
  return box;
}
const in_order = new Intl.Collator("en", {numeric: true}).compare;
/// The rate of each series over the number of GPUs with the line of ideal scaling from its smallest size, and its efficiency: the
/// share of that line. Series have points of [GPUs, rate].
function scaling_charts(key, lists) {
  const grown = lists.map((l, i) => ({...l, of: i, points: [...l.points].sort((a, b) => a[0] - b[0])})).filter(l => l.points.length > 1);
  if (!grown.length) return [];
  const line = ([gpus, rate]) => n => rate * n / gpus;
  const ideal = grown.map(l => ({name: `${l.name}, ideal`, ideal: true, of: l.of, points: l.points.map(([n]) => [n, line(l.points[0])(n)])}));
  const [x, series] = joined([...grown, ...ideal]);
  const [, shares] = joined(grown.map(l => ({...l, points: l.points.map(([n, rate]) => [n, rate / line(l.points[0])(n)])})));
  const options = {log_x: true, x_label: "GPUs"};
  return [curves(`${words(key)} over GPUs, and ideal`, x, series, {...options, log_y: true, y_format: v => show(key, v)}),
    curves("scaling efficiency over GPUs, of the smallest size", x, shares, {...options, y_format: v => digits(100 * v) + " %", y_range: (u, low, high) => [Math.min(low, 0.5), Math.max(high, 1.05)]})];
}
/// Joins series with different x values on one axis.
function joined(lists) {
  const x = [...new Set(lists.flatMap(l => l.points.map(p => p[0])))].sort((a, b) => a - b);
  return [x, lists.map(l => { const m = new Map(l.points); return {...l, values: x.map(v => m.has(v) ? m.get(v) : null)}; })];
}
