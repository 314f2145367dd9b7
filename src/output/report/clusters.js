// Clusters over days to months: who held which trays, where each GPU-hour went, and how seeds differ.

const useful_uses = ["useful", "training", "serving", "batch"];
const gpu_hours = x => digits(x) + " GPU-h";

/// The GPU-hours of the cluster less what each use took, the largest first, down to what was useful.
function waterfall(parts) {
  const all = parts.reduce((a, p) => a + p.gpu_hours, 0), kept = parts.filter(p => useful_uses.includes(p.name));
  const lost = parts.filter(p => !useful_uses.includes(p.name)).sort((a, b) => b.gpu_hours - a.gpu_hours);
  const rows = [{name: "all GPUs", amount: all, from: 0}];
  let left = all;
  for (const p of lost) rows.push({name: p.name, amount: p.gpu_hours, from: left -= p.gpu_hours, lost: true});
  for (const p of kept.sort((a, b) => b.gpu_hours - a.gpu_hours)) rows.push({name: p.name, amount: p.gpu_hours, from: left -= p.gpu_hours});
  const width = drawing_width, {left: edge, above, put} = name_column(rows.map(r => words(r.name)), width * 0.34), height = 24 + above;
  const svg = element("svg", {viewBox: `0 0 ${width} ${rows.length * height + 4}`, role: "img", class: "waterfall", "aria-label": "where GPU-hours went"});
  const x_of = v => edge + v / all * (width - edge - 180);
  rows.forEach((row, i) => {
    const y = i * height + 4 + above, x = x_of(row.from), w = Math.max(1, x_of(row.from + row.amount) - x);
    put(svg, words(row.name), y + 14);
    const r = element("rect", {x, y, width: w, height: 18, fill: row.lost ? "var(--c5)" : i === 0 ? "var(--c8)" : "var(--c2)", class: "mark"});
    const text = `${gpu_hours(row.amount)}, ${(100 * row.amount / all).toFixed(row.amount < 0.01 * all ? 2 : 1)} %`;
    hover(r, `${words(row.name)}: ${text}`);
    svg.append(r, element("text", {x: x_of(row.from + row.amount) + 6, y: y + 14, class: "soft"}, text));
  });
  return svg;
}

/// Racks over time: a block is a job's stay on neighbouring trays. `known`: jobs with colours of their own.
function gantt(c, known) {
  const canvas = element("canvas", {class: "timeline gantt", role: "img", "aria-label": `jobs on ${c.racks} racks`});
  const row = Math.max(5, Math.min(36, Math.floor(640 / c.racks))), left = 64, axis = 22, height = c.racks * row + axis;
  canvas.style.height = height + "px";
  let from = 0, to = c.end_s;
  const hue = new Map(known.map((name, i) => [name, `--c${i % 7}`])), others = c.counted ? "--c5" : "--c8";
  const hue_of = job => hue.get(c.jobs[job]) || (c.counted || job % 2 ? others : "--c9");
  const at = x => from + (x - left) / (canvas.clientWidth - left) * (to - from);
  function draw() {
    const ratio = window.devicePixelRatio || 1, width = canvas.clientWidth;
    canvas.width = width * ratio;
    canvas.height = height * ratio;
    const g = canvas.getContext("2d");
    g.scale(ratio, ratio);
    g.font = "11px sans-serif";
    const scale = (width - left) / (to - from), every = Math.ceil(14 / row);
    g.fillStyle = css("--ink");
    for (let r = 0; r < c.racks; r += every) g.fillText(`rack ${r}`, 2, r * row + Math.min(row, 11));
    g.fillStyle = css("--card");
    for (let r = 0; r < c.racks; ++r) g.fillRect(left, r * row, width - left, row - 1);
    const colours = new Map();
    for (const [rack, tray, trays, job, begin, length] of c.blocks) {
      if (begin + length < from || begin > to) continue;
      const x = left + Math.max(0, begin - from) * scale, w = (Math.min(to, begin + length) - Math.max(from, begin)) * scale;
      const name = hue_of(job);
      if (!colours.has(name)) colours.set(name, css(name));
      g.fillStyle = colours.get(name);
      g.fillRect(x, rack * row + tray / c.trays_per_rack * (row - 1), Math.max(w, .5), Math.max(trays / c.trays_per_rack * (row - 1) - (row > 20 ? .3 : 0), c.counted ? 2 : .4));
    }
    g.fillStyle = css("--soft");
    const ticks = width < 600 ? 2 : 6;
    for (let k = 0; k <= ticks; ++k) {
      g.textAlign = k === 0 ? "left" : k === ticks ? "right" : "center";
      g.fillText(duration(from + (to - from) * k / ticks), left + (width - left) * k / ticks, height - 6);
    }
    g.textAlign = "left";
  }
  hover(canvas, e => {
    const box = canvas.getBoundingClientRect(), y = e.clientY - box.top, rack = Math.floor(y / row), s = at(e.clientX - box.left);
    if (rack < 0 || rack >= c.racks || s < from) return "";
    const tray = Math.floor((y - rack * row) / (row - 1) * c.trays_per_rack);
    const hit = c.blocks.find(b => b[0] === rack && b[1] <= tray && tray < b[1] + b[2] && b[4] <= s && s < b[4] + b[5]);
    if (c.counted) {
      const there = c.blocks.filter(b => b[0] === rack && b[4] <= s && s < b[4] + b[5]), spare = c.trays_per_rack - there.reduce((n, b) => n + b[2], 0);
      return [`rack ${rack} at ${duration(s)}`, ...there.map(b => `${b[2]} of ${c.trays_per_rack} trays: ${c.jobs[b[3]]}`), ...(spare ? [`${spare} of ${c.trays_per_rack} trays: spare`] : [])].join("\n");
    }
    return hit ? `rack ${rack}, ${hit[2]} ${hit[2] === 1 ? "tray" : "trays"}\n${c.jobs[hit[3]]}\n${duration(hit[5])} from ${duration(hit[4])}` : `rack ${rack}\nfree or broken at ${duration(s)}`;
  });
  const zoom = factor => {
    const middle = (from + to) / 2, length = Math.min(c.end_s, (to - from) * factor);
    from = Math.min(Math.max(0, middle - length / 2), c.end_s - length);
    to = from + length;
    draw();
  };
  const button = (text, act) => { const b = element("button", {type: "button"}, text); b.addEventListener("click", act); return b; };
  const move = share => { const d = Math.max(-from, Math.min(c.end_s - to, share * (to - from))); from += d; to += d; draw(); };
  redraw.push(draw);
  const swatches = [...hue, [c.counted ? "in repair" : "other jobs", others]].map(([name, colour_name]) => {
    const swatch = element("i");
    swatch.style.background = `var(${colour_name})`;
    return element("span", {}, swatch, name);
  });
  return element("div", {}, element("p", {class: "controls"}, button("zoom in", () => zoom(.5)), " ", button("zoom out", () => zoom(2)), " ", button("earlier", () => move(-.5)), " ", button("later", () => move(.5)), " ", button("all", () => zoom(1e9))),
    element("div", {class: "legend"}, ...swatches), canvas,
    ...(c.left_out ? [element("p", {class: "soft small"}, `${digits(c.left_out)} ${c.counted ? "more states" : "shorter stays"} are left out.`)] : []));
}

