// The summary of a run in sentences, and the figures of several runs side by side.
import { clock, element } from "./format.js";

const $ = (id) => document.getElementById(id);

export function drawScores(answer, shown, runs) {
  const place = Math.max(0, answer.runs.indexOf(shown.name));
  $("summary").textContent = answer.sentences[place].join(" ");
  $("summary-note").textContent = `the whole run until ${clock(shown.overview.end_s)}, not the chosen time`;
  $("compare").hidden = runs.length < 2;
  if (runs.length < 2) return;
  $("compare-note").textContent = "whole runs, not the chosen time";
  $("compare-remarks").replaceChildren(...answer.remarks.map((text) => element("p", { class: "soft" }, text)));
  const head = element("tr", {}, element("th", {}, ""), ...answer.runs.map((name) => element("th", {}, name)), element("th", {}, "better"));
  const rows = answer.rows.map((row) => element("tr", {}, element("td", {}, row.label), ...row.values.map((value, i) => element("td", { class: row.best === i ? "best" : "" }, value)), element("td", {}, row.verdict)));
  $("scores").replaceChildren(element("thead", {}, head), element("tbody", {}, ...rows));
}
