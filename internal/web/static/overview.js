// The charts of the overview: counts of the server, asked for every second, and
// what changed between two of them.

const EVERY_MS = 1000;
const GIVE_UP_MS = 5000; // on an answer
const POINTS = 120; // of a chart
const FIRST_MS = 0.05; // of the buckets of times: each is longer by a factor of √2
const QUANTILE = 0.99;

const dark = matchMedia("(prefers-color-scheme: dark)");
const clock = new Intl.DateTimeFormat(document.documentElement.lang, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// series are the numbers of each chart, the last POINTS of them.
const series = { rate: [[], [], []], p99: [[], []], waiting: [[], []], workers: [[], []] };
const charts = new Map();

const draw = () => {
  for (const [id, chart] of charts) { chart.destroy(); charts.delete(id); }
  const axis = { stroke: color("--pico-muted-color"), grid: { stroke: color("--pico-muted-border-color"), width: 1 }, ticks: { show: false }, font: "12px system-ui" };
  for (const id of Object.keys(series)) {
    const place = document.getElementById(`chart-${id}`);
    if (!place) continue;
    const line = (label, stroke, fill) => ({ label, stroke, fill, width: 2, points: { show: false } });
    const lines = [line(place.dataset.held ?? "", color("--pico-primary"), color("--pico-primary") + "1a")];
    if (id === "rate") lines.push(line(place.dataset.refused, color("--warn")));
    charts.set(id, new uPlot({
      width: place.clientWidth, height: 150, legend: { show: id === "rate", live: false }, cursor: { show: false },
      // Always as long as it will be: the first samples are not stretched over it.
      scales: { x: { range: (_, __, max) => { const end = max ?? Date.now() / 1000; return [end - POINTS * EVERY_MS / 1000, end]; } }, y: { range: (_, __, max) => [0, Math.max(1, max * 1.15)] } },
      axes: [{ ...axis, space: 80, values: (_, all) => all.map((s) => clock.format(s * 1000)) }, { ...axis, size: 44 }], series: [{}, ...lines],
    }, series[id], place));
  }
};

const quantile = (took, before) => {
  const counts = took.map((n, i) => n - (before[i] ?? 0));
  const all = counts.reduce((a, b) => a + b, 0);
  if (all === 0) return null;
  let seen = 0;
  for (const [i, n] of counts.entries()) {
    seen += n;
    if (seen >= all * QUANTILE) return FIRST_MS * 2 ** (i / 2);
  }
  return null;
};

const show = (id, text) => { const el = document.getElementById(id); if (el) el.textContent = text; };
const number = new Intl.NumberFormat(document.documentElement.lang, { maximumFractionDigits: 1 });

let last = null;
let asking = false;
const sample = async () => {
  if (asking) return; // a network that swallows everything gets one request, not one a second
  asking = true;
  let now;
  try {
    const answer = await fetch("/admin/figures", { signal: AbortSignal.timeout(GIVE_UP_MS) });
    if (answer.status === 401) return location.reload();
    if (!answer.ok) return;
    now = await answer.json();
  } catch {
    return; // the next second asks again
  } finally {
    asking = false;
  }
  const was = last;
  last = now;
  if (!was || now.at <= was.at) return;
  const seconds = (now.at - was.at) / 1000;
  const sum = (orders, held) => Object.entries(orders ?? {}).filter(([k]) => (k === "held") === held && k !== "replayed").reduce((n, [, v]) => n + v, 0);
  const rate = Math.max(0, sum(now.orders, true) - sum(was.orders, true)) / seconds;
  const refused = Math.max(0, sum(now.orders, false) - sum(was.orders, false)) / seconds;
  const p99 = quantile(now.took, was.took);
  const add = (id, ...values) => {
    [now.at / 1000, ...values].forEach((v, i) => { series[id][i].push(v); if (series[id][i].length > POINTS) series[id][i].shift(); });
    charts.get(id)?.setData(series[id]);
  };
  add("rate", rate, refused);
  add("p99", p99);
  add("waiting", now.waiting);
  add("workers", now.workers);
  show("rate", `${number.format(rate)} /s`);
  show("p99", p99 === null ? "–" : `${number.format(p99)} ms`);
  show("waiting", `${number.format(now.waiting)} · ${number.format(now.oldest / 1000)} s`);
  show("workers", number.format(now.workers));
};

draw();
dark.addEventListener("change", draw);
addEventListener("resize", draw);
sample();
setInterval(() => { if (!document.hidden) sample(); }, EVERY_MS);
