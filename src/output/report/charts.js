// Charts.

// ---- bar charts

const drawing_width = Math.max(340, Math.min(1100, page.clientWidth));

const clipped = (text, most) => text.length > most ? text.slice(0, most - 1) + "…" : text;
function bars(rows, key) {
  const width = drawing_width, left = width < 600 ? 96 : 190, height = 30, longest = Math.max(...rows.map(r => r.parts.reduce((a, p) => a + p[1], 0))) || 1;
  const svg = element("svg", {viewBox: `0 0 ${width} ${rows.length * height + 4}`, role: "img", class: "bars"});
  rows.forEach((row, i) => {
    const y = i * height + 4;
    svg.append(element("text", {x: 0, y: y + 15}, clipped(row.name, left / 7.2)));
    let x = left;
    const all = row.parts.reduce((a, p) => a + p[1], 0);
    for (const [name, amount, note] of row.parts) {
      const w = amount / longest * (width - left - 90);
      const r = element("rect", {x, y, width: Math.max(w, 0), height: height - 8, fill: colour_of(name), class: "mark"});
      hover(r, `${row.name}\n${words(name)}: ${show(key, amount)}, ${(100 * amount / all).toFixed(1)} %${note ? "\n" + note : ""}`);
      svg.append(r);
      x += w;
    }
    svg.append(element("text", {x: x + 6, y: y + 15, class: "soft"}, show(key, all)));
  });
  return svg;
}

