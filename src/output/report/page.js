// The sections of the page, from top to bottom.
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

if (all_groups.length) section("Comparison", "comparison", "Changes are relative to the first column. The small numbers are bands: nine of ten published values of similar runs are inside.");
for (const g of all_groups) page.append(element("h3", {}, g.title), comparison(g));

if (results.some(r => explained.has(r.name) && kind_of(r) !== "operation" || r.breakdown?.mean_over_gpus)) section("Where the time goes", "breakdown", `Of the mean GPU, by ${explained.size ? "limiting resource" : "kind of work"}; hover over a part to see its share.`);
for (const g of all_groups) {
  const rows = g.results.map(r => ({name: label(r, g), parts: [...causes(r, g)].sort((a, b) => (order[a[0]] ?? 9) - (order[b[0]] ?? 9))})).filter(r => r.parts.length);
  if (!rows.length) continue;
  page.append(element("h3", {}, g.title), legend([...new Set(rows.flatMap(r => r.parts.map(p => p[0])))]), bars(rows, "x_s"));
}

cluster_sections();

const staged = results.map(r => [r, (explained.get(r.name)?.trees || []).filter(t => t.title === "by stage")]).filter(([, trees]) => trees.length);
if (staged.length) {
  section("Where requests wait", "stages", "Of the request with the median time from arrival to last token, and of the one that one in a hundred is slower than: where it was.");
  for (const [r, trees] of staged) {
    const rows = trees.map(t => ({name: words(t.whole.name), parts: t.whole.parts.map(p => [p.name, p.amount])}));
    page.append(element("h3", {}, r.name), legend([...new Set(rows.flatMap(x => x.parts.map(p => p[0])))]), bars(rows, "x_s"));
  }
}

if (drawn.size) {
  section("Timeline", "timeline", "Each track is a class of GPUs that do the same; gaps are bubbles and waits.");
  for (const t of drawn.values()) page.append(element("h3", {}, t.scenario), timeline(t));
}

if (results.some(r => r.memory?.items?.length) || [...drawn.values()].some(t => t.memory?.length)) section("Memory", "memory", "Of the fullest GPU.");
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

const powered = [...drawn.values()].filter(t => t.power?.length);
if (powered.length) section("Power", "power", "At the site over a step.");
for (const t of powered) {
  const [x, series] = joined(t.power.map(p => ({name: p.name, points: p.points})));
  page.append(curves(`power of ${t.scenario} over a step`, x, series, {x_format: duration, y_format: v => scaled(v, "W"), x_label: "time", y_range: (u, low, high) => [0, high * 1.1]}));
}

// ---- sweeps: one curve per combination of the settings that are not on the x axis

