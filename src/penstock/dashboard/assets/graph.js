// Draws the pipeline at one moment: operators in layers, replicas as dots, rates on the edges.
import { element, percent, short, svg } from "./format.js";

const WIDTH = 224, HEIGHT = 118, GAP_Y = 22, PAD = 8, MAX_DOTS = 20;
// between layers; on a phone operators are in one column, and edges that skip one pass beside it
const MIN_GAP_X = 84, MAX_GAP_X = 260, NARROW_GAP_Y = 38, LANE = 66, NARROW = 560;
// a wide pipeline is scrolled rather than made smaller than this
const MIN_SCALE = 0.85;

export function drawGraph(place, graph) {
  place.replaceChildren();
  if (!graph || !graph.nodes.length) { place.append("no tick yet"); return; }
  const room = place.clientWidth, isNarrow = room < NARROW;
  const { spots, width, height } = isNarrow ? inColumn(graph) : inLayers(graph, room);
  const drawing = svg("svg", { viewBox: `0 0 ${width} ${height}`, width: isNarrow ? Math.max(width, room) : width, height, role: "img", "aria-label": describe(graph) });
  if (!isNarrow) drawing.style.minWidth = `${Math.round(width * MIN_SCALE)}px`;
  drawing.append(svg("defs", {}, svg("marker", { id: "arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto" },
    svg("path", { d: "M0 0L8 4L0 8z", class: "arrow" }))));
  const edges = graph.edges.map((edge) => drawEdge(spots.get(edge.from), spots.get(edge.to), edge.rate, isNarrow)).filter((edge) => edge);
  drawing.append(...edges.map((edge) => edge.line));
  for (const spot of spots.values()) drawNode(drawing, spot);
  drawing.append(...edges.flatMap((edge) => edge.label ?? []));
  place.append(drawing);
}

function inLayers(graph, room) {
  const layers = [];
  for (const node of graph.nodes) (layers[node.layer] ||= []).push(node);
  const most = Math.max(...layers.map((nodes) => nodes.length));
  const free = (room - 2 * PAD - layers.length * WIDTH) / Math.max(1, layers.length - 1);
  const gap = Math.min(MAX_GAP_X, Math.max(MIN_GAP_X, free));
  const spots = new Map();
  layers.forEach((nodes, layer) => nodes.forEach((node, row) => {
    spots.set(node.name, { x: PAD + layer * (WIDTH + gap), y: PAD + (row + (most - nodes.length) / 2) * (HEIGHT + GAP_Y), node });
  }));
  return { spots, width: layers.length * (WIDTH + gap) - gap + 2 * PAD, height: most * (HEIGHT + GAP_Y) - GAP_Y + 2 * PAD };
}

function inColumn(graph) {
  const nodes = [...graph.nodes].sort((a, b) => a.layer - b.layer);
  const spots = new Map(nodes.map((node, line) => [node.name, { x: PAD, y: PAD + line * (HEIGHT + NARROW_GAP_Y), node, line }]));
  const skips = graph.edges.some((edge) => spots.get(edge.to)?.line !== spots.get(edge.from)?.line + 1);
  return { spots, width: WIDTH + 2 * PAD + (skips ? LANE : 0), height: nodes.length * (HEIGHT + NARROW_GAP_Y) - NARROW_GAP_Y + 2 * PAD };
}

function describe(graph) {
  return graph.nodes.map((n) => `${n.name}: ${n.running ?? "?"} replicas${n.is_bottleneck ? ", bottleneck" : ""}${chain(n)}`).join("; ");
}

function text(x, y, content, kind = "", anchor = "start") {
  const made = svg("text", { x, y, class: kind, "text-anchor": anchor });
  made.textContent = content;
  return made;
}

