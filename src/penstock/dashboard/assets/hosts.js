// Hosts of a publish/subscribe run at one moment: slices by operator, the last moves, the delay.
import { clock, element, percent, short, svg } from "./format.js";

const BAR = 400;

export function drawHosts(card, note, place, view) {
  card.hidden = !view;
  if (!view) return;
  const { delay_s: delay } = view;
  note.textContent = `${view.hosts.length + view.hosts_left_out} hosts, ${view.slices} slices`
    + (delay ? `; delay: p50 ${short(delay.p50)} s, p95 ${short(delay.p95)} s` : "");
  const keys = view.operators.map((name, i) => element("span", { class: "key" }, square(i), ` ${name}`));
  const list = element("ul", { class: "hosts" }, ...view.hosts.map((host) => drawHost(host, view.operators)));
  const left = view.hosts_left_out ? [element("p", { class: "soft" }, `${view.hosts_left_out} more hosts are not shown.`)] : [];
  place.replaceChildren(element("p", { class: "soft keys" }, "share of a host's processor by operator: ", ...keys), list, ...left, ...drawMoves(view.moves));
}

function square(number) {
  return svg("svg", { viewBox: "0 0 10 10", width: 11, height: 11, "aria-hidden": "true" }, svg("rect", { width: 10, height: 10, class: `part${number % 8}` }));
}

function drawHost(host, operators) {
  const totals = operators.map((name, i) => {
    const own = host.slices.filter(([operator]) => operator === i);
    return { name, count: own.length, load: own.reduce((sum, [, , load]) => sum + load, 0), slices: own.map(([, slice, load]) => `${slice} ${percent(load)}`) };
  });
  // a host may be asked for more than it has: then the bar is full
  const scale = BAR / Math.max(1, host.load);
  const bar = svg("svg", { viewBox: `0 0 ${BAR} 14`, preserveAspectRatio: "none", class: "load", "aria-hidden": "true" }, svg("rect", { width: BAR, height: 14, class: "idle" }));
  let x = 0;
  totals.forEach((part, i) => {
    const title = svg("title");
    title.textContent = `${part.name}: ${part.slices.join(", ")}`;
    bar.append(svg("rect", { x, width: part.load * scale, height: 14, class: `part${i % 8}` }, title));
    x += part.load * scale;
  });
  const counts = totals.filter((part) => part.count).map((part) => `${part.name} ${part.count}`).join(", ");
  const cut = host.slices.length < host.count ? `, of ${host.count} slices` : "";
  return element("li", {}, element("b", { title: host.name }, host.name), bar, element("span", { class: host.load > 1 ? "bad" : "" }, percent(host.load)), element("span", { class: "soft" }, counts ? `${counts}${cut}` : "no slices"));
}

function drawMoves(moves) {
  if (!moves) return [element("p", { class: "soft" }, "No slice has moved so far.")];
  const ways = new Map();
  for (const move of moves.list) {
    const way = `${move.from} \u2192 ${move.to}`;
    ways.set(way, [...(ways.get(way) ?? []), move.slice]);
  }
  const items = [...ways].map(([way, slices]) => element("li", {}, element("b", {}, way), `: ${slices.join(", ")}`));
  const rest = moves.count - moves.list.length;
  const head = `Last moves, at ${clock(moves.at)}: ${moves.count} ${moves.count === 1 ? "slice" : "slices"}${moves.is_applied ? "" : ", not carried out"}`;
  return [element("h3", {}, head), element("ul", { class: "moves" }, ...items, ...(rest ? [element("li", {}, `and ${rest} more`)] : []))];
}