const leading_number = v => typeof v === "number" ? v : typeof v === "string" && /^-?[\d.]+(e[+-]?\d+)?( |$)/.test(v) ? parseFloat(v) : null;
const pointer_words = p => p.split("/").slice(-2).filter(w => w && w !== "workload").map(words).join(" ");
const setting = v => Array.isArray(v) ? v.join("+") : typeof v === "object" ? (v?.use || JSON.stringify(v)) : String(v);
function sweep_curves(s) {
  const points = s.points.filter(p => p.status === "ok" || p.status === "saturated");
  const distinct = new Map();
  for (const p of points) for (const [k, v] of Object.entries(p.set)) distinct.set(k, (distinct.get(k) || new Set()).add(JSON.stringify(v)));
  const varied = [...distinct].filter(([, v]) => v.size > 1).map(([k]) => k);
  const numeric = varied.filter(k => points.every(p => leading_number(p.set[k]) !== null)).sort((a, b) => distinct.get(b).size - distinct.get(a).size);
  // The x axis is the number of GPUs if it differs, else the setting with the most values.
  const first = points[0]?.metrics, sizes = new Set(points.map(p => p.metrics.gpus)), by_size = sizes.size > 1;
  const x_key = numeric[0], x_of = by_size ? p => p.metrics.gpus : p => leading_number(p.set[x_key]);
  if (!first || (!x_key && !by_size)) return [];
  // Settings that change together with the axis (a growing batch) need no label.
  const tied = k => points.every(p => points.every(q => x_of(p) !== x_of(q) || JSON.stringify(p.set[k]) === JSON.stringify(q.set[k])));
  const others = varied.filter(k => (by_size || k !== x_key) && (points.length > 400 || !tied(k)));
  const series_of = p => others.map(k => `${pointer_words(k)} ${setting(p.set[k])}`).join(", ") || s.name;
  const charts = [];
  let left_out = 0;
  const wanted = data.shown.curves.filter(k => first[k] !== undefined && first[k] !== null);
  for (const key of wanted.length ? wanted : [headline(first)].filter(k => k)) {
    const lists = new Map();
    for (const p of points) {
      const y = statistic(p.metrics[key], "mean");
      if (typeof y === "number") lists.set(series_of(p), (lists.get(series_of(p)) || []).concat([[x_of(p), y]]));
    }
    const sorted = [...lists].sort((a, b) => in_order(a[0], b[0])).map(([name, ps]) => ({name, points: ps}));
    if (by_size && /^(output_)?tokens_per_s_per_gpu$/.test(key))
      charts.unshift(...scaling_charts(key.replace("_per_gpu", ""), sorted.map(l => ({...l, points: l.points.map(([n, y]) => [n, n * y])}))));
    const [x, series] = joined(sorted.slice(0, 10));
    if (sorted.length > 10) left_out = sorted.length - 10;
    const unit = by_size ? "" : /^[-\d.e+]+ (.*)$/.exec(points[0].set[x_key])?.[1] || "";
    const x_name = by_size ? "GPUs" : pointer_words(x_key) + (unit ? ` (${unit})` : "");
    charts.push(curves(`${words(key)} over ${x_name}`, x, series,
      {y_format: v => show(key, v), x_label: x_name, log_x: x[0] > 0 && x[x.length - 1] / x[0] >= 8}));
  }
  if (left_out) charts.push(element("p", {class: "soft small"}, `The first 10 of ${left_out + 10} combinations are drawn.`));
  return charts;
}
/// Reasons why points did not run, the most frequent first.
function failures(s) {
  const bad = s.points.filter(p => p.status !== "ok" && p.status !== "saturated"), kinds = new Map();
  for (const p of bad) {
    const why = `${p.status}: ${(p.reasons || []).join("; ") || "no reason kept"}`;
    kinds.set(why, [...(kinds.get(why) || []), p]);
  }
  if (!bad.length) return [];
  const settings = p => Object.entries(p.set).map(([k, v]) => `${pointer_words(k)} ${setting(v)}`).join(", ");
  return [table(["points", "why", "such as"], [...kinds].sort((a, b) => b[1].length - a[1].length).slice(0, 12).map(([why, ps]) => [String(ps.length), why, settings(ps[0])]), ["", "text", "text"])];
}
const sweeps = (data.sweeps || []).filter(s => s.points.length);
if (sweeps.length) {
  section("Sweeps", "sweeps", "Each curve is one combination of the other settings.");
  for (const s of sweeps) {
    const bad = s.points.filter(p => p.status !== "ok" && p.status !== "saturated").length;
    page.append(element("h3", {}, `${s.name}: ${s.points.length} points${bad ? `, ${bad} of them cannot run or failed` : ""}`), ...sweep_curves(s), ...failures(s));
  }
}