function drawEdge(from, to, rate, isNarrow) {
  if (!from || !to) return null;
  const isNext = isNarrow && to.line === from.line + 1;
  let path, spot;
  if (isNext) {
    const x = from.x + WIDTH / 2;
    path = `M${x} ${from.y + HEIGHT}L${x} ${to.y}`;
    spot = [x, (from.y + HEIGHT + to.y) / 2 + 2];
  } else if (isNarrow) {
    const x = from.x + WIDTH, [y1, y2] = [from.y + HEIGHT / 2, to.y + HEIGHT / 2 - 8];
    path = `M${x} ${y1}C${x + LANE * 0.6} ${y1} ${x + LANE * 0.6} ${y2} ${x} ${y2}`;
    spot = [x + LANE * 0.45, (y1 + y2) / 2];
  } else {
    const [x1, y1, x2, y2] = [from.x + WIDTH, from.y + HEIGHT / 2, to.x, to.y + HEIGHT / 2], middle = (x1 + x2) / 2;
    path = `M${x1} ${y1}C${middle} ${y1} ${middle} ${y2} ${x2} ${y2}`;
    // an edge that skips a layer passes behind operators: its label is near its beginning
    const isNear = to.node.layer - from.node.layer <= 1, part = isNear ? 0.5 : 0.09;
    spot = [x1 + (x2 - x1) * (1.5 * part * (1 - part) + part ** 3), y1 + (y2 - y1) * (3 - 2 * part) * part ** 2];
  }
  // the label has a border in the colour of the card, so that the line does not run through it
  const label = rate === null ? null : text(spot[0], spot[1] + 4, `${short(rate)}/s`, "rate", "middle");
  return { line: svg("path", { d: path, class: "edge", "marker-end": "url(#arrow)" }), label };
}

function clip(name, most) { return name.length > most ? `${name.slice(0, most - 1)}…` : name; }

// members of a chain, each with its share of the time
function chain(node) {
  if (!node.members) return "";
  return `, chain of ${node.members.map((m) => m.share === null ? m.name : `${m.name} (${percent(m.share)})`).join(" > ")}`;
}

function drawNode(drawing, { x, y, node }) {
  const group = svg("g", { transform: `translate(${x} ${y})`, "data-operator": node.name });
  const title = svg("title");
  title.textContent = `${node.name}: wanted ${node.wanted ?? "-"}, requested ${node.requested ?? "-"}, running ${node.running ?? "-"}${chain(node)}`;
  group.append(title, svg("rect", { width: WIDTH, height: HEIGHT, rx: 6, class: node.is_bottleneck ? "node bottleneck" : "node" }));
  group.append(text(10, 18, clip(node.name, node.is_bottleneck ? 16 : 28), "name"));
  if (node.is_bottleneck) group.append(text(WIDTH - 8, 18, "▲ bottleneck", "bottle", "end"));
  dots(group, node);
  group.append(text(10, 51, `${node.running ?? "-"} running`));
  const others = [];
  if (node.requested !== null && node.requested !== node.running) others.push(`${node.requested} requested`);
  if (node.wanted !== null && node.wanted !== node.requested) others.push(`${node.wanted} wanted`);
  if (others.length) group.append(text(10, 65, others.join(", ")));
  shares(group, node);
  const trend = node.queue_growth === undefined || node.queue_growth === null ? "" : node.queue_growth > 0 ? " ↑" : node.queue_growth < 0 ? " ↓" : " →";
  group.append(text(10, 94, `queue ${short(node.queue)}${trend}`), text(WIDTH - 8, 94, `in ${short(node.input_rate)}/s`, "", "end"));
  const states = [["busy", node.busy], ["blocked", node.backpressured], ["idle", node.idle]].filter(([, v]) => v !== null && v !== undefined);
  group.append(text(10, 110, states.map(([name, v]) => `${name} ${percent(v)}`).join(", "), "soft"));
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
    if (width > 0) group.append(svg("rect", { x, y: 72, width: Math.min(width, WIDTH - 10 - x), height: 7, class: kind }));
    x += width;
  }
}

// What the symbols mean.
export function drawKey(place) {
  const symbol = (...shapes) => svg("svg", { viewBox: "0 0 22 12", width: 22, height: 12, "aria-hidden": "true" }, ...shapes);
  const dot = (kind) => symbol(svg("circle", { cx: 11, cy: 6, r: 3.6, class: kind }));
  const bar = (kind) => symbol(svg("rect", { x: 1, y: 2.5, width: 20, height: 7, class: kind }));
  const sign = (content) => element("span", { class: "sign", "aria-hidden": "true" }, content);
  const rows = [
    [dot("dot"), "replica that runs"], [dot("dot asked"), "requested, does not run yet"], [dot("dot leaving"), "runs, is about to stop"],
    [bar("busy"), "share of time busy"], [bar("back"), "blocked by what follows"], [bar("idle"), "idle"],
    [sign("↑ ↓"), "the queue grows, shrinks"], [sign("▲"), "bottleneck: holds others back, or gets too much"],
  ];
  place.replaceChildren(...rows.map(([mark, words]) => element("li", {}, mark, words)));
}
