// Answers of nvlsim plan: deployments and their front, sizes of a training run, scaling, knobs.
const plans = data.plans || [];
const count_by = (n, what) => `${n} × ${what}`;
function workers_text(w) {
  const sizes = ["tp", "pp", "attention_dp", "ep"].filter(k => w[k] > 1).map(k => `${words(k)} ${w[k]}`);
  return count_by(w.workers, sizes.join(" ") || "tp 1");
}
const launch_text = launch => (launch || []).map(l => typeof l === "string" ? l : [`# ${l.engine}`, ...l.lines].join("\n")).join("\n");
const reasons_table = (rows, head) => rows?.length ? [table(head, rows, head.map((h, i) => i ? "text" : ""))] : [];
const with_launch = launch => launch?.length ? [element("pre", {class: "small scroll"}, launch_text(launch))] : [];

/// Throughput of a GPU against speed of a user: lines of what nothing beats, dots of the others.
function deployments_chart(a) {
  const of = (kind, efficient) => a.front.filter(p => p.kind === kind && p.efficient === efficient).map(p => [p.output_tokens_per_s_per_user, p.output_tokens_per_s_per_gpu]);
  const lists = ["aggregated", "disaggregated"].flatMap((kind, i) => [
    {name: `${kind}, none is better`, of: i, points: of(kind, true)}, {name: `${kind}, others`, of: i, dots: true, points: of(kind, false)}]).filter(l => l.points.length);
  if (!lists.length) return [];
  const [x, series] = joined(lists);
  return [curves("output tokens/s a GPU against output tokens/s a user", x, series,
    {y_format: v => show("tokens_per_s", v), x_label: "tok/s a user", log_x: x[x.length - 1] / x[0] >= 8, y_range: (u, low, high) => [0, high * 1.1]})];
}
function serving_plan(p) {
  return p.answers.flatMap(a => {
    const servers = ["aggregated", "disaggregated"].filter(k => a[k]).map(k => a[k]), best = a.best && a[a.best];
    const title = `${a.model} on ${a.platform}: ${best ? `${digits(best.requests_per_s)} requests a second on ${best.gpus} GPUs, ${a.best}` : "no deployment keeps the limits"}`;
    const line = (name, f) => [name, ...servers.map(f)];
    const metric = (name, key, at) => line(name, s => show(key, at ? s.metrics[key]?.[at] : s.metrics[key]));
    return [element("h3", {}, title), ...(servers.length ? [table(["", ...servers.map(s => s.kind)], [
      ...(servers.some(s => s.copies > 1) ? [line("copies, each with what follows", s => digits(s.copies))] : []),
      line("prefill workers", s => s.prefill ? workers_text(s.prefill) : "–"), line("decode workers", s => workers_text(s.decode)),
      line("requests/s held", s => digits(s.requests_per_s)), line("users in flight", s => digits(s.users)),
      metric("output tokens/s a GPU", "output_tokens_per_s_per_gpu"), metric("output tokens/s a user", "output_tokens_per_s_per_user"),
      metric("TTFT p50", "ttft_s", "p50"), metric("TTFT p99", "ttft_s", "p99"), metric("TPOT p50", "tpot_s", "p50"), metric("TPOT p99", "tpot_s", "p99"),
      metric("energy of a million tokens", "energy_per_million_tokens_J"), metric("cost of a million tokens", "cost_per_million_tokens_usd"),
      metric("power of a GPU", "power_W_per_gpu"), metric("memory peak", "memory_peak_bytes")])] : []),
      ...deployments_chart(a), ...reasons_table(a.lost?.map(l => [l.layout, l.why]), ["another deployment", "why not"]),
      ...reasons_table(a.refused?.map(r => [digits(r.count), r.reason]), ["layouts left out", "why"]), ...with_launch(a.launch)];
  });
}
function training_plan(p) {
  return p.answers.flatMap(a => {
    const b = a.best || a.nearest, kept = a.best ? "" : ", which is too slow";
    const title = `${a.model} on ${a.platform}: ${b ? `${b.gpus} GPUs, ${b.days === null ? show("step_time_s", b.metrics.step_time_s) + " a step" : digits(b.days) + " days"}${kept}` : "nothing can run"}`;
    const sizes = (a.sizes || []).filter(s => s.days !== null);
    return [element("h3", {}, title), ...(b ? [table(["layout", "step", "tokens/s", "MFU", "memory peak", "energy", "cost"], [[b.layout, show("step_time_s", b.metrics.step_time_s),
      show("tokens_per_s", b.metrics.tokens_per_s), show("mfu", b.metrics.mfu), show("memory_peak_bytes", b.metrics.memory_peak_bytes),
      show("energy_to_train_J", b.metrics.energy_to_train_J), show("cost_to_train_usd", b.cost_usd)]], ["text"])] : []),
      ...(sizes.length > 1 ? [curves("days over GPUs", sizes.map(s => s.gpus), [{name: "days", values: sizes.map(s => s.days)}], {x_label: "GPUs", y_range: (u, low, high) => [0, high * 1.1]})] : []),
      ...reasons_table(a.lost?.map(l => [l.layout, l.why]), ["another layout", "why not"]), ...with_launch(a.launch)];
  });
}
function scaling_plan(p) {
  const able = p.points.filter(x => x.best), platforms = [...new Set(able.map(x => x.platform))];
  const lists = key => platforms.map(name => ({name, points: able.filter(x => x.platform === name).map(x => [x.gpus, x.best.metrics[key]])}));
  const [x, steps] = joined(lists("step_time_s"));
  return [element("h3", {}, `${p.scenario}: ${p.weak ? "weak" : "strong"} scaling`), ...scaling_charts("tokens_per_s", lists("tokens_per_s")),
    ...(x.length > 1 ? [curves("step time over GPUs", x, steps, {log_x: true, x_label: "GPUs", y_format: v => show("step_time_s", v)})] : []),
    table(["platform", "GPUs", "step", "efficiency", "layout", "why"], p.points.map(x => [x.platform, String(x.gpus), x.best ? show("step_time_s", x.best.metrics.step_time_s) : "–",
      x.efficiency_fraction === null ? "–" : show("efficiency_fraction", x.efficiency_fraction), x.best?.layout || "–", x.why || ""]), ["text", "", "", "", "text", "text"])];
}
function knobs_plan(p) {
  const rows = p.knobs.filter(k => k.gain_fraction > 0).map(k => ({name: words(k.name), parts: [[k.name, k.gain_fraction, `${k.from} to ${k.to}`]]}));
  const change = `${digits(100 * p.step_fraction)} % more`;
  return [element("h3", {}, `${p.scenario}: what ${words(p.metric)} gains from ${change} of each part`), ...(rows.length ? [bars(rows, "gain_fraction")] : []),
    table(["part", "from", "to", "gain", "cost", "why none"], p.knobs.map(k => [words(k.name), k.from, k.to, k.gain_fraction === null ? "–" : percent(k.gain_fraction), show("cost_usd", k.cost_usd), k.why || ""]), ["text", "", "", "", "", "text"])];
}
if (plans.length) {
  section("Plans", "plans", "Answers of nvlsim plan, with what was tried beside them.");
  const drawn_by = {serving: serving_plan, training: training_plan, scaling: scaling_plan, "next-dollar": knobs_plan};
  for (const p of plans) page.append(...(drawn_by[p.question]?.(p) || []));
}