function tornado(e) {
  const rows = e.sensitivities.slice(0, 14);
  const width = drawing_width, left = width < 600 ? 150 : 380, height = 22, most = Math.max(...rows.flatMap(s => [Math.abs(s.change_at_minus_10_percent || 0), Math.abs(s.change_at_plus_10_percent || 0)]));
  const svg = element("svg", {viewBox: `0 0 ${width} ${rows.length * height + 24}`, role: "img"});
  const middle = (left + width) / 2, unit = (width - left) / 2.4 / most;
  svg.append(element("line", {x1: middle, x2: middle, y1: 0, y2: rows.length * height, class: "axis"}));
  rows.forEach((s, i) => {
    const y = i * height + 3;
    svg.append(element("text", {x: 0, y: y + 13}, clipped(width < 600 ? s.pointer.split("/").slice(-2).join("/") : s.pointer.replace(/^\/(platform|stack)\//, ""), left / 6.8)));
    for (const [name, change, c] of [["−10 %", s.change_at_minus_10_percent, colour(1)], ["+10 %", s.change_at_plus_10_percent, colour(0)]]) {
      if (change === null) continue;
      const w = change * unit;
      const r = element("rect", {x: Math.min(middle, middle + w), y, width: Math.abs(w), height: height - 6, fill: c, class: "mark"});
      hover(r, `${s.pointer} = ${s.value} (${s.kind})\nat ${name}: ${e.metric} ${percent(change)}`);
      svg.append(r);
    }
  });
  svg.append(element("text", {x: middle, y: rows.length * height + 16, class: "soft", "text-anchor": "middle"}, `change of ${words(e.metric)}, up to ${percent(most).slice(1)}: orange at 0.9 times the constant, blue at 1.1 times`));
  return svg;
}

/// Parses "15 PFLOPS".
const flops_of = text => { const m = /^([\d.]+) ([kMGTPE]?)FLOPS$/.exec(text?.value ?? text ?? ""); return m ? m[1] * (prefixes.find(([, p]) => p === m[2])?.[0] || 1) : 0; };
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
  for (let d = Math.ceil(x0); d <= x1; ++d)
    svg.append(element("line", {x1: px(10 ** d), x2: px(10 ** d), y1: 8, y2: height - bottom, class: "axis"}), element("text", {x: px(10 ** d), y: height - bottom + 16, class: "soft", "text-anchor": "middle"}, digits(10 ** d)));
  for (let d = Math.ceil(y0); d <= y1; ++d)
    svg.append(element("line", {x1: left, x2: width - 10, y1: py(10 ** d), y2: py(10 ** d), class: "axis"}), element("text", {x: left - 6, y: py(10 ** d) + 4, class: "soft", "text-anchor": "end"}, scaled(10 ** d, "FLOP/s")));
  svg.append(element("text", {x: (left + width) / 2, y: height - 4, class: "soft", "text-anchor": "middle"}, "FLOP for each byte of GPU memory"));
  const low = Math.max(10 ** x0, 10 ** y0 / hbm);  // where the memory roof enters the chart
  for (const top of tops) {
    const corner = Math.max(low, top / hbm);
    svg.append(element("path", {d: `M${px(low)},${py(Math.min(top, low * hbm))} L${px(corner)},${py(top)} L${px(10 ** x1)},${py(top)}`, fill: "none", stroke: "var(--soft)", "stroke-width": 1.5}),
      element("text", {x: width - 12, y: py(top) - 5, class: "soft", "text-anchor": "end"}, scaled(top, "FLOP/s")));
  }
  for (const k of points) {
    const c = element("circle", {cx: px(intensity(k)), cy: py(rate(k)), r: 3 + 14 * Math.sqrt(k.share), fill: colour_of(k.bound), "fill-opacity": .65, class: "mark"});
    hover(c, `${k.name}, ${k.phase}\n${k.shape}\n${scaled(rate(k), "FLOP/s")}, ${digits(intensity(k))} FLOP/B\n${(100 * k.share).toFixed(1)} % of the time, bound by ${words(k.bound)}`);
    svg.append(c);
  }
  return svg;
}

// ---- the timeline: tracks of slices, drawn on a canvas that zooms and follows the pointer

function timeline(t) {
  const canvas = element("canvas", {class: "timeline", role: "img", "aria-label": `timeline of ${t.scenario}`});
  const row = 18, left = drawing_width < 600 ? 110 : 150, axis = 22;
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
  const hues = {forward: "--c0", backward: "--c2", optimizer: "--c4", host: "--c5", send: "--c3", gradient: "--c1", parameter: "--c6", decode: "--c0", prefill: "--c1", mixed: "--c2"};
  const resolve = n => css(hues[n.split(/[ (]/)[0]] || "--c7");
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
  const controls = element("p", {}, button("zoom in", () => zoom(.5)), " ", button("zoom out", () => zoom(2)), " ", button("all", () => zoom(1e9)),
    element("span", {class: "soft small"}, "  drag to move, shift + wheel to zoom"));
  redraw.push(draw);
  return element("div", {}, controls, canvas);
}
const redraw = [];

// ---- curves by uPlot

function curves(title, x, series, options = {}) {
  const box = element("div");
  const width = () => Math.min(860, page.clientWidth - 8);
  const axis = format => ({stroke: css("--soft"), grid: {stroke: css("--line")}, ticks: {stroke: css("--line")}, values: (u, v) => v.map(y => y === null ? "" : format(y)),
    size: (u, labels) => 18 + 7.4 * Math.max(4, ...(labels || []).map(l => l.length))});
  const make = () => {
    box.textContent = "";
    return new uPlot({
      width: width(), height: 260, title, cursor: {drag: {x: true, y: false}},
      scales: {x: {time: false, distr: options.log_x ? 3 : 1}, y: {distr: options.log_y ? 3 : 1, range: options.y_range}},
      axes: [{...axis(options.x_format || digits), size: 40, space: 90}, axis(options.y_format || digits)],
      series: [{label: options.x_label || "x", value: (u, v) => v === null ? "–" : (options.x_format || digits)(v)}, ...series.map((s, i) => ({
        label: s.name, stroke: css("--c" + i % 10), width: 2, points: {show: s.values.length < 40}, spanGaps: true,
        paths: s.steps ? uPlot.paths.stepped({align: 1}) : undefined, value: (u, v) => v === null ? "–" : (options.y_format || digits)(v)}))],
    }, [x, ...series.map(s => s.values)], box);
  };
  redraw.push(make);
  return box;
}
/// Joins series with different x values on one axis.
function joined(lists) {
  const x = [...new Set(lists.flatMap(l => l.points.map(p => p[0])))].sort((a, b) => a - b);
  return [x, lists.map(l => { const m = new Map(l.points); return {...l, values: x.map(v => m.has(v) ? m.get(v) : null)}; })];
}
