// Groups results by workload and explains why one is faster than another.
const results = data.results || [];
const explained = new Map((data.explanations || []).map(e => [e.scenario, e]));
const drawn = new Map((data.timelines || []).map(t => [t.scenario, t]));
const gpu_of = r => r.inputs?.platform?.gpu?.name || "";
const kind_of = r => r.inputs?.scenario?.workload?.kind || "collective";
/// The first metric of the kind that has a better direction; a cluster's depends on what it is used for.
function headline(known) {
  const has = k => known?.[k] !== null && known?.[k] !== undefined;
  const table = Object.values(data.metrics).find(rows => Object.keys(rows)[0] in (known || {})) || {};
  return data.shown.headlines.find(has) || Object.keys(table).find(k => better(k) && has(k));
}
const main_metric = r => headline(r.metrics);
const statistic = (v, s) => v && typeof v === "object" ? v[s] : v;
/// The workload of a run, independent of the hardware.
function work_of(r) {
  const w = r.inputs?.scenario?.workload || {}, load = w.load || {};
  return JSON.stringify([kind_of(r), r.inputs?.scenario?.model, r.metrics?.gpus ?? r.name,
    w.seq_length, w.global_batch_size, load.kind, load.input, load.output, load.file, w.operation, w.size]);
}
/// Groups results whose names differ only in the GPU, or that run the same workload on the same number of GPUs.
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
    if (g.names.size === 1) return {title: gpu_of(first) ? first.name.split(gpu_of(first)).join("*").replace(/[-_]?\*/g, "").replace(/^-/, "") : first.name, results: g.results};
    return {title: [m, kind_of(first), first.metrics?.gpus ? `on ${first.metrics.gpus} GPUs` : ""].filter(Boolean).join(" "), results: g.results};
  });
}
function label(r, g) {
  if (new Set(g.results.map(gpu_of)).size === g.results.length) return gpu_of(r).toUpperCase();
  const same = g.results.filter(x => x.name === r.name);
  return same.length > 1 ? `${r.name} (${same.indexOf(r) + 1})` : r.name;
}

/// Seconds by cause, for the time behind the main metric.
function causes(r, g) {
  const e = g.results.every(x => explained.has(x.name)) ? explained.get(r.name) : undefined;
  const tree = e?.trees?.find(t => t.title === "by bound");
  if (tree && e.apart !== undefined) return new Map(tree.whole.parts.map(p => [p.name, p.amount]));
  // A result does not say what a stage waited for: another stage or a slow port.
  const mean = r.breakdown?.mean_over_gpus || {}, known = k => k === "bubble_s" ? "pipeline_wait" : k.replace(/_s$/, "");
  return new Map(Object.entries(mean).filter(([k]) => !/^(step_time|makespan)_s$/.test(k)).map(([k, v]) => [known(k), v]));
}
const total = m => [...m.values()].reduce((a, b) => a + b, 0);

const max_explained = 4;
function why(g) {
  const ok = g.results.filter(r => r.metrics?.[main_metric(r)] > 0);
  if (ok.length < 2) return null;
  const box = element("div", {class: "why"});
  const a = ok[0], key = main_metric(a);
  // If there are many, only the best ones.
  const best = ok.slice(1).sort((p, q) => (p.metrics[key] - q.metrics[key]) * (better(key) === "smaller" ? 1 : -1));
  if (best.length > max_explained) box.append(element("p", {class: "small soft"}, `The best ${max_explained} of ${best.length}, against ${label(a, g)}:`));
  for (const b of best.length > max_explained ? best.slice(0, max_explained) : ok.slice(1)) {
    const x = a.metrics[key], y = b.metrics[key];
    const gain = better(key) === "smaller" ? x / y : y / x;
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
    // With the same GPU, list every input; GPUs of different generations differ in all of theirs.
    const inputs = [...changes(a, b, "scenario/workload"), ...changes(a, b, "scenario/placement"), ...changes(a, b, "scenario/degraded"),
      ...changes(a, b, "scenario/simulation"), ...changes(a, b, "stack/name"),
      ...(other ? [] : [...changes(a, b, "platform"), ...changes(a, b, "stack/parameters")])];
    if (inputs.length) box.append(element("p", {class: "small soft"}, `What differs in the ${other ? "run" : "inputs"}: ` +
      inputs.slice(0, 8).join("; ") + (inputs.length > 8 ? `; and ${inputs.length - 8} more` : "") + "."));
  }
  return box;
}
/// Inputs that differ between two results, as "name old → new".
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
    else if (JSON.stringify(p) !== JSON.stringify(q)) out.push(`${path.slice(-2).map(words).join(" ") || words(where.split("/").pop())} ${text(p)} → ${text(q)}`);
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
    const cell = element("span", {}, show(k, x));
    if (band) cell.append(element("small", {class: "band"}, `${show(k, band[0])} … ${show(k, band[1])}`));
    if (i === 0) return [cell];
    const change = x !== null && base ? x / base - 1 : null;
    const good = change !== null && Math.abs(change) > 1e-9 && better(k) ? (better(k) === "smaller") === (change < 0) : null;
    return [cell, element("span", {class: good === null ? "" : good ? "good" : "bad"}, change === null || Number.isNaN(change) ? "" : percent(change))];
  })]);
  const head = ["", ...g.results.flatMap((r, i) => i === 0 ? [label(r, g)] : [label(r, g), "change"])];
  return table(head, rows);
}
