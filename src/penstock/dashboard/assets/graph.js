// Draws the pipeline at one moment: operators in layers, replicas as dots, rates on the edges.
import { percent, short, svg } from "./format.js";

const WIDTH = 212, HEIGHT = 104, GAP_X = 74, GAP_Y = 22, PAD = 8, MAX_DOTS = 20;

export function drawGraph(place, graph) {
  place.replaceChildren();
  if (!graph || !graph.nodes.length) { place.append("no tick yet"); return; }
  const layers = [];
  for (const node of graph.nodes) (layers[node.layer] ||= []).push(node);
  const isNarrow = place.clientWidth < 560;
  const across = isNarrow ? Math.max(...layers.map((l) => l.length)) : layers.length;
  const down = isNarrow ? layers.length : Math.max(...layers.map((l) => l.length));
  const gapX = isNarrow ? GAP_Y : GAP_X, gapY = isNarrow ? 40 : GAP_Y;
  const width = across * (WIDTH + gapX) - gapX + 2 * PAD, height = down * (HEIGHT + gapY) - gapY + 2 * PAD;
  const spots = new Map();
  layers.forEach((nodes, layer) => nodes.forEach((node, row) => {
    const [column, line] = isNarrow ? [row, layer] : [layer, row];
    const count = nodes.length, most = isNarrow ? across : down;
    const shift = (most - count) / 2;
    spots.set(node.name, {
      x: PAD + (column + (isNarrow ? shift : 0)) * (WIDTH + gapX),
      y: PAD + (line + (isNarrow ? 0 : shift)) * (HEIGHT + gapY), node,
    });
  }));
  const drawing = svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": describe(graph) });
  drawing.append(svg("defs", {}, svg("marker", { id: "arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto" },
    svg("path", { d: "M0 0L8 4L0 8z", class: "arrow" }))));
  for (const edge of graph.edges) drawEdge(drawing, spots.get(edge.from), spots.get(edge.to), edge.rate, isNarrow);
  for (const spot of spots.values()) drawNode(drawing, spot);
  place.append(drawing);
}

function describe(graph) {
  return graph.nodes.map((n) => `${n.name}: ${n.running ?? "?"} replicas${n.is_bottleneck ? ", bottleneck" : ""}`).join("; ");
}

function text(x, y, content, kind = "", anchor = "start") {
  const made = svg("text", { x, y, class: kind, "text-anchor": anchor });
  made.textContent = content;
  return made;
}

function drawEdge(drawing, from, to, rate, isNarrow) {
  if (!from || !to) return;
  const [x1, y1] = isNarrow ? [from.x + WIDTH / 2, from.y + HEIGHT] : [from.x + WIDTH, from.y + HEIGHT / 2];
  const [x2, y2] = isNarrow ? [to.x + WIDTH / 2, to.y] : [to.x, to.y + HEIGHT / 2];
  const bend = isNarrow ? `M${x1} ${y1}C${x1} ${(y1 + y2) / 2} ${x2} ${(y1 + y2) / 2} ${x2} ${y2}` : `M${x1} ${y1}C${(x1 + x2) / 2} ${y1} ${(x1 + x2) / 2} ${y2} ${x2} ${y2}`;
  drawing.append(svg("path", { d: bend, class: "edge", "marker-end": "url(#arrow)" }));
  if (rate !== null) drawing.append(text((x1 + x2) / 2 + (isNarrow ? 6 : 0), (y1 + y2) / 2 - (isNarrow ? -4 : 6), `${short(rate)}/s`, "soft", isNarrow ? "start" : "middle"));
}

function clip(name, most) { return name.length > most ? `${name.slice(0, most - 1)}…` : name; }

function drawNode(drawing, { x, y, node }) {
  const group = svg("g", { transform: `translate(${x} ${y})`, "data-operator": node.name });
  const title = svg("title");
  title.textContent = `${node.name}: wanted ${node.wanted ?? "-"}, requested ${node.requested ?? "-"}, running ${node.running ?? "-"}`;
  group.append(title, svg("rect", { width: WIDTH, height: HEIGHT, rx: 6, class: node.is_bottleneck ? "node bottleneck" : "node" }));
  group.append(text(10, 18, clip(node.name, node.is_bottleneck ? 16 : 28), "name"));
  if (node.is_bottleneck) group.append(text(WIDTH - 8, 18, "▲ bottleneck", "bottle", "end"));
  dots(group, node);
  const asked = node.requested !== null && node.requested !== node.running ? `, ${node.requested} requested` : "";
  const wanted = node.wanted !== null && node.wanted !== node.requested ? `, ${node.wanted} wanted` : "";
  const replicas = text(10, 51, `${node.running ?? "-"} running${asked}${wanted}`);
  // three numbers that differ are wider than the box
  if (asked && wanted) { replicas.setAttribute("textLength", WIDTH - 18); replicas.setAttribute("lengthAdjust", "spacingAndGlyphs"); }
  group.append(replicas);
  shares(group, node);
  const trend = node.queue_growth === undefined || node.queue_growth === null ? "" : node.queue_growth > 0 ? " ↑" : node.queue_growth < 0 ? " ↓" : " →";
  group.append(text(10, 79, `queue ${short(node.queue)}${trend}`), text(WIDTH - 8, 79, `in ${short(node.input_rate)}/s`, "", "end"));
  const states = [["busy", node.busy], ["idle", node.idle], ["blocked", node.backpressured]].filter(([, v]) => v !== null && v !== undefined);
  group.append(text(10, 96, states.map(([name, v]) => `${name} ${percent(v)}`).join("  "), "soft"));
  drawing.append(group);
}

function dots(group, node) {
  const running = node.running ?? 0, asked = node.requested ?? running, stay = Math.min(running, asked), most = Math.max(running, asked);
  for (let i = 0; i < Math.min(most, MAX_DOTS); i += 1) {
    const kind = i < stay ? "dot" : asked > running ? "dot asked" : "dot leaving";
    group.append(svg("circle", { cx: 14 + i * 9.5, cy: 31, r: 3.6, class: kind }));
  }
  if (most > MAX_DOTS) group.append(text(14 + MAX_DOTS * 9.5 - 4, 35, "…"));
}

function shares(group, node) {
  const parts = [["busy", node.busy], ["back", node.backpressured], ["idle", node.idle]];
  let x = 10;
  for (const [kind, share] of parts) {
    const width = Math.max(0, Math.min(1, share ?? 0)) * (WIDTH - 20);
    if (width > 0) group.append(svg("rect", { x, y: 58, width: Math.min(width, WIDTH - 10 - x), height: 7, class: kind }));
    x += width;
  }
}
