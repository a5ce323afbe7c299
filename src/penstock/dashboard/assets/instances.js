// Instances of a decentralized run at one moment: their states, what they decided, their messages.
import { element, short } from "./format.js";

// a column is shown if the run knows it; "sum" is added up over operators
const COLUMNS = [
  ["active", "active", true], ["starting", "starting", true], ["stopping", "stopping", true], ["ideal", "needed", true],
  ["load", "records/s each", false], ["capacity", "of at most", false],
  ["voters", "decided", true], ["copies", "copies", true], ["stops", "stops", true], ["messages", "messages", true],
];

export function drawInstances(card, note, place, view) {
  card.hidden = !view;
  if (!view) return;
  const shown = COLUMNS.filter(([key]) => view.rows.some((row) => row[key] !== null));
  const total = (key) => view.rows.reduce((sum, row) => sum + (row[key] ?? 0), 0);
  const changes = [[total("copies"), "copies start"], [total("stops"), "stop"], [total("messages"), "messages"]];
  note.textContent = [`${total("active")} active`, ...changes.filter(([count]) => count).map(([count, words]) => `${short(count)} ${words}`)].join(", ");
  const head = element("tr", {}, element("th", { scope: "col" }, "operator"), ...shown.map(([, label]) => element("th", { scope: "col" }, label)));
  const rows = view.rows.map((row) => element("tr", {}, element("th", { scope: "row" }, row.operator), ...shown.map(([key]) => element("td", {}, row.is_fixed && key === "voters" ? "fixed" : short(row[key])))));
  if (rows.length > 1) rows.push(element("tr", { class: "sum" }, element("th", { scope: "row" }, "all"), ...shown.map(([key, , adds]) => element("td", {}, adds ? short(total(key)) : ""))));
  place.replaceChildren(element("table", {}, element("thead", {}, head), element("tbody", {}, ...rows)));
}