function cluster_sections() {
  const spent = results.map(r => [r, r.breakdown?.gpu_time || r.breakdown?.queue_gpu_time]).filter(([, parts]) => parts?.length);
  if (spent.length) {
    section("Where GPU-hours went", "gpu-hours", "Of all GPUs of the cluster until the run or its job ends, mean over the seeds: losses from the largest on, and what is left.");
    for (const [r, parts] of spent) page.append(element("h3", {}, r.name), waterfall(parts));
  }
  const shared = results.filter(r => kind_of(r) === "operation" && r.breakdown?.jobs?.length);
  if (shared.length) {
    section("Jobs", "jobs", "Each with its share of the time since it first started that was useful; evictions are by jobs of a higher tier.");
    for (const r of shared) {
      const jobs = r.breakdown.jobs, keys = [...new Set(jobs.flatMap(j => Object.keys(j)))].filter(k => k !== "name");
      const cell = (k, v) => v === undefined || v === null ? "–" : typeof v === "string" ? v : /_share$/.test(k) ? digits(100 * v) + " %" : /gpu_hours$/.test(k) ? digits(v) : show(k, v);
      page.append(element("h3", {}, r.name), table(["", ...keys.map(words)], jobs.map(j => [j.name, ...keys.map(k => cell(k, j[k]))])));
    }
  }
  const placed = [...drawn.values()].filter(t => t.cluster);
  if (placed.length) {
    section("Racks and jobs", "racks", "Of the first seed: a row is a rack, from its first tray at the top; a block is a job's stay."
      + (placed.some(t => t.cluster.counted) ? " Of a job that is alone, blocks are as high as the number of its trays, then of those in repair; the rest are spare." : ""));
    for (const t of placed) {
      const of = results.find(r => r.name === t.scenario);
      page.append(element("h3", {}, t.scenario), gantt(t.cluster, t.cluster.counted ? t.cluster.jobs.slice(0, 2) : (of?.breakdown?.jobs || []).map(j => j.name)));
    }
  }
  const served = [...drawn.values()].filter(t => t.services?.length);
  if (served.length) section("Replicas and load", "replicas", "Of the first seed: each service over the run.");
  for (const t of served) {
    page.append(element("h3", {}, t.scenario));
    for (const key of t.services[0].curves.map(c => c.name)) {
      const [x, series] = joined(t.services.map(s => ({name: s.name, points: s.curves.find(c => c.name === key).points})));
      page.append(curves(`${key} of ${t.scenario}`, x, series, {x_format: duration, y_format: digits, x_label: "time", y_label: key, y_range: (u, low, high) => [0, Math.max(1, high * 1.1)]}));
    }
  }
  const seeded = [...drawn.values()].filter(t => t.over_seeds?.length);
  if (seeded.length) {
    section("Over the seeds", "seeds", "Share of the seeds in which a metric is at most so large. The error of step times is not in it.");
    for (const key of new Set(seeded.flatMap(t => t.over_seeds.map(c => c.name)))) {
      const lists = seeded.map(t => ({name: t.scenario, points: t.over_seeds.find(c => c.name === key)?.points || []})).filter(l => l.points.length);
      const [x, series] = joined(lists);
      page.append(curves(words(key), x, series.map(s => ({...s, steps: true})), {x_format: v => show(key, v), y_format: v => (100 * v).toFixed(0) + " %", x_label: words(key), y_range: () => [0, 1.02]}));
    }
  }
}
