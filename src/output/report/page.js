"use strict";
// Draws the report from the JSON of the page. Numbers are plain SI; units are the endings of keys.
(() => {
const data = JSON.parse(document.getElementById("data").textContent);
const page = document.getElementById("page");
const tip = document.getElementById("tip");
const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// ---- elements and numbers

function element(tag, attributes = {}, ...children) {
  const svg = ["svg", "g", "rect", "line", "text", "circle", "path", "title"].includes(tag);
  const e = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
  e.append(...children);
  return e;
}
const prefixes = [[1e18, "E"], [1e15, "P"], [1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""], [1e-3, "m"], [1e-6, "µ"], [1e-9, "n"]];
const digits = x => Math.abs(x) >= 1000 ? Math.round(x).toLocaleString("en") : String(+x.toPrecision(4));
function scaled(x, unit) {
  if (x === null || x === undefined) return "–";
  if (x === 0) return "0 " + unit;
  const [scale, prefix] = prefixes.find(([s]) => Math.abs(x) >= s) || prefixes[prefixes.length - 1];
  return digits(x / scale) + " " + prefix + unit;
}
const duration = x => Math.abs(x) >= 120 ? digits(x / 60) + " min" : scaled(x, "s");
function show(key, x) {
  if (x === null || x === undefined) return "–";
  if (/(fraction|^mfu)$/.test(key)) return digits(100 * x) + " %";
  if (/tflops/.test(key)) return digits(x) + " TFLOP/s";
  if (/requests_per_s/.test(key)) return digits(x) + " req/s";
  if (/tokens_per_s/.test(key)) return digits(x) + " tok/s";
  if (/_W_per/.test(key)) return scaled(x, "W");
  if (/_bytes$/.test(key)) return scaled(x, "B");
  if (/_Bps$/.test(key)) return scaled(x, "B/s");
  if (/_J$/.test(key)) return scaled(x, "J");
  if (/_usd$/.test(key)) return "$" + digits(x);
  if (/_s$/.test(key)) return duration(x);
  return digits(x);
}
const percent = x => (x > 0 ? "+" : "") + (100 * x).toFixed(Math.abs(x) < 0.1 ? 1 : 0) + " %";
const names = {gpu: "GPU", gpus: "GPUs", mfu: "MFU", ttft: "TTFT", tpot: "TPOT", itl: "gap between tokens", e2e: "whole request", kv: "KV", hbm: "HBM",
  nvlink: "NVLink", nic: "NIC", c2c: "C2C", slo: "SLO", tflops: "TFLOP/s", gemm: "GEMM", algbw: "algorithm bandwidth", busbw: "bus bandwidth"};
/// The unit at the end of a key is said by its numbers.
const words = key => key.replace(/_(bytes|J|usd|Bps)$/, "").replace(/_W_per_/, "_per_").replace(/_/g, " ")
  .replace(/( per)? s(\.\w+)?$/, (all, per, statistic) => (per ? " per s" : "") + (statistic ? " " + statistic.slice(1) : ""))
  .replace(/[a-z0-9]+/g, w => names[w] || w);
function hover(target, text) {
  const put = e => {
    tip.textContent = typeof text === "function" ? text(e) : text;
    tip.style.display = tip.textContent ? "block" : "none";
    const w = tip.offsetWidth, h = tip.offsetHeight;
    tip.style.left = Math.max(4, Math.min(innerWidth - w - 8, e.clientX + 14)) + "px";
    tip.style.top = (e.clientY + 18 + h > innerHeight ? e.clientY - h - 12 : e.clientY + 18) + "px";
  };
  target.addEventListener("pointermove", put);
  target.addEventListener("pointerleave", () => { tip.style.display = "none"; });
}
function section(title, id, ...notes) {
  const h = element("h2", {id}, title);
  document.getElementById("contents").append(element("a", {href: "#" + id}, title));
  page.append(h, ...notes.map(n => element("p", {class: "soft small"}, n)));
}
function table(head, rows, classes = []) {
  const t = element("table", {}, element("thead", {}, element("tr", {}, ...head.map((h, i) => element("th", classes[i] ? {class: classes[i]} : {}, h)))));
  const body = element("tbody");
  for (const row of rows)
    body.append(element("tr", {}, ...row.map((c, i) => {
      const cell = element("td", classes[i] ? {class: classes[i]} : {});
      cell.append(c);
      return cell;
    })));
  t.append(body);
  return element("div", {class: "scroll"}, t);
}
const colour = i => `var(--c${i % 10})`;
const resources = ["tensor_cores", "hbm", "nvlink", "nic", "latency", "bubble", "imbalance", "host", "c2c", "no work"];
const kinds = ["gemm", "attention", "memory_bound", "tp", "pp", "cp", "ep", "dp", "host", "optimizer"];
const order = {tensor_cores: 0, gemm: 0, hbm: 1, memory_bound: 1, attention: 6, nvlink: 2, tp: 2, nic: 3, dp: 3, latency: 4, ep: 4,
  weights: 0, vocabulary_weights: 6, gradients: 1, activations: 2, kv_cache: 2, workspace: 5, reserve: 3, logits: 7,
  queue: 8, prefill: 1, decode: 0, "decode queue": 9, transfer: 2, server: 5, bubble: 8, imbalance: 9, waiting_data_parallel: 7, host: 5, cp: 7, pp: 6, c2c: 7, optimizer: 4, "no work": 9};
const colour_of = name => colour(order[name] ?? [...name].reduce((a, c) => a + c.charCodeAt(0), 0));
function legend(names) {
  return element("div", {class: "legend"}, ...names.map(n => {
    const swatch = element("i");
    swatch.style.background = colour_of(n);
    return element("span", {}, swatch, words(n));
  }));
}

// ---- results in groups: the same work on other machines

const results = data.results || [];
const explained = new Map((data.explanations || []).map(e => [e.scenario, e]));
const drawn = new Map((data.timelines || []).map(t => [t.scenario, t]));
const gpu_of = r => r.inputs?.platform?.gpu?.name || "";
const kind_of = r => r.metrics?.step_time_s !== undefined ? "training" : r.metrics?.ttft_s !== undefined ? "inference" : "collective";
const main_metric = r => ({training: "step_time_s", inference: "output_tokens_per_s", collective: "time_s"})[kind_of(r)];
const less_is_better = key => /(_s|_J|_usd|bubble_fraction)$/.test(key) && !/per_s$/.test(key);
const neutral = key => /^(memory|kv|power|gpus|mfu)/.test(key);
const statistic = (v, s) => v && typeof v === "object" ? v[s] : v;
/// What runs do, whatever they run on.
function work_of(r) {
  const w = r.inputs?.scenario?.workload || {}, load = w.load || {};
  return JSON.stringify([kind_of(r), r.inputs?.scenario?.model, r.metrics?.gpus ?? r.name,
    w.seq_length, w.global_batch_size, load.kind, load.input, load.output, load.file, w.operation, w.size]);
}
/// Results that differ in the name of their GPU only, or do the same work on as many GPUs.
function groups() {
  const out = [];
  for (const r of results) {
    const name = kind_of(r) + " " + (gpu_of(r) ? r.name.split(gpu_of(r)).join("*") : r.name), work = work_of(r);
    const like = out.filter(g => g.names.has(name) || g.works.has(work));
    const g = like[0] || {names: new Set(), works: new Set(), results: []};
    if (!like.length) out.push(g);
    for (const other of like.slice(1)) {
      for (const k of ["names", "works"]) other[k].forEach(n => g[k].add(n));
      g.results.push(...other.results);
      out.splice(out.indexOf(other), 1);
    }
    g.names.add(name);
    g.works.add(work);
    g.results.push(r);
  }
  return out.map(g => {
    const [first] = g.results, m = first.inputs?.scenario?.model;
    if (g.names.size === 1) return {title: gpu_of(first) ? first.name.split(gpu_of(first)).join("*").replace(/[-_]?\*/g, "") : first.name, results: g.results};
    return {title: [m, kind_of(first), first.metrics?.gpus ? `on ${first.metrics.gpus} GPUs` : ""].filter(Boolean).join(" "), results: g.results};
  });
}
function label(r, g) {
  if (new Set(g.results.map(gpu_of)).size === g.results.length) return gpu_of(r).toUpperCase();
  const same = g.results.filter(x => x.name === r.name);
  return same.length > 1 ? `${r.name} (${same.indexOf(r) + 1})` : r.name;
}

/// Seconds by cause, of the time behind the main metric.
function causes(r, g) {
  const e = g.results.every(x => explained.has(x.name)) ? explained.get(r.name) : undefined;
  const tree = e?.trees?.find(t => t.title === "by bound");
  if (tree && e.apart !== undefined) return new Map(tree.whole.parts.map(p => [p.name, p.amount]));
  const mean = r.breakdown?.mean_over_gpus || {};
  return new Map(Object.entries(mean).filter(([k]) => !/^(step_time|makespan)_s$/.test(k)).map(([k, v]) => [k.replace(/_s$/, ""), v]));
}
const total = m => [...m.values()].reduce((a, b) => a + b, 0);

const most_explained = 4;
function why(g) {
  const ok = g.results.filter(r => r.metrics?.[main_metric(r)] > 0);
  if (ok.length < 2) return null;
  const box = element("div", {class: "why"});
  const a = ok[0], key = main_metric(a);
  // Of many the best, by what it gains.
  const best = ok.slice(1).sort((p, q) => (p.metrics[key] - q.metrics[key]) * (less_is_better(key) ? 1 : -1));
  if (best.length > most_explained) box.append(element("p", {class: "small soft"}, `The best ${most_explained} of ${best.length}, against ${label(a, g)}:`));
  for (const b of best.length > most_explained ? best.slice(0, most_explained) : ok.slice(1)) {
    const x = a.metrics[key], y = b.metrics[key];
    const gain = less_is_better(key) ? x / y : y / x;
    const p = element("p");
    const how = Math.abs(gain - 1) < 5e-4 ? "as fast as" : gain >= 1 ? gain.toFixed(gain < 1.1 ? 3 : 2) + " times as fast as" : "slower, " + gain.toFixed(gain > .9 ? 3 : 2) + " times as fast as";
    p.append(element("b", {}, `${label(b, g)} is ${how} ${label(a, g)}`),
      `: ${words(key)} ${show(key, y)} instead of ${show(key, x)}. `);
    const ca = causes(a, g), cb = causes(b, g), ta = total(ca);
    const saved = [...new Set([...ca.keys(), ...cb.keys()])].map(k => [k, (ca.get(k) || 0) - (cb.get(k) || 0)])
      .sort((p, q) => Math.abs(q[1]) - Math.abs(p[1])).filter(([, s]) => Math.abs(s) > 0.005 * ta);
    const list = sign => saved.filter(([, s]) => s * sign > 0).slice(0, 4).map(([k, s]) => `${duration(Math.abs(s))} (${(100 * Math.abs(s) / ta).toFixed(1)} %) in ${words(k)}`).join(", ");
    if (saved.length && ta > 0)
      p.append(`Of ${duration(ta)} on ${label(a, g)}, ` + [[1, "it saves "], [-1, "it loses "]].filter(([s]) => list(s)).map(([s, t]) => t + list(s)).join("; ") + ".");
    box.append(p);
    const differ = constants_that_differ(a, b), other = gpu_of(a) !== gpu_of(b);
    if (other && differ.length) box.append(element("p", {class: "small soft"}, "What differs in the hardware: " + differ.join("; ") + "."));
    // Of one GPU every input counts; a GPU of another generation has all of its own.
    const inputs = [...changes(a, b, "scenario/workload"), ...changes(a, b, "scenario/placement"), ...changes(a, b, "scenario/degraded"),
      ...changes(a, b, "scenario/simulation"), ...changes(a, b, "stack/name"),
      ...(other ? [] : [...changes(a, b, "platform"), ...changes(a, b, "stack/parameters")])];
    if (inputs.length) box.append(element("p", {class: "small soft"}, `What differs in the ${other ? "run" : "inputs"}: ` +
      inputs.slice(0, 8).join("; ") + (inputs.length > 8 ? `; and ${inputs.length - 8} more` : "") + "."));
  }
  return box;
}
/// Members of the inputs that two results do not share, as "name old → new".
function changes(a, b, where) {
  const [x, y] = [a, b].map(r => where.split("/").reduce((v, k) => v?.[k], r.inputs));
  const out = [];
  const text = v => v === undefined || v === null ? "none" : typeof v === "object" ? clipped(JSON.stringify(v), 40) : String(v);
  const walk = (p, q, path) => {
    const tables = [p, q].every(v => v && typeof v === "object" && !Array.isArray(v));
    if (tables && ("value" in p || "value" in q)) return walk(p.value, q.value, path);
    if (tables) for (const k of new Set([...Object.keys(p), ...Object.keys(q)])) {
      if (!["name", "description", "source", "sources", "note", "kind"].includes(k)) walk(p[k], q[k], [...path, k]);
    }
    else if (JSON.stringify(p) !== JSON.stringify(q)) out.push(`${path.slice(-2).map(words).join(" ") || "stack"} ${text(p)} → ${text(q)}`);
  };
  walk(x, y, []);
  return out;
}
function constants_that_differ(a, b) {
  const wanted = [["/gpu/hbm_bandwidth", "memory rate"], ["/gpu/hbm_usable", "usable memory"], ["/gpu/tdp", "power"],
    ["/gpu/nvlink", "NVLink"], ["/fabric/nic_bandwidth", "NIC"], ["/gpu/exponentials", "exponentials"]];
  for (const f of ["nvfp4", "fp8", "bf16"]) wanted.push([`/gpu/peaks/${f}/dense`, f.toUpperCase() + " dense peak"]);
  const at = (r, p) => {
    const v = p.split("/").slice(1).reduce((x, k) => x?.[k], r.inputs?.platform);
    const text = v && typeof v === "object" ? v.value : v;
    return /^\d+ B$/.test(text) ? scaled(parseFloat(text), "B") : text;
  };
  return wanted.map(([p, n]) => [n, at(a, p), at(b, p)]).filter(([, x, y]) => x !== undefined && y !== undefined && String(x) !== String(y))
    .map(([n, x, y]) => `${n} ${x} → ${y}`);
}

function comparison(g) {
  const keys = [];
  for (const r of g.results) for (const [k, v] of Object.entries(r.metrics || {})) {
    const names = v && typeof v === "object" ? ["p50", "p99"].map(s => k + "." + s) : [k];
    for (const n of names) if (!keys.includes(n)) keys.push(n);
  }
  const value = (r, k) => { const [m, s] = k.split("."); return statistic(r.metrics?.[m], s); };
  const rows = keys.filter(k => g.results.some(r => value(r, k) !== null && value(r, k) !== undefined)).map(k => [words(k), ...g.results.flatMap((r, i) => {
    const x = value(r, k), base = value(g.results[0], k);
    const band = r.bands?.[k];
    const cell = element("span", {}, show(k.split(".")[0], x));
    if (band) hover(cell, `90 % of published values of such runs lie in ${show(k, band[0])} … ${show(k, band[1])}`);
    if (i === 0) return [cell];
    const change = x !== null && base ? x / base - 1 : null;
    const good = change !== null && Math.abs(change) > 1e-9 && !neutral(k) ? (less_is_better(k.split(".")[0]) ? change < 0 : change > 0) : null;
    return [cell, element("span", {class: good === null ? "" : good ? "good" : "bad"}, change === null || Number.isNaN(change) ? "" : percent(change))];
  })]);
  const head = ["", ...g.results.flatMap((r, i) => i === 0 ? [label(r, g)] : [label(r, g), "change"])];
  return table(head, rows);
}

// ---- charts of rectangles

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
  svg.append(element("text", {x: middle, y: rows.length * height + 16, class: "soft", "text-anchor": "middle"}, `change of ${words(e.metric)}, up to ${percent(most).slice(1)}: orange with nine tenths of the constant, blue with eleven`));
  return svg;
}

/// "15 PFLOPS"
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
  const low = Math.max(10 ** x0, 10 ** y0 / hbm);  // where the memory roof enters the drawing
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

// ---- the timeline: lanes of slices, drawn on a canvas that zooms and follows the pointer

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
    t.lanes.forEach((lane, i) => {
      g.fillStyle = css("--ink");
      g.fillText(clipped(lane.name, left / 6.2), 2, i * row + 13);
      for (const [name, begin, length] of lane.slices) {
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
    const box = canvas.getBoundingClientRect(), lane = t.lanes[Math.floor((e.clientY - box.top) / row)], s = at(e.clientX - box.left);
    const hit = lane?.slices.find(x => x[1] <= s && s < x[1] + x[2]);
    return hit ? `${lane.name}\n${t.names[hit[0]]}${hit[3] >= 0 ? `, micro-batch ${hit[3]}` : ""}\n${duration(hit[2])} at ${duration(hit[1])}` : lane ? `${lane.name}\nidle at ${duration(s)}` : "";
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
/// Series with x of their own on one axis.
function joined(lists) {
  const x = [...new Set(lists.flatMap(l => l.points.map(p => p[0])))].sort((a, b) => a - b);
  return [x, lists.map(l => { const m = new Map(l.points); return {...l, values: x.map(v => m.has(v) ? m.get(v) : null)}; })];
}

// ---- the page

document.getElementById("about").textContent = `nvlsim ${data.version}, ${results.length} ${results.length === 1 ? "result" : "results"}. Simulated, not measured; bands say how far published measurements of such runs were off.`;
const all_groups = groups();

if (all_groups.length) section("Headline", "headline");
for (const g of all_groups) {
  page.append(element("h3", {}, g.title));
  const failed = g.results.filter(r => r.status !== "ok");
  for (const r of failed) page.append(element("p", {class: "bad"}, `${r.name}: ${r.status}. ${(r.reasons || []).join(" ")}`));
  const box = why(g);
  if (box) page.append(box);
  else for (const r of g.results) if (r.metrics?.[main_metric(r)] != null)
    page.append(element("p", {}, `${r.name}: ${words(main_metric(r))} ${show(main_metric(r), r.metrics[main_metric(r)])}.`));
}

if (all_groups.length) section("Comparison", "comparison", "Changes are relative to the first column. Point at a number with a band to see it.");
for (const g of all_groups) page.append(element("h3", {}, g.title), comparison(g));

if (all_groups.length) section("Where the time goes", "breakdown", "Of the mean GPU, by what the time would be shorter with more of; point at a part for its share.");
for (const g of all_groups) {
  const rows = g.results.map(r => ({name: label(r, g), parts: [...causes(r, g)].sort((a, b) => (order[a[0]] ?? 9) - (order[b[0]] ?? 9))})).filter(r => r.parts.length);
  if (!rows.length) continue;
  page.append(element("h3", {}, g.title), legend([...new Set(rows.flatMap(r => r.parts.map(p => p[0])))]), bars(rows, "x_s"));
}

const staged = results.map(r => [r, (explained.get(r.name)?.trees || []).filter(t => t.title === "by stage")]).filter(([, trees]) => trees.length);
if (staged.length) {
  section("Where requests wait", "stages", "Of the request with the median time from arrival to last token, and of the one that one in a hundred is slower than: where it was.");
  for (const [r, trees] of staged) {
    const rows = trees.map(t => ({name: words(t.whole.name), parts: t.whole.parts.map(p => [p.name, p.amount])}));
    page.append(element("h3", {}, r.name), legend([...new Set(rows.flatMap(x => x.parts.map(p => p[0])))]), bars(rows, "x_s"));
  }
}

if (drawn.size) {
  section("Timeline", "timeline", "Each lane is a class of GPUs that do the same; gaps are bubbles and waits.");
  for (const t of drawn.values()) page.append(element("h3", {}, t.scenario), timeline(t));
}

if (all_groups.length) section("Memory", "memory", "Of the fullest GPU.");
for (const g of all_groups) {
  const rows = g.results.filter(r => r.memory?.items?.length).map(r => ({name: label(r, g), parts: r.memory.items.map(i => [i.name, i.bytes, i.reason])}));
  if (!rows.length) continue;
  rows.push(...g.results.filter(r => r.memory?.usable_bytes).map(r => ({name: label(r, g) + ", usable", parts: [["no work", r.memory.usable_bytes, "what a job can allocate"]]})));
  page.append(element("h3", {}, g.title), legend([...new Set(rows.flatMap(r => r.parts.map(p => p[0])))].filter(n => n !== "no work")), bars(rows, "x_bytes"));
}
for (const t of drawn.values()) if (t.memory?.length) {
  const [x, series] = joined(t.memory.map(m => ({name: m.name, points: m.points, steps: true})));
  page.append(curves(`memory of ${t.scenario} over time`, x, series, {x_format: duration, y_format: v => scaled(v, "B"), x_label: "time", y_range: (u, low, high) => [0, high * 1.1]}));
}

// ---- sweeps: one curve for each combination of what is not on the x axis

const leading_number = v => typeof v === "number" ? v : typeof v === "string" && /^-?[\d.]+(e[+-]?\d+)?( |$)/.test(v) ? parseFloat(v) : null;
const pointer_words = p => p.split("/").slice(-2).filter(w => w && w !== "workload").map(words).join(" ");
const setting = v => typeof v === "object" ? (v?.use || JSON.stringify(v)) : String(v);
function sweep_curves(s) {
  const points = s.points.filter(p => p.status === "ok" || p.status === "saturated");
  const distinct = new Map();
  for (const p of points) for (const [k, v] of Object.entries(p.set)) distinct.set(k, (distinct.get(k) || new Set()).add(JSON.stringify(v)));
  const varied = [...distinct].filter(([, v]) => v.size > 1).map(([k]) => k);
  const numeric = varied.filter(k => points.every(p => leading_number(p.set[k]) !== null)).sort((a, b) => distinct.get(b).size - distinct.get(a).size);
  // Over GPUs where they differ, else over the setting with most values.
  const first = points[0]?.metrics, sizes = new Set(points.map(p => p.metrics.gpus)), by_size = sizes.size > 1;
  const x_key = numeric[0], x_of = by_size ? p => p.metrics.gpus : p => leading_number(p.set[x_key]);
  if (!first || (!x_key && !by_size)) return [];
  // What is set together with the axis (a batch that grows with it) says nothing of its own.
  const tied = k => points.every(p => points.every(q => x_of(p) !== x_of(q) || JSON.stringify(p.set[k]) === JSON.stringify(q.set[k])));
  const others = varied.filter(k => (by_size || k !== x_key) && (points.length > 400 || !tied(k)));
  const series_of = p => others.map(k => `${pointer_words(k)} ${setting(p.set[k])}`).join(", ") || s.name;
  const charts = [];
  for (const key of ["step_time_s", "tokens_per_s_per_gpu", "mfu", "output_tokens_per_s_per_gpu", "tpot_s", "time_s", "busbw_Bps"]) {
    if (first[key] === undefined || first[key] === null) continue;
    const lists = new Map();
    for (const p of points) {
      const y = statistic(p.metrics[key], "mean");
      if (typeof y === "number") lists.set(series_of(p), (lists.get(series_of(p)) || []).concat([[x_of(p), y]]));
    }
    const [x, series] = joined([...lists].slice(0, 10).map(([name, ps]) => ({name, points: ps})));
    const unit = by_size ? "" : /^[-\d.e+]+ (.*)$/.exec(points[0].set[x_key])?.[1] || "";
    const x_name = by_size ? "GPUs" : pointer_words(x_key) + (unit ? ` (${unit})` : "");
    charts.push(curves(`${words(key)} over ${x_name}`, x, series,
      {y_format: v => show(key, v), x_label: x_name, log_x: x[0] > 0 && x[x.length - 1] / x[0] >= 8}));
  }
  return charts;
}
const sweeps = (data.sweeps || []).filter(s => s.points.length);
if (sweeps.length) {
  section("Sweeps", "sweeps", "Each curve is one combination of the other settings.");
  for (const s of sweeps) {
    const bad = s.points.filter(p => p.status !== "ok" && p.status !== "saturated").length;
    page.append(element("h3", {}, `${s.name}: ${s.points.length} points${bad ? `, ${bad} of them cannot run or failed` : ""}`), ...sweep_curves(s));
  }
}

const searches = data.searches || [];
if (searches.length) {
  section("Layouts", "layouts", "The best that were found.");
  for (const s of searches) {
    const layout = Object.keys(s.best[0]?.layout || {}), metrics = Object.keys(s.best[0]?.metrics || {});
    page.append(element("h3", {}, `${s.scenario} on ${s.gpus} GPUs by ${words(s.objective)}`),
      element("p", {class: "soft small"}, `${s.candidates} layouts, ${s.found} can run.`),
      table(["", ...layout.map(words), ...metrics.map(words)], s.best.slice(0, 20).map((b, i) =>
        [String(i + 1), ...layout.map(k => setting(b.layout[k])), ...metrics.map(k => show(k, b.metrics[k]))])));
  }
}

const with_roof = results.map(r => [r, explained.get(r.name)]).filter(([, e]) => e?.kernels?.length);
if (with_roof.length) {
  section("Roofline", "roofline", "Each disc is a kernel, its area the share of the time; lines are the data sheet's memory rate and dense peaks.");
  for (const [r, e] of with_roof) {
    const chart = roofline(e, r);
    if (chart) page.append(element("h3", {}, r.name), legend([...new Set(e.kernels.map(k => k.bound))]), chart);
    page.append(table(["kernel", "time", "rate", "of ceiling", "shape"], e.kernels.slice(0, 8).map(k => {
      const flop = k.rate_FLOP_per_s !== undefined, rate = flop ? k.rate_FLOP_per_s : k.rate_Bps, top = flop ? k.ceiling_FLOP_per_s : k.ceiling_Bps;
      return [`${k.name}, ${k.phase}`, (100 * k.share).toFixed(1) + " %", scaled(rate, flop ? "FLOP/s" : "B/s"), top ? (100 * rate / top).toFixed(0) + " %" : "–", k.shape];
    }), ["", "", "", "", "text"]));
  }
}

const links = results.filter(r => r.breakdown?.links?.length);
if (links.length) {
  section("Links", "links", "Ports whose traffic was simulated as flows, the busiest first: share of their rate over the whole run, and at most.");
  for (const r of links) page.append(element("h3", {}, r.name), table(["port", "mean", "peak", "carried", "most of it"], r.breakdown.links.map(l =>
    [l.name, (100 * l.mean_share).toFixed(1) + " %", (100 * l.peak_share).toFixed(0) + " %", scaled(l.carried_bytes, "B"), l.busiest || "–"]), ["", "", "", "", "text"]));
}

const served = results.filter(r => r.metrics?.ttft_s);
if (served.length) {
  section("Latency", "latency", "Shares of requests (or gaps) that are at least as quick.");
  const quantiles = [["p50", .5], ["p90", .9], ["p95", .95], ["p99", .99], ["max", 1]];
  for (const key of ["ttft_s", "tpot_s", "itl_s"]) {
    const lists = served.filter(r => r.metrics[key]).map(r => ({name: r.name, points: drawn.get(r.name)?.latencies?.find(l => l.metric === key)?.points || quantiles.map(([q, y]) => [r.metrics[key][q], y])}));
    if (!lists.length) continue;
    const [x, series] = joined(lists);
    page.append(curves(words(key), x, series, {x_format: duration, y_format: v => (100 * v).toFixed(0) + " %", x_label: words(key), y_range: () => [lists.some(l => l.points[0][1] < .4) ? 0 : .45, 1.02]}));
  }
  if (served.length > 2) {
    const kind = r => `${gpu_of(r)} ${r.inputs?.scenario?.model || ""}`;
    const lists = [...new Set(served.map(kind))].map(name => ({name, points: served.filter(r => kind(r) === name).map(r => [r.metrics.output_tokens_per_s_per_user, r.metrics.output_tokens_per_s_per_gpu])})).filter(l => l.points.length > 1);
    if (lists.length) { const [x, series] = joined(lists); page.append(curves("tokens/s of a GPU against tokens/s of a user", x, series, {x_label: "tok/s a user"})); }
  }
}

const by_size = new Map();
for (const r of results) {
  const name = [gpu_of(r), kind_of(r), r.inputs?.scenario?.model || ""].join(" ");
  if (r.metrics?.gpus && r.metrics[main_metric(r)] != null) by_size.set(name, [...(by_size.get(name) || []), r]);
}
const scaling = [...by_size].filter(([, rs]) => new Set(rs.map(r => r.metrics.gpus)).size > 1);
function best_of_each(rs) {
  const best = new Map(), key = rs.length ? main_metric(rs[0]) : "", sign = less_is_better(key) ? 1 : -1;
  for (const r of rs) if (!best.has(r.metrics.gpus) || sign * (r.metrics[key] - best.get(r.metrics.gpus).metrics[key]) < 0) best.set(r.metrics.gpus, r);
  return [...best.values()];
}
if (scaling.length) {
  section("Scaling", "scaling", "Results of one GPU and model by their number of GPUs; of several on as many GPUs the best.");
  for (const key of ["tokens_per_s", "output_tokens_per_s", "step_time_s", "mfu"]) {
    const lists = scaling.map(([name, rs]) => ({name, points: best_of_each(rs.filter(r => r.metrics[key] != null)).map(r => [r.metrics.gpus, r.metrics[key]])})).filter(l => l.points.length > 1);
    if (!lists.length) continue;
    const [x, series] = joined(lists);
    page.append(curves(words(key), x, series, {log_x: true, x_label: "GPUs", y_format: v => show(key, v)}));
  }
}

const tornados = [...explained.values()].filter(e => e.sensitivities?.length);
if (tornados.length) {
  section("Sensitivity", "sensitivity", "What the number does when one constant moves by a tenth.");
  for (const e of tornados) {
    page.append(element("h3", {}, `${e.scenario}: ${words(e.metric)}`), tornado(e));
    for (const t of e.turning_points || [])
      page.append(element("p", {class: "small"}, `${t.pointer} at ${digits(t.factor)} × ${t.value}: ${words(t.to_bound)} limits the run instead of ${words(t.from_bound)}.`));
  }
}

section("What it rests on", "inputs");
for (const r of results) {
  const e = explained.get(r.name);
  const d = element("details", {}, element("summary", {}, `${r.name}: inputs, notes${e ? ", constants and sources" : ""} (digest ${r.inputs?.digest || "?"})`));
  const notes = [...(r.notes || []), ...(e?.band_reasons || [])];
  if (notes.length) d.append(element("ul", {class: "small"}, ...[...new Set(notes)].map(n => element("li", {}, n))));
  if (e?.defaults && Object.keys(e.defaults).length) d.append(element("h3", {}, "Assumed by default"), table(["input", "value"], Object.entries(e.defaults).map(([k, v]) => [k, typeof v === "string" ? v : JSON.stringify(v)])));
  if (e?.constants?.length) d.append(element("h3", {}, "Constants"), table(["constant", "value", "kind", "of", "source"], e.constants.map(c => [c.pointer, c.value, c.kind, c.from, c.source]), ["", "", "", "", "text"]));
  const scenario = element("pre", {class: "small scroll"}, JSON.stringify(r.inputs?.scenario ?? {}, null, 1));
  d.append(element("h3", {}, "Scenario"), scenario);
  page.append(d);
}

const draw_all = () => redraw.forEach(f => f());
draw_all();
addEventListener("resize", draw_all);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw_all);
})();
