// The list of decisions and the details of one of them.
import { clock, element, short } from "./format.js";

export function drawList(place, entries, current, onPick, append = false) {
  // a list that is drawn again while somebody reads it must not jump
  const key = JSON.stringify(entries);
  if (!append && place.dataset.key === key) return;
  place.dataset.key = append ? "" : key;
  const items = entries.map((entry) => {
    const content = [element("span", { class: "when" }, clock(entry.at))];
    for (const item of entry.items) {
      const change = item.wanted === item.current ? `${item.operator} stays at ${item.current}` : `${item.operator} ${item.current} → ${item.wanted}`;
      content.push(element("b", {}, change), ` ${item.summary} `);
    }
    if (entry.moves) content.push(element("b", {}, `${entry.moves} slices move `));
    if (entry.why_not) content.push(`no decision: ${entry.why_not}`);
    if (entry.items.some((i) => i.wanted !== i.current) && !entry.applied) content.push(element("span", { class: "bad" }, `not carried out${entry.error ? `: ${entry.error}` : ""}`));
    const button = element("button", { type: "button", "data-number": entry.number, "data-at": entry.at, "aria-current": String(entry.number === current), onclick: () => onPick(entry) }, ...content);
    return element("li", {}, button);
  });
  if (append) place.append(...items);
  else place.replaceChildren(...(items.length ? items : [element("li", { class: "soft" }, "none")]));
}

export function markCurrent(place, at) {
  let best = null;
  for (const button of place.querySelectorAll("button[data-at]")) {
    button.setAttribute("aria-current", "false");
    if (best === null && Number(button.dataset.at) <= at + 1e-6) best = button;
  }
  if (best) best.setAttribute("aria-current", "true");
  return best;
}

export function drawDetails(place, story) {
  if (!story) { place.replaceChildren(element("p", { class: "soft" }, "no tick here")); return; }
  const parts = [element("h3", {}, `At ${clock(story.at)} (${story.at} s)${story.policy ? `, ${story.policy}` : ""}`)];
  if (story.why_not) parts.push(element("p", {}, `Nothing was decided: ${story.why_not}.`));
  if (story.error) parts.push(element("p", {}, `${story.is_change && !story.applied ? "Not carried out" : "Note"}: ${story.error}`));
  if (story.placement) parts.push(placement(story.placement));
  for (const target of story.targets) parts.push(...tell(target, story));
  place.replaceChildren(...parts);
}

function tell(target, story) {
  const isChange = target.wanted !== target.current;
  const verdict = isChange ? `${target.current} → ${target.wanted} replicas` : `stays at ${target.current}`;
  const rows = [];
  const add = (name, ...content) => rows.push(element("dt", {}, name), element("dd", {}, ...content));
  if (target.measured.length) add("measured", target.measured.join(", "));
  for (const line of target.formula) add("formula", line);
  add("proposal", `${target.proposal} (${target.proposal_sentence || target.proposal_reason})`);
  for (const step of target.guards) add(`guard ${step.guard}`, `${step.before} → ${step.after} (${step.sentence || step.reason})`);
  if (!target.guards.length) add("guards", "changed nothing");
  add(isChange ? "final" : "why not", `${verdict}: ${target.sentence || target.reason}`);
  if (isChange && story.applied) {
    const effect = target.effect ?? {};
    add("running", effect.ran_after_s === null || effect.ran_after_s === undefined ? "not seen in the next ticks" : `after ${short(effect.ran_after_s)} s`);
    if (target.expected_rate !== null) add("effect", `predicted ${short(target.expected_rate)} records/s, measured ${effect.measured_rate ? `${short(effect.measured_rate)} records/s` : "unknown"}`);
  }
  return [element("h3", {}, `${target.operator}: ${verdict}`), element("dl", {}, ...rows)];
}

function placement(answer) {
  const moves = answer.moves.slice(0, 50).map((move) => element("li", {}, `${move.slice}: ${move.from} → ${move.to}`));
  return element("div", {}, element("p", {}, answer.text), element("p", { class: "soft" }, answer.formula), element("ul", {}, ...moves));
}
