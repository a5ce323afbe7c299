// Curves with uPlot: shared time axis, one cursor in all panels, a line at the chosen time.
import { clock, colour, element, short, style } from "./format.js";

const HEIGHT = 160;
// height of a mark in pixels
const MARK = 9;
// round times between labels of the axis, in seconds
const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1200, 1800, 3600, 7200, 14400, 21600, 43200, 86400, 172800, 432000, 864000, 1728000, 8640000];

export class Charts {
  constructor(place, { onPick, onZoom }) {
    this.place = place; this.onPick = onPick; this.onZoom = onZoom;
    this.plots = []; this.at = null; this.key = ""; this.range = null;
    this.sync = uPlot.sync("time");
    new ResizeObserver(() => this.resize()).observe(place);
  }

  width() { return Math.max(240, this.place.clientWidth - 2); }

  resize() { for (const { plot } of this.plots) plot.setSize({ width: this.width(), height: HEIGHT }); }

  // panels: [{title, series: [{label, times, values, colour, dash, stack}], level, marks: [{run, at, applied, colour}]}]
  show(panels, range) {
    this.range = range;
    const key = JSON.stringify([panels.map((p) => [p.title, p.series.map((s) => [s.label, s.colour, s.dash])]), document.documentElement.dataset.theme, matchMedia("(prefers-color-scheme: dark)").matches]);
    const tables = panels.map((panel) => align(panel));
    if (key === this.key) {
      this.plots.forEach((entry, i) => { Object.assign(entry, tables[i], { panel: panels[i] }); entry.plot.setData(tables[i].data, false); this.scale(entry); });
      return;
    }
    this.key = key;
    for (const { plot } of this.plots) plot.destroy();
    this.place.replaceChildren();
    this.plots = panels.map((panel, i) => this.make(panel, tables[i]));
  }

  scale(entry) {
    const [from, to] = this.range;
    entry.plot.setScale("x", { min: from, max: Math.max(to, from + 1e-3) });
  }

  setTime(at) {
    this.at = at;
    for (const { plot } of this.plots) { plot.redraw(false, false); this.showValues(plot); }
  }

  // while no mouse is over a chart, its legend has the values at the chosen time
  showValues(plot) {
    const times = plot.data[0];
    if (this.at === null || !times?.length || plot.cursor.left >= 0) return;
    let low = 0, high = times.length;
    while (low < high) { const middle = (low + high) >> 1; if (times[middle] <= this.at + 1e-6) low = middle + 1; else high = middle; }
    plot.setLegend({ idx: Math.max(0, low - 1) });
  }

  make(panel, table) {
    const box = element("div", { class: "chart" }, element("h3", {}, panel.title, ...levelKey(panel), ...markKey(panel.marks)));
    this.place.append(box);
    const entry = { panel, ...table };
    const series = [{ label: "time", value: (_u, v) => (v === null || v === undefined ? "-" : clock(v)) }];
    const bands = [];
    panel.series.forEach((line, i) => {
      const stroke = colour(line.colour ?? i);
      series.push({
        label: line.label, stroke, width: line.dash ? 1.5 : 1.4, dash: line.dash, spanGaps: !!line.gaps, points: { show: false },
        fill: line.stack ? `${stroke}55` : undefined,
        paths: line.step || line.stack ? uPlot.paths.stepped({ align: 1 }) : undefined,
        value: (_u, _v, s, at) => (at === null || at === undefined ? "-" : short(entry.raw[s - 1]?.[at])),
      });
      if (line.stack && i + 1 < panel.series.length && panel.series[i + 1].stack) bands.push({ series: [i + 1, i + 2] });
    });
    const axis = { stroke: style("--soft"), grid: { stroke: style("--rule"), width: 1 }, ticks: { stroke: style("--rule"), width: 1 }, font: "11px system-ui, sans-serif" };
    entry.plot = new uPlot({
      width: this.width(), height: HEIGHT, series, bands,
      cursor: { sync: { key: this.sync.key }, drag: { x: true, y: false, setScale: false }, y: false },
      scales: { x: { time: false }, y: { range: (_u, low, high) => [Math.min(0, low ?? 0), Math.max(panel.level && panel.level < 4 * (high || 1) ? panel.level * 1.05 : 0, (high || 1) * 1.05)] } },
      axes: [{ ...axis, values: (_u, splits) => splits.map((at) => clock(at)), space: 76, size: 28, incrs: STEPS }, { ...axis, size: 54, values: (_u, splits) => splits.map(short) }],
      hooks: {
        draw: [(plot) => this.marks(plot, entry)],
        setSelect: [(plot) => {
          if (plot.select.width < 4) return;
          const from = plot.posToVal(plot.select.left, "x"), to = plot.posToVal(plot.select.left + plot.select.width, "x");
          plot.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
          this.onZoom(from, to);
        }],
        setCursor: [(plot) => { if (plot.cursor.left < 0) this.showValues(plot); }],
        ready: [(plot) => plot.over.addEventListener("click", () => { if (plot.cursor.left >= 0) this.onPick(plot.posToVal(plot.cursor.left, "x")); })],
      },
      legend: { live: true, markers: { width: 2, dash: (_u, i) => (panel.series[i - 1]?.dash ? "dashed" : "solid") } },
    }, entry.data, box);
    this.scale(entry);
    return entry;
  }

