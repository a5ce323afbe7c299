// The health of a run: problems, warnings, operators, events, disk.
import { bytes, clock, element, short } from "./format.js";

// a column is shown if an operator has something in it
const COLUMNS = [
  ["restarts", "restarts"], ["last_restart", "last restart"], ["late_rows", "late rows"],
  ["dead_letter_rows", "dead letters"], ["error", "error"],
];

export function drawHealth(place, note, health, end) {
  const list = (title, items, kind) => (items.length ? [element("h3", {}, title), element("ul", { class: kind }, ...items.map((text) => element("li", {}, text)))] : []);
  const disk = Object.entries(health.disk_bytes).filter(([, size]) => size).map(([name, size]) => `${name} ${bytes(size)}`).join(", ");
  const isPast = health.events_until !== null;
  note.textContent = isPast ? `events until ${clock(health.events_until)}; everything else as of the end, ${clock(end)}` : `as of ${clock(end)}`;
  place.replaceChildren(
    ...(health.problems.length || health.warnings.length ? [] : [element("p", {}, "No problems are known.")]),
    ...list("Problems", health.problems, "bad"), ...list("Warnings", health.warnings, ""),
    ...operators(health.operators),
    ...list(isPast ? `Events until ${clock(health.events_until)}, the newest first` : "Events, the newest first", health.events.map((event) => `${clock(event.at)} ${event.text}`), "events"),
    ...(health.events_left_out ? [element("p", { class: "soft" }, "Earlier events are not listed; penstock explain has them.")] : []),
    ...(disk ? [element("p", { class: "soft" }, `Disk: ${disk}`)] : []));
}

function operators(all) {
  const shown = COLUMNS.filter(([key]) => all.some((operator) => operator[key]));
  const rows = all.filter((operator) => shown.some(([key]) => operator[key]));
  if (!rows.length) return [];
  const cell = (value) => (typeof value === "number" ? short(value) : value || "-");
  return [element("h3", {}, "Operators with restarts, late rows, dead letters or errors"), element("div", { class: "scroll" }, element("table", { id: "health-operators" },
    element("thead", {}, element("tr", {}, element("th", { scope: "col" }, "operator"), ...shown.map(([, label]) => element("th", { scope: "col" }, label)))),
    element("tbody", {}, ...rows.map((operator) => element("tr", {}, element("th", { scope: "row" }, operator.name), ...shown.map(([key]) => element("td", { class: typeof operator[key] === "number" ? "" : "words" }, cell(operator[key]))))))))];
}
