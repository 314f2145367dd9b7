// Page elements, and formatting of numbers and names. Numbers are plain SI; keys end with the unit.
const data = JSON.parse(document.getElementById("data").textContent);
const page = document.getElementById("page");
const tip = document.getElementById("tip");
const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

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
const duration = x => Math.abs(x) >= 2 * 86400 ? digits(x / 86400) + " d" : Math.abs(x) >= 3 * 3600 ? digits(x / 3600) + " h" : Math.abs(x) >= 120 ? digits(x / 60) + " min" : scaled(x, "s");
/// The table of metrics by name: {unit, better}. Statistics of a distribution ("ttft_s.p99") have its row.
const metrics = Object.assign({}, ...Object.values(data.metrics));
const metric_of = key => metrics[key.split(".")[0]];
// Keys that are no metric end with their unit.
const ends = {s: "s", bytes: "B", Bps: "B/s", W: "W", J: "J", usd: "USD", fraction: "fraction"};
const unit_of = key => metric_of(key) ? metric_of(key).unit : /_per_s$/.test(key) ? "/s" : ends[key.split("_").pop()];
const formats = {s: duration, fraction: x => digits(100 * x) + " %", USD: x => "$" + digits(x),
  ...Object.fromEntries(["B", "B/s", "W", "J"].map(unit => [unit, x => scaled(x, unit)]))};
function show(key, x) {
  if (x === null || x === undefined) return "–";
  const unit = unit_of(key);
  return unit in formats ? formats[unit](x) : unit ? digits(x) + " " + unit : digits(x);
}
/// "smaller" or "larger"; null of a metric for which neither is better, and of keys that are no metric.
const better = key => metric_of(key)?.better || null;
const percent = x => (x > 0 ? "+" : "") + (100 * x).toFixed(Math.abs(x) < 0.1 ? 1 : 0) + " %";
const names = {gpu: "GPU", gpus: "GPUs", mfu: "MFU", ttft: "TTFT", tpot: "TPOT", itl: "gap between tokens", e2e: "whole request", kv: "KV", hbm: "HBM",
  nvlink: "NVLink", nic: "NIC", c2c: "C2C", slo: "SLO", tflops: "TFLOP/s", gemm: "GEMM", algbw: "algorithm bandwidth", busbw: "bus bandwidth"};
const in_keys = {s: "s", B: "bytes", "B/s": "Bps", W: "W", J: "J", USD: "usd", g: "g", L: "L"};
/// Removes the unit from a key: its numbers show it.
const words = key => (metric_of(key) ? key.replace(".", " ") : key)
  .replace(new RegExp(`(?<!_per)_${in_keys[unit_of(key)]}(?=_per_|[ .]|$)`), "").replace(/_/g, " ")
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
const order = {tensor_cores: 0, gemm: 0, hbm: 1, memory_bound: 1, attention: 6, nvlink: 2, tp: 2, nic: 3, dp: 3, latency: 4, ep: 4,
  weights: 0, vocabulary_weights: 6, gradients: 1, activations: 2, kv_cache: 2, workspace: 5, reserve: 3, logits: 7,
  queue: 8, prefill: 1, decode: 0, "decode queue": 9, transfer: 2, server: 5, bubble: 8, pipeline_wait: 8, imbalance: 9, waiting_data_parallel: 9, host: 5, cp: 7, pp: 3, c2c: 7, optimizer: 4, "no work": 9};
const colour_of = name => colour(order[name] ?? [...name].reduce((a, c) => a + c.charCodeAt(0), 0));
function legend(names) {
  return element("div", {class: "legend"}, ...names.map(n => {
    const swatch = element("i");
    swatch.style.background = colour_of(n);
    return element("span", {}, swatch, words(n));
  }));
}