const searches = data.searches || [];
/// The front of a search: no layout is better in both of its first two metrics.
function front_chart(s) {
  const [a, b] = s.front_metrics || [];
  const points = (s.front || []).map(l => [l.metrics[b], l.metrics[a]]).filter(p => p.every(v => typeof v === "number")).sort((p, q) => p[0] - q[0]);
  if (!b || points.length < 2) return [];
  return [curves(`${words(a)} over ${words(b)}: no layout is better in both`, points.map(p => p[0]), [{name: words(a), values: points.map(p => p[1])}],
    {x_format: v => show(b, v), y_format: v => show(a, v), x_label: words(b)})];
}
if (searches.length) {
  section("Layouts", "layouts", "The best layouts found: the objective first, then what else the search weighs, the settings that differ, and the other metrics.");
  const titles = new Map();
  for (const s of searches) {
    const best = s.best.slice(0, 20), value = best.length ? `: ${show(s.objective, best[0].metrics[s.objective])}` : ": none found";
    const title = `${s.scenario} on ${s.gpus} GPUs by ${words(s.objective)}${value}`, times = (titles.get(title) || 0) + 1;
    titles.set(title, times);
    const same = k => best.every(b => setting(b.layout[k]) === setting(best[0].layout[k]));
    const layout = Object.keys(best[0]?.layout || {}), apart = layout.filter(k => !same(k));
    const weighed = [s.objective, ...(s.front_metrics || []).filter(k => k !== s.objective)];
    const others = Object.keys(best[0]?.metrics || {}).filter(k => !weighed.includes(k) && best.some(b => b.metrics[k] !== null));
    page.append(element("h3", {}, title + (times > 1 ? ` (${times})` : "")),
      element("p", {class: "soft small"}, `${digits(s.candidates)} layouts, ${digits(s.found)} can run.`));
    if (best.length) page.append(...front_chart(s),
      table(["", ...weighed.map(words), ...apart.map(words), ...others.map(words)], best.map((b, i) =>
        [String(i + 1), element("b", {}, show(s.objective, b.metrics[s.objective])), ...weighed.slice(1).map(k => show(k, b.metrics[k])),
          ...apart.map(k => setting(b.layout[k])), ...others.map(k => show(k, b.metrics[k]))])),
      element("p", {class: "small"}, `All: ${layout.filter(same).map(k => `${words(k)} ${setting(best[0].layout[k])}`).join(", ")}.`));
    if (s.command) page.append(element("pre", {class: "small"}, s.command));
    if (s.pruned?.length) page.append(table(["layouts left out", "why", "such as"], s.pruned.slice(0, 12).map(p => [digits(p.count), p.reason, p.example]), ["", "text", "text"]));
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
  for (const r of links) page.append(element("h3", {}, r.name), table(["port", "mean", "peak", "carried", "largest part"], r.breakdown.links.map(l =>
    [l.name, (100 * l.mean_share).toFixed(1) + " %", (100 * l.peak_share).toFixed(0) + " %", scaled(l.carried_bytes, "B"), l.busiest || "–"]), ["", "", "", "", "text"]));
}

const served = results.filter(r => r.metrics?.ttft_s);
if (served.length) {
  section("Latency", "latency", "Shares of requests (or gaps) that are at least as quick.");
  const quantiles = [["p50", .5], ["p90", .9], ["p95", .95], ["p99", .99], ["max", 1]];
  for (const key of data.shown.latencies) {
    const lists = served.filter(r => r.metrics[key]).map(r => ({name: r.name, points: drawn.get(r.name)?.latencies?.find(l => l.metric === key)?.points || quantiles.map(([q, y]) => [r.metrics[key][q], y])}));
    if (!lists.length) continue;
    const [x, series] = joined(lists);
    page.append(curves(words(key), x, series, {x_format: duration, y_format: v => (100 * v).toFixed(0) + " %", x_label: words(key), y_range: () => [lists.some(l => l.points[0][1] < .4) ? 0 : .45, 1.02]}));
  }
  if (served.length > 2) {
    const kind = r => `${gpu_of(r)} ${r.inputs?.scenario?.model || ""}`;
    const lists = [...new Set(served.map(kind))].map(name => ({name, points: served.filter(r => kind(r) === name).map(r => [r.metrics.output_tokens_per_s_per_user, r.metrics.output_tokens_per_s_per_gpu])})).filter(l => l.points.length > 1);
    if (lists.length) { const [x, series] = joined(lists); page.append(curves("tokens/s per GPU over tokens/s per user", x, series, {x_label: "tok/s per user"})); }
  }
}

const by_size = new Map();
for (const r of results) {
  const name = [gpu_of(r), kind_of(r), r.inputs?.scenario?.model || ""].join(" ");
  if (r.metrics?.gpus && r.metrics[main_metric(r)] != null) by_size.set(name, [...(by_size.get(name) || []), r]);
}
const scaling = [...by_size].filter(([, rs]) => new Set(rs.map(r => r.metrics.gpus)).size > 1);
function best_of_each(rs) {
  const best = new Map(), key = rs.length ? main_metric(rs[0]) : "", sign = better(key) === "smaller" ? 1 : -1;
  for (const r of rs) if (!best.has(r.metrics.gpus) || sign * (r.metrics[key] - best.get(r.metrics.gpus).metrics[key]) < 0) best.set(r.metrics.gpus, r);
  return [...best.values()];
}
if (scaling.length) {
  section("Scaling", "scaling", "Results of one GPU and model by their number of GPUs; of several on as many GPUs the best.");
  for (const key of ["tokens_per_s", "output_tokens_per_s"])
    page.append(...scaling_charts(key, scaling.map(([name, rs]) => ({name, points: best_of_each(rs.filter(r => r.metrics[key] != null)).map(r => [r.metrics.gpus, r.metrics[key]])}))));
  for (const key of ["step_time_s", "mfu"]) {
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

section("Inputs and sources", "inputs");
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
// On paper nothing is folded away, and charts have the colours of paper.
const closed = new Set();
function for_paper(printing) {
  for (const d of document.querySelectorAll("details")) {
    if (printing && !d.open) closed.add(d), d.open = true;
    else if (!printing && closed.delete(d)) d.open = false;
  }
  draw_all();
}
addEventListener("beforeprint", () => for_paper(true));
addEventListener("afterprint", () => for_paper(false));
matchMedia("print").addEventListener("change", e => for_paper(e.matches));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw_all);