  marks(plot, entry) {
    const { ctx } = plot, { top, height, left, width } = plot.bbox;
    ctx.save();
    ctx.setLineDash([]);  // the last line of the chart may be a dashed one
    ctx.beginPath(); ctx.rect(left, top, width, height + 12); ctx.clip();
    if (entry.panel.level) {
      const y = plot.valToPos(entry.panel.level, "y", true);
      ctx.strokeStyle = style("--ink"); ctx.setLineDash([3, 4]); ctx.beginPath(); ctx.moveTo(left, y); ctx.lineTo(left + width, y); ctx.stroke();
      ctx.setLineDash([]);
    }
    (entry.panel.marks ?? []).forEach(({ at, applied, colour: number }, row) => {
      const bottom = top + height - row * MARK * devicePixelRatio;
      at.forEach((time, i) => {
        const x = plot.valToPos(time, "x", true), length = (applied[i] ? MARK - 1 : MARK / 2 - 1) * devicePixelRatio;
        ctx.strokeStyle = number !== undefined ? colour(number) : applied[i] ? style("--mark") : style("--bad"); ctx.lineWidth = 1.5 * devicePixelRatio;
        ctx.beginPath(); ctx.moveTo(x, bottom - length); ctx.lineTo(x, bottom); ctx.stroke();
      });
    });
    if (this.at !== null) {
      const x = plot.valToPos(this.at, "x", true);
      ctx.strokeStyle = style("--accent"); ctx.lineWidth = 2 * devicePixelRatio; ctx.beginPath(); ctx.moveTo(x, top); ctx.lineTo(x, top + height); ctx.stroke();
    }
    ctx.restore();
  }
}

// The name of a level; on the chart it would hide lines.
function levelKey(panel) {
  return panel.level ? [element("span", { class: "soft" }, `  dotted line: objective ${panel.level} s`)] : [];
}

// What the marks are; of several runs, each has a row in its colour.
function markKey(marks) {
  if (!marks?.some((each) => each.at.length)) return [];
  const isFailed = marks.some((each) => each.applied.includes(false));
  const runs = marks.length > 1 ? `, a row for each run from below: ${marks.map((each) => each.run).join(", ")}` : "";
  return [element("span", { class: "soft" }, `  marks: changes${isFailed ? ", short ones were not carried out" : ""}${runs}`)];
}

// One table of times for all lines of a panel; stacked lines are sums, `raw` keeps their own values.
function align(panel) {
  if (!panel.series.length) return { data: [[]], raw: [] };
  const shared = panel.series.every((line) => line.times === panel.series[0].times);
  const joined = shared ? [panel.series[0].times, ...panel.series.map((line) => line.values)] : uPlot.join(panel.series.map((line) => [line.times, line.values]));
  const raw = joined.slice(1);
  const data = [joined[0], ...raw];
  // the last operator is at the bottom: each line is the sum of its own values and of those below it
  let above = null;
  for (let i = panel.series.length - 1; i >= 0; i -= 1) {
    if (!panel.series[i].stack) continue;
    const sum = raw[i].map((value, k) => (value ?? 0) + (above ? above[k] : 0));
    data[i + 1] = sum; above = sum;
  }
  return { data, raw };
}
